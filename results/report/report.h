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
  std::string file;  ///< where it stands; empty: nowhere
  Result result;
  std::string command;  ///< by which it can be had again; empty: nobody knows
  KnownFlaws flaws;
};

/// What is to be shown of these results, at least one and at most kMostFiles. Bounded whatever they
/// hold: what is left out is said.
View make_view(std::span<const Source> sources);

/// The page: one HTML file that needs no other and asks no network. `nonce` admits the page's own
/// scripts and no others; it is made of letters and digits and must not be known beforehand.
std::string to_page(const View& view, const std::string& nonce);

/// A fresh one.
std::string make_nonce();

}  // namespace lockbench::results::report
