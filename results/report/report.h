#pragma once

#include <span>

#include "results/tables/runs.h"

namespace lockbench::results::report {

inline constexpr std::size_t kMostFiles = 12;

/// A result, and what the caller knows about it.
struct Source {
  std::string file;  ///< its path; empty: none
  Result result;
  KnownFlaws flaws;
};

/// The report of these results, at least one and at most kMostFiles: the output of `show` for each,
/// with charts, as one self-contained HTML file that makes no requests. Its size is bounded; it
/// says what it leaves out. `nonce` admits only the page's own scripts; it consists of letters and
/// digits and must be unpredictable.
std::string to_page(std::span<const Source> sources, const std::string& nonce);

/// One play as a picture (SVG): a row for each event, a column for each client, and a bar while a
/// client treats the lock as its own. Rows in which several clients do are red. At most 100 events.
std::string timeline_svg(const Hazard& hazard);

/// A fresh nonce.
std::string make_nonce();

}  // namespace lockbench::results::report
