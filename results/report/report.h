#pragma once

#include <span>

#include "results/tables/runs.h"

namespace lockbench::results::report {

inline constexpr std::size_t kMostFiles = 12;

/// A result, and what the caller knows of it.
struct Source {
  std::string file;  ///< its path; empty: none
  Result result;
  KnownFlaws flaws;
};

/// The report of these results, at least one and at most kMostFiles: what `show` prints of each,
/// with charts, as one HTML file that needs no other and asks no network. Its size is bounded; it
/// says what it leaves out. `nonce` admits the page's own scripts and no others; it is made of
/// letters and digits and must not be known beforehand.
std::string to_page(std::span<const Source> sources, const std::string& nonce);

/// A fresh one.
std::string make_nonce();

}  // namespace lockbench::results::report
