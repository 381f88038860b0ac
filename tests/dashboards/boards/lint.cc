#include "tests/dashboards/boards/lint.h"

#include <regex>
#include <set>
#include <stdexcept>

namespace lockbench::test {
namespace {

const std::set<std::string> known_units = {"short", "none",  "percentunit", "s",
                                           "ops",   "bytes", "table"};

const Board* variable(const Board& board, const std::string& name) {
  for (const Board& one : board.at("templating").at("list")) {
    if (one.at("name") == name) return &one;
  }
  return nullptr;
}

Complaints template_datasource(const Board& board) {
  const Board* const found = variable(board, "datasource");
  if (found == nullptr) return {"no variable \"datasource\""};
  Complaints complaints;
  if (found->at("type") != "datasource") complaints.emplace_back("it is no data source");
  if (found->at("query") != "prometheus") complaints.emplace_back("it is not Prometheus");
  if (found->at("label") != "Data source") complaints.emplace_back("its label");
  return complaints;
}

Complaints template_query(const Board& board, const std::string& name, const std::string& label) {
  const Board* const found = variable(board, name);
  if (found == nullptr) return {"no variable \"" + name + "\""};
  Complaints complaints;
  if (found->at("type") != "query") complaints.emplace_back("it is no query");
  if (found->at("datasource").at("uid") != "${datasource}") complaints.emplace_back("its source");
  if (found->at("label") != label) complaints.emplace_back("its label");
  if (found->at("multi") != true) complaints.emplace_back("one value only");
  if (found->value("allValue", "") != ".+") complaints.emplace_back("allValue is not .+");
  return complaints;
}

Complaints reload(const Board& board) {
  Complaints complaints;
  for (const Board& one : board.at("templating").at("list")) {
    if (one.at("type") == "query" && one.at("refresh") != 2) complaints.push_back(one.at("name"));
  }
  return complaints;
}

template <class Bad>
Complaints panels(const Board& board, Bad bad) {
  Complaints complaints;
  for (const Board& panel : panels_of(board)) {
    if (bad(panel)) complaints.push_back(panel.value("title", "a panel without a title"));
  }
  return complaints;
}

template <class Bad>
Complaints targets(const Board& board, Bad bad) {
  Complaints complaints;
  for (const Query& query : queries_of(board)) {
    if (bad(query.expression)) complaints.push_back(query.where + ": " + query.expression);
  }
  return complaints;
}

/// Every selector names the label.
bool lacks_matcher(const std::string& expression, const std::string& matcher) {
  static const std::regex selector(R"(\b(lockbench[a-z0-9_:]*|up)(\{[^}]*\})?)");
  std::sregex_iterator found(expression.begin(), expression.end(), selector);
  for (; found != std::sregex_iterator(); ++found) {
    if ((*found)[2].str().find(matcher) == std::string::npos) return true;
  }
  return false;
}

bool rates_over_a_fixed_time(const std::string& expression) {
  static const std::regex range(R"(\bi?rate\([^()]*\[([^\]]*)\])");
  std::sregex_iterator found(expression.begin(), expression.end(), range);
  for (; found != std::sregex_iterator(); ++found) {
    if ((*found)[1] != "$__rate_interval") return true;
  }
  return false;
}

/// Of these, the smallest is the worst: another aggregation would hide it.
bool hides_the_smallest(const std::string& expression) {
  static const std::regex hidden(
      R"((sum|max|avg)( by \([^)]*\))? ?\((lockbench:renewal_margin|lockbench_fairness_jain))");
  return std::regex_search(expression, hidden);
}

bool shows_a_bare_counter(const std::string& expression) {
  static const std::regex counter(R"((rate|increase)?\(?lockbench_[a-z_]+_(total|bucket|count)\b)");
  std::sregex_iterator found(expression.begin(), expression.end(), counter);
  for (; found != std::sregex_iterator(); ++found) {
    if (!(*found)[1].matched) return true;
  }
  return false;
}

}  // namespace

const std::vector<LintRule>& lint_rules() {
  static const std::vector<LintRule> rules = {
      {"template-datasource-rule", template_datasource},
      {"template-job-rule", [](const Board& board) { return template_query(board, "job", "Job"); }},
      {"template-instance-rule",
       [](const Board& board) { return template_query(board, "instance", "Instance"); }},
      {"template-on-time-change-reload-rule", reload},
      {"panel-datasource-rule",
       [](const Board& board) {
         return panels(board, [](const Board& panel) {
           return panel.at("datasource").at("uid") != "${datasource}";
         });
       }},
      {"panel-title-description-rule",
       [](const Board& board) {
         return panels(board, [](const Board& panel) {
           return panel.value("title", "").empty() || panel.value("description", "").size() < 40;
         });
       }},
      {"panel-units-rule",
       [](const Board& board) {
         return panels(board, [](const Board& panel) {
           const auto& defaults = panel.at("fieldConfig").at("defaults");
           return !known_units.contains(defaults.value("unit", ""));
         });
       }},
      {"target-job-rule",
       [](const Board& board) {
         return targets(board, [](const std::string& expression) {
           return lacks_matcher(expression, R"(job=~"$job")");
         });
       }},
      {"target-instance-rule",
       [](const Board& board) {
         return targets(board, [](const std::string& expression) {
           return lacks_matcher(expression, R"(instance=~"$instance")");
         });
       }},
      {"target-rate-interval-rule",
       [](const Board& board) { return targets(board, rates_over_a_fixed_time); }},
      {"target-counter-agg-rule",
       [](const Board& board) { return targets(board, shows_a_bare_counter); }},
      {"target-smallest-is-worst-rule",
       [](const Board& board) { return targets(board, hides_the_smallest); }},
  };
  return rules;
}

Complaints complaints(const std::string& rule, const Board& board) {
  for (const LintRule& one : lint_rules()) {
    if (one.name == rule) return one.check(board);
  }
  throw std::invalid_argument("no such rule: " + rule);
}

}  // namespace lockbench::test
