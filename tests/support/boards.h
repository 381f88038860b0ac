#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockbench::test {

using Board = nlohmann::json;

/// One expression of a dashboard, and where it stands.
struct Query {
  std::string where;  ///< "board: panel"
  std::string expression;
};

/// Every dashboard in the folder, by file name.
std::vector<Board> read_boards(const std::filesystem::path& folder);

/// Its panels, rows apart.
std::vector<Board> panels_of(const Board& board);
/// Those of its panels, then of its annotations.
std::vector<Query> queries_of(const Board& board);

/// Names in an expression, or in many, that begin with "lockbench".
std::set<std::string> metrics_in(std::string_view text);

/// "lockbench_x_seconds" for "lockbench_x_seconds_bucket", "_sum" and "_count".
std::string family_of(std::string_view metric);

/// Whether it asks for what only loads with shared locks, or with several locks a section, have.
bool of_modes_or_transactions(std::string_view expression);

/// Whether it asks for what only a watch has.
bool of_watch(std::string_view expression);

/// Puts values in the place of Grafana's variables.
std::string with_variables(std::string expression, std::string_view rate_interval,
                           std::string_view range);

}  // namespace lockbench::test
