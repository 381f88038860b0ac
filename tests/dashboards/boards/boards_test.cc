#include "tests/support/boards.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>

#include "exporter/collect.h"
#include "strategies/registry.h"
#include "tests/folders.h"

namespace lockbench::test {
namespace {

using testing::IsEmpty;
using testing::Not;

const std::filesystem::path dashboards_folder = LOCKBENCH_SOURCE_DIR "/dashboards";

std::vector<Board> boards() { return read_boards(dashboards_folder / "grafana"); }

std::string text_of(const std::string& name) {
  std::ifstream file(dashboards_folder / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> exported() {
  std::set<std::string> names;
  const exporter::RunMetrics runs(all_strategies());
  for (const auto& family : exporter::collect(runs, {})) names.insert(family.name);
  exporter::WatchMetrics seen;
  for (const auto& family : exporter::collect(seen, {})) names.insert(family.name);
  return names;
}

std::set<std::string> recorded() {
  const std::string rules = text_of("prometheus/recording.yml");
  static const std::regex record(R"(record: (\S+))");
  std::set<std::string> names;
  std::sregex_iterator found(rules.begin(), rules.end(), record);
  for (; found != std::sregex_iterator(); ++found) names.insert((*found)[1]);
  return names;
}

/// The metrics that boards and rules query.
std::set<std::string> queried() {
  std::string text;
  for (const Board& board : boards()) {
    for (const Query& query : queries_of(board)) text += query.expression + "\n";
  }
  for (const char* rules : {"prometheus/recording.yml", "prometheus/alerts.yml"}) {
    static const std::regex no_metric(R"(- name:.*|job="[^"]*"|record:.*|runbook_url:.*)");
    text += std::regex_replace(text_of(rules), no_metric, "");
  }
  return metrics_in(text);
}

// Rules of Grafana's dashboard-linter, and our own for figures whose smallest value is the worst.

std::vector<std::string> wrong_variables(const Board& board) {
  const Board query = {{"type", "query"},
                       {"datasource", {{"uid", "${datasource}"}}},
                       {"multi", true},
                       {"allValue", ".+"},
                       {"refresh", 2}};
  std::map<std::string, Board> wanted = {
      {"datasource", {{"type", "datasource"}, {"query", "prometheus"}, {"label", "Data source"}}},
      {"job", query},
      {"instance", query}};
  wanted["job"]["label"] = "Job";
  wanted["instance"]["label"] = "Instance";
  std::vector<std::string> wrong;
  for (const Board& one : board.at("templating").at("list")) {
    Board right = one;
    if (const auto fields = wanted.extract(one.at("name").get<std::string>()); !fields.empty()) {
      right.merge_patch(fields.mapped());
    }
    const bool reloads = one.at("type") != "query" || one.at("refresh") == 2;
    if (right != one || !reloads) wrong.push_back("variable: " + one.dump());
  }
  for (const auto& [missing, fields] : wanted) wrong.push_back("variable: no " + missing);
  return wrong;
}

/// Whether some selector lacks the label.
bool lacks_matcher(const std::string& expression, const std::string& matcher) {
  static const std::regex selector(R"(\b(lockbench[a-z0-9_:]*|up)(\{[^}]*\})?)");
  std::sregex_iterator found(expression.begin(), expression.end(), selector);
  for (; found != std::sregex_iterator(); ++found) {
    if ((*found)[2].str().find(matcher) == std::string::npos) return true;
  }
  return false;
}

bool rates_over_a_fixed_time(const std::string& expression) {
  static const std::regex rate(R"(\bi?rate\([^()]*\[(?!\$__rate_interval\]))");
  return std::regex_search(expression, rate);
}

/// Whether it uses an aggregation that hides the smallest value.
bool hides_the_smallest(const std::string& expression) {
  static const std::regex hidden(
      R"((sum|max|avg)( by \([^)]*\))? ?\((lockbench:renewal_margin|lockbench_fairness_jain))");
  return std::regex_search(expression, hidden);
}

bool shows_a_bare_counter(const std::string& expression) {
  static const std::regex counter(R"((rate|increase)?\(?lockbench_[a-z_]+_(total|bucket|count)\b)");
  std::sregex_iterator found(expression.begin(), expression.end(), counter);
  return std::any_of(found, std::sregex_iterator(),
                     [](const auto& one) { return !one[1].matched; });
}

/// Violations: the rule's name and the place.
std::vector<std::string> complaints(const Board& board) {
  static const std::set<std::string> units = {"short", "none",  "percentunit", "s",
                                              "ops",   "bytes", "table"};
  std::vector<std::string> all = wrong_variables(board);
  for (const Board& panel : panels_of(board)) {
    const auto check = [&](const char* rule, bool broken) {
      if (broken) all.push_back(rule + (": " + panel.value("title", "")));
    };
    check("panel-datasource", panel.at("datasource").at("uid") != "${datasource}");
    check("panel-title-description",
          panel.value("title", "").empty() || panel.value("description", "").size() < 40);
    const Board& defaults = panel.at("fieldConfig").at("defaults");
    check("panel-units", !units.contains(defaults.value("unit", "")));
  }
  for (const Query& query : queries_of(board)) {
    const auto check = [&](const char* rule, bool broken) {
      if (broken) all.push_back(rule + (": " + query.where + ": " + query.expression));
    };
    check("target-job", lacks_matcher(query.expression, R"(job=~"$job")"));
    check("target-instance", lacks_matcher(query.expression, R"(instance=~"$instance")"));
    check("target-rate-interval", rates_over_a_fixed_time(query.expression));
    check("target-counter-agg", shows_a_bare_counter(query.expression));
    check("target-smallest-is-worst", hides_the_smallest(query.expression));
  }
  return all;
}

TEST(BoardsTest, FollowTheLintersRules) {
  for (const Board& board : boards()) EXPECT_THAT(complaints(board), IsEmpty()) << board["title"];
}

TEST(BoardsTest, PanelsNeitherOverlapNorShareAnId) {
  for (const Board& board : boards()) {
    std::set<int> ids;
    std::map<std::pair<int, int>, std::string> cells;
    for (const Board& panel : board.at("panels")) {
      EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << panel.at("title");
      const Board& place = panel.at("gridPos");
      const int left = place.at("x"), top = place.at("y");
      EXPECT_LE(left + place.at("w").get<int>(), 24) << panel.at("title");
      for (int x = left; x < left + place.at("w").get<int>(); ++x) {
        for (int y = top; y < top + place.at("h").get<int>(); ++y) {
          const auto [cell, free] = cells.emplace(std::pair(x, y), panel.at("title"));
          EXPECT_TRUE(free) << panel.at("title") << " lies on " << cell->second;
        }
      }
    }
  }
}

TEST(BoardsTest, EveryMetricQueriedIsExported) {
  const auto families = exported();
  const auto rules = recorded();
  for (const std::string& metric : queried()) {
    EXPECT_TRUE(rules.contains(metric) || families.contains(metric) ||
                families.contains(family_of(metric)))
        << metric;
  }
}

TEST(BoardsTest, EveryMetricExportedIsShown) {
  std::set<std::string> shown;
  for (const Board& board : boards()) {
    for (const Query& query : queries_of(board)) {
      for (const std::string& metric : metrics_in(query.expression)) {
        shown.insert(metric);
        shown.insert(family_of(metric));
      }
    }
  }
  for (const std::string& metric : exported()) EXPECT_TRUE(shown.contains(metric)) << metric;
}

TEST(ProbeBoardTest, AsksOfWhichDeployment) {
  for (const Board& board : boards()) {
    if (board.at("uid") != "lockbench-probe") continue;
    for (const Query& query : queries_of(board)) {
      if (query.expression.starts_with("min by (instance) (up{"))
        continue;  // about the probe
                   // itself
      EXPECT_THAT(query.expression, testing::HasSubstr("deployment=~\"$deployment\""));
    }
  }
}

TEST(WatchBoardTest, AsksOfWhichServerOfWhichDeployment) {
  for (const Board& board : boards()) {
    if (board.at("uid") != "lockbench-watch") continue;
    std::set<std::string> panels;
    for (const Board& panel : panels_of(board)) {
      std::string queries;
      for (const Board& target : panel.at("targets")) {
        const std::string query = target.at("expr");
        queries += query + "\n";
        // About all servers of a watch.
        if (query.starts_with("max by (instance) (lockbench_watch_unfollowed_locks{")) continue;
        EXPECT_THAT(query,
                    testing::HasSubstr("endpoint=~\"$endpoint\", deployment=~\"$deployment\""));
      }
      EXPECT_TRUE(panels.insert(queries).second) << panel.at("title") << " repeats another panel";
    }
  }
}

/// The boards that are read when something is wrong now.
std::vector<Board> boards_of_services() {
  std::vector<Board> all = boards();
  std::erase_if(all, [](const Board& board) {
    return board.at("uid") != "lockbench-probe" && board.at("uid") != "lockbench-watch";
  });
  return all;
}

TEST(BoardsOfServices, ShowTheStateNowAndNotTheLastOneKnown) {
  for (const Board& board : boards_of_services()) {
    for (const Board& panel : panels_of(board)) {
      if (panel.at("type") != "stat") continue;
      EXPECT_EQ(panel.at("fieldConfig").at("defaults").value("noValue", ""), "no data")
          << panel.at("title");
      for (const Board& target : panel.at("targets")) {
        EXPECT_TRUE(target.at("instant").get<bool>()) << panel.at("title");
        EXPECT_FALSE(target.at("range").get<bool>()) << panel.at("title");
      }
    }
  }
}

TEST(BoardsOfServices, MarkAlertsAndLinkToTheRunbook) {
  const std::string runbook = text_of("../docs/alerts.md");
  std::set<std::string> anchors;
  static const std::regex heading("\n#+ ([^\n]+)");
  for (std::sregex_iterator at(runbook.begin(), runbook.end(), heading), end; at != end; ++at) {
    std::string anchor = (*at)[1];
    std::ranges::transform(anchor, anchor.begin(), [](char c) { return std::tolower(c); });
    anchors.insert(anchor);
  }
  for (const Board& board : boards_of_services()) {
    const std::string annotation = board.at("annotations").at("list").at(1).at("expr");
    EXPECT_THAT(annotation, testing::HasSubstr("ALERTS{alertname=~\"Lockbench.*\""));
    int links = 0;
    for (const Board& panel : panels_of(board)) {
      for (const Board& link : panel.value("links", Board::array())) {
        ++links;
        const std::string url = link.at("url");
        EXPECT_THAT(url, testing::StartsWith("${runbook}#"));
        EXPECT_TRUE(anchors.contains(url.substr(url.find('#') + 1))) << url;
      }
      EXPECT_TRUE(panel.at("type") != "stat" || panel.contains("links")) << panel.at("title");
    }
    EXPECT_GT(links, 5) << board.at("title");
  }
}

/// One alert of alerts.yml, with its text.
struct Alert {
  std::string name, text;
};

std::vector<Alert> alerts() {
  const std::string rules = text_of("prometheus/alerts.yml");
  static const std::regex begin(R"(- alert: (\S+))");
  std::vector<Alert> found;
  for (std::sregex_iterator at(rules.begin(), rules.end(), begin), end; at != end; ++at) {
    const auto place = static_cast<std::size_t>(at->position());
    const std::size_t next = rules.find("- alert: ", place + 1);
    found.push_back({(*at)[1], rules.substr(place, next - place)});
  }
  return found;
}

TEST(AlertsTest, HaveASectionInTheRunbook) {
  const std::string runbook = text_of("../docs/alerts.md");
  for (const Alert& alert : alerts()) {
    std::string anchor = alert.name;
    std::ranges::transform(anchor, anchor.begin(), [](char c) { return std::tolower(c); });
    EXPECT_THAT(alert.text, testing::HasSubstr("runbook_url: docs/alerts.md#" + anchor + "\n"))
        << alert.name;
    EXPECT_THAT(runbook, testing::HasSubstr("\n### " + alert.name + "\n"));
  }
}

TEST(AlertsTest, AreTestedFiringAndSilent) {
  const std::string tests = text_of("prometheus/alerts_test.yml");
  static const std::regex check(R"(alertname: (\S+)\n( *exp_alerts:)?)");
  std::set<std::string> firing, silent;
  for (std::sregex_iterator at(tests.begin(), tests.end(), check), end; at != end; ++at) {
    ((*at)[2].matched ? firing : silent).insert((*at)[1]);
  }
  EXPECT_THAT(alerts(), Not(IsEmpty()));
  for (const Alert& alert : alerts()) {
    EXPECT_TRUE(firing.contains(alert.name)) << alert.name << " is never seen to fire";
    EXPECT_TRUE(silent.contains(alert.name)) << alert.name << " is never seen to be silent";
  }
}

TEST(LintTest, EachRuleFindsWhatBreaksIt) {
  const Board good = boards().front();
  const auto with = [&](const auto& change) {
    Board bad = good;
    change(bad);
    return bad;
  };
  const auto broken_query = [&](const std::string& expression) {
    return with([&](Board& board) { board["panels"][1]["targets"][0]["expr"] = expression; });
  };
  const auto broken_panel = [&](const std::string& key, const Board& value) {
    return with([&](Board& board) { board["panels"][1][key] = value; });
  };
  const auto broken_variable = [&](int number, const std::string& key, const Board& value) {
    return with([&](Board& board) {
      board["templating"]["list"][static_cast<std::size_t>(number)][key] = value;
    });
  };
  const std::vector<std::pair<std::string, Board>> bad = {
      {"variable", broken_variable(0, "label", "Source")},
      {"variable", broken_variable(1, "multi", false)},
      {"variable", broken_variable(2, "allValue", ".*")},
      {"variable", broken_variable(1, "refresh", 1)},
      {"panel-datasource", broken_panel("datasource", {{"uid", "abc"}})},
      {"panel-title-description", broken_panel("description", "")},
      {"panel-units", broken_panel("fieldConfig", {{"defaults", {{"unit", "parsec"}}}})},
      {"target-job", broken_query("lockbench_holders{instance=~\"$instance\"}")},
      {"target-instance", broken_query("up{job=~\"$job\"} + lockbench_holders")},
      {"target-rate-interval", broken_query("rate(lockbench_sections_total[5m])")},
      {"target-counter-agg", broken_query("sum(lockbench_sections_total{job=~\"$job\"})")},
      {"target-smallest-is-worst", broken_query("max by (strategy) (lockbench_fairness_jain)")},
  };
  for (const auto& [rule, board] : bad) {
    EXPECT_THAT(complaints(board), testing::Contains(testing::StartsWith(rule + ": "))) << rule;
  }
}

}  // namespace
}  // namespace lockbench::test
