#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "results/file/model.h"
#include "results/report/view.h"
#include "results/tables/runs.h"

namespace lockbench::results::report {

inline constexpr std::size_t kMostFiles = 12;

/// A result, and what the caller knows of it.
struct Source {
  std::string file;  ///< its path; empty: none
  Result result;
  KnownFlaws flaws;
  std::string load{};  ///< which of the file's loads this is; empty: all
};

/// The report of these results, at least one and at most kMostFiles. Its size is bounded; the view
/// says what it leaves out.
View make_view(std::span<const Source> sources);

/// The page: one HTML file that needs no other and asks no network. `nonce` admits the page's own
/// scripts and no others; it is made of letters and digits and must not be known beforehand.
std::string to_page(const View& view, const std::string& nonce);

/// A fresh one.
std::string make_nonce();

/// The view as JSON that can stand inside an HTML element: no "<", ">" or "&", ASCII only. Texts
/// are cut at their bounds and hold no control characters; what is not a number is null.
std::string to_view_json(const View& view);

}  // namespace lockbench::results::report
