#include "tests/support/boards.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>

namespace lockbench::test {

std::vector<Board> read_boards(const std::filesystem::path& folder) {
  std::map<std::string, Board> boards;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    boards.emplace(entry.path().filename().string(), Board::parse(file));
  }
  std::vector<Board> sorted;
  sorted.reserve(boards.size());
  for (auto& [name, board] : boards) sorted.push_back(std::move(board));
  return sorted;
}

std::vector<Board> panels_of(const Board& board) {
  std::vector<Board> panels;
  for (const Board& panel : board.at("panels")) {
    if (panel.at("type") != "row") panels.push_back(panel);
  }
  return panels;
}

std::vector<Query> queries_of(const Board& board) {
  std::vector<Query> queries;
  const std::string title = board.at("title");
  for (const Board& panel : panels_of(board)) {
    for (const Board& target : panel.value("targets", Board::array())) {
      queries.push_back({title + ": " + panel.value("title", ""), target.at("expr")});
    }
  }
  for (const Board& annotation : board.at("annotations").at("list")) {
    queries.push_back({title + ": annotations", annotation.at("expr")});
  }
  return queries;
}

std::set<std::string> metrics_in(std::string_view text) {
  static const std::regex metric("\\blockbench[a-z0-9_:]*[a-z0-9]");
  std::set<std::string> metrics;
  for (std::cregex_iterator found(text.data(), text.data() + text.size(), metric), end;
       found != end; ++found) {
    // A quoted label value is not a metric.
    const auto at = static_cast<std::size_t>(found->position());
    if (at == 0 || text[at - 1] != '"') metrics.insert(found->str());
  }
  return metrics;
}

std::string family_of(std::string_view metric) {
  for (const std::string_view suffix : {"_bucket", "_sum", "_count"}) {
    if (metric.ends_with(suffix)) metric.remove_suffix(suffix.size());
  }
  return std::string(metric);
}

bool of_modes_or_transactions(std::string_view expression) {
  return expression.find("lockbench_acquire_by_mode_") != std::string_view::npos ||
         expression.find("lockbench_transaction_acquire_") != std::string_view::npos;
}

bool of_pools_or_programs(std::string_view expression) {
  return expression.find("lockbench_pool_wait_") != std::string_view::npos ||
         expression.find("lockbench_program_") != std::string_view::npos;
}

bool of_watch(std::string_view expression) {
  return expression.find("lockbench_watch_") != std::string_view::npos;
}

std::string with_variables(std::string expression, std::string_view rate_interval,
                           std::string_view range) {
  const auto replace = [&](std::string_view name, std::string_view value) {
    for (std::size_t at = expression.find(name); at != std::string::npos;
         at = expression.find(name, at + value.size())) {
      expression.replace(at, name.size(), value);
    }
  };
  replace("$__rate_interval", rate_interval);
  replace("$__range", range);
  for (const std::string_view name :
       {"$job", "$instance", "$backend", "$strategy", "$store", "$family", "$endpoint"}) {
    replace(name, ".+");
  }
  replace("$deployment", ".*");
  return expression;
}

}  // namespace lockbench::test
