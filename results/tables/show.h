#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "results/file/model.h"
#include "results/tables/formats.h"
#include "results/tables/runs.h"

namespace lockbench::results {

enum class Format { table, json, csv, markdown };

struct Look {
  Format format = Format::table;
  TextStyle style{};                   ///< of the format `table`
  std::vector<std::string> columns{};  ///< keys, or "all"; empty: the usual ones
};

/// A result of any command as stdout shows it. The error names an unknown column.
tl::expected<std::string, std::string> render(const Result& result, const KnownFlaws& flaws,
                                              const Look& look);

/// A table with the lines below it, or lines alone, as text or Markdown.
std::string written(const Table& table, const std::vector<std::string>& lines, const Look& look);

/// The same of the usual columns, or of those that were asked for; as CSV, the table alone.
tl::expected<std::string, std::string> render(const Table& table,
                                              const std::vector<std::string>& notes,
                                              const Look& look);

}  // namespace lockbench::results
