#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockbench::test {

using Board = nlohmann::json;

/// One expression of a dashboard, with its place.
struct Query {
  std::string where;  ///< "board: panel"
  std::string expression;
};

/// Every dashboard in the folder, by file name.
std::vector<Board> read_boards(const std::filesystem::path& folder);

/// Its panels, without rows.
std::vector<Board> panels_of(const Board& board);
/// The queries of its panels, then of its annotations.
std::vector<Query> queries_of(const Board& board);

/// All names in the text that begin with "lockbench".
std::set<std::string> metrics_in(std::string_view text);

/// "lockbench_x_seconds" for "lockbench_x_seconds_bucket", "_sum" and "_count".
std::string family_of(std::string_view metric);

/// Whether it queries metrics that only loads with shared locks, or several locks per section,
/// have.
bool of_modes_or_transactions(std::string_view expression);

/// Whether it queries metrics that only loads with a connection pool, or client programs, have.
bool of_pools_or_programs(std::string_view expression);

/// Whether it queries metrics that only a watch has.
bool of_watch(std::string_view expression);

/// Replaces Grafana's variables by values.
std::string with_variables(std::string expression, std::string_view rate_interval,
                           std::string_view range);

}  // namespace lockbench::test
