#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "results/tables/experiments.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

using Points = std::vector<QuorumPoint>;
using Lines = std::vector<std::string>;

/// Two digits at least, however small.
std::string factor(double value) {
  return value > 0 && value < 0.1 ? fmt::format("{:.2g}", value) : human_number(value);
}

std::string times(double value, double reference) {
  return reference > 0 ? factor(value / reference) + " ×" : "– ×";
}

std::string with_clients(std::string_view text, std::uint64_t clients) {
  return fmt::format("{}, {} client{}", text, clients, clients == 1 ? "" : "s");
}

bool granted_any(const QuorumPoint& point) { return point.acquire.count > 0; }

const QuorumPoint* find(const Points& points, std::string_view strategy, std::uint64_t nodes,
                        std::uint64_t clients) {
  const auto found = std::find_if(points.begin(), points.end(), [&](const QuorumPoint& point) {
    return point.strategy == strategy && point.nodes == nodes && point.clients == clients &&
           point.healthy() && granted_any(point);
  });
  return found == points.end() ? nullptr : &*found;
}

/// The strategies on a single node, with which the others are compared.
Lines references(const Points& points) {
  Lines names;
  for (const QuorumPoint& point : points) {
    const bool known = std::find(names.begin(), names.end(), point.strategy) != names.end();
    const bool quorum = std::any_of(points.begin(), points.end(), [&](const QuorumPoint& other) {
      return other.strategy == point.strategy && (other.nodes > 1 || other.validity.count > 0);
    });
    if (!known && !quorum) names.push_back(point.strategy);
  }
  return names;
}

std::string faults(const QuorumPoint& point) {
  Lines words;
  const auto add = [&](std::uint64_t nodes, const std::string& what) {
    if (nodes > 0) words.push_back(fmt::format("{} of {} nodes {}", nodes, point.nodes, what));
  };
  add(point.down, "down");
  add(point.frozen, "frozen");
  add(point.slow, human_seconds(point.slow_seconds) + " slower");
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string place(const QuorumPoint& point) {
  if (point.validity.count == 0) return point.strategy;
  return fmt::format("{} on {} node{}", point.strategy, point.nodes, point.nodes == 1 ? "" : "s");
}

/// "redlock on 5 nodes, 1 client: 6 × the acquire p50 of redis-set-nx-lua (60 µs), 2 × that of
/// ...".
std::string against(const QuorumPoint& point, const std::vector<const QuorumPoint*>& others) {
  const QuorumPoint& single = *others.front();
  Lines parts = {fmt::format("{} the acquire p50 of {} ({})",
                             times(point.acquire.p50, single.acquire.p50), single.strategy,
                             human_seconds(point.acquire.p50))};
  for (std::size_t i = 1; i < others.size(); ++i) {
    parts.push_back(fmt::format("{} that of {}", times(point.acquire.p50, others[i]->acquire.p50),
                                others[i]->strategy));
  }
  parts.push_back(fmt::format("{} its sections/s",
                              times(point.sections_per_second, single.sections_per_second)));
  const double more = point.commands_per_section - single.commands_per_section;
  parts.push_back(fmt::format("{} commands a section ({}{})",
                              human_number(point.commands_per_section), more < 0 ? "−" : "+",
                              human_number(std::abs(more))));
  if (point.split_votes > 0) {
    parts.push_back(fmt::format("{} rounds a grant, {} split votes",
                                human_number(point.rounds_per_grant),
                                human_count(static_cast<double>(point.split_votes))));
  }
  return fmt::format("{}: {}", with_clients(place(point), point.clients), fmt::join(parts, ", "));
}

void compare_with_references(const Points& points, Lines& lines) {
  const Lines names = references(points);
  for (const QuorumPoint& point : points) {
    if (!point.healthy() || !granted_any(point)) continue;
    std::vector<const QuorumPoint*> others;
    for (const std::string& name : names) {
      if (point.strategy == name) break;  // later references are compared with this one
      if (const auto* other = find(points, name, 1, point.clients)) others.push_back(other);
    }
    if (others.empty()) continue;
    lines.push_back(against(point, others));
  }
}

/// The difference between the smallest and the largest quorum, for each node.
void cost_of_a_node(const Points& points, Lines& lines) {
  std::vector<std::pair<std::string, std::uint64_t>> said;
  for (const QuorumPoint& few : points) {
    const std::pair key{few.strategy, few.clients};
    if (!few.healthy() || !granted_any(few) ||
        std::find(said.begin(), said.end(), key) != said.end()) {
      continue;
    }
    const QuorumPoint* many = &few;
    for (const QuorumPoint& other : points) {
      const bool same = other.strategy == few.strategy && other.clients == few.clients;
      if (same && other.healthy() && granted_any(other) && other.nodes > many->nodes) many = &other;
    }
    if (many->nodes <= few.nodes) continue;
    said.push_back(key);
    const auto more = static_cast<double>(many->nodes - few.nodes);
    const double seconds =
        many->node_cost_seconds.value_or((many->acquire.p50 - few.acquire.p50) / more);
    const double commands = (many->commands_per_section - few.commands_per_section) / more;
    lines.push_back(
        fmt::format("each further node costs {}: {}, {} commands a section",
                    with_clients(few.strategy, few.clients),
                    cost_text(seconds, many->node_cost_interval, Unit::seconds, "of acquire p50"),
                    human_number(commands)));
  }
}

void compare_with_healthy(const Points& points, Lines& lines) {
  for (const QuorumPoint& point : points) {
    if (point.healthy()) continue;
    const std::string what = fmt::format("{} with {}", point.strategy, faults(point));
    const QuorumPoint* before = find(points, point.strategy, point.nodes, point.clients);
    if (!granted_any(point)) {
      lines.push_back(what + ": nothing was granted");
    } else if (before != nullptr) {
      lines.push_back(fmt::format("{}: {} its healthy sections/s, acquire p50 {}, p99 {}", what,
                                  times(point.sections_per_second, before->sections_per_second),
                                  human_seconds(point.acquire.p50),
                                  human_seconds(point.acquire.p99)));
    }
  }
}

const std::vector<Field<QuorumPoint>>& quorum_fields() {
  const auto slow = [](const QuorumPoint& point) -> Cell {
    if (point.slow == 0) return point.slow;
    const std::string by = human_seconds(point.slow_seconds);
    return {point.slow, Tone::plain, fmt::format("{} by {}", point.slow, by)};
  };
  static const std::vector<Field<QuorumPoint>> fields{
      {{"strategy", "", "strategy"}, &QuorumPoint::strategy},
      {{"nodes", "", "nodes", Unit::count}, &QuorumPoint::nodes},
      {{"down", "", "down", Unit::count, 3}, &QuorumPoint::down},
      {{"frozen", "", "frozen", Unit::count, 4}, &QuorumPoint::frozen},
      {{"slow", "", "slow", Unit::count, 5}, slow},
      {{"slow_seconds", "", "slow_seconds", Unit::seconds, 0, Show::if_asked},
       &QuorumPoint::slow_seconds},
      {{"clients", "", "clients", Unit::count, 2}, &QuorumPoint::clients},
      {{"sections_per_second", "", "sections/s", Unit::number, 8},
       &QuorumPoint::sections_per_second},
      {{"acquire_p50_seconds", "acquire", "p50", Unit::seconds, 1},
       of(&QuorumPoint::acquire, &Distribution::p50)},
      {{"acquire_p99_seconds", "acquire", "p99", Unit::seconds, 7},
       of(&QuorumPoint::acquire, &Distribution::p99)},
      {{"acquire_max_seconds", "acquire", "max", Unit::seconds, 11},
       of(&QuorumPoint::acquire, &Distribution::max)},
      {{"commands_per_section", "cmds/", "section", Unit::number, 9},
       &QuorumPoint::commands_per_section},
      {{"split_votes", "split", "votes", Unit::count, 12, Show::if_any}, &QuorumPoint::split_votes},
      {{"rounds_per_grant", "rounds/", "grant", Unit::number, 13}, &QuorumPoint::rounds_per_grant},
      {{"granted_share", "", "granted", Unit::share, 10}, &QuorumPoint::granted_share},
      {{"validity_p50_seconds", "validity", "p50", Unit::seconds, 14},
       of(&QuorumPoint::validity, &Distribution::p50)},
      {{"validity_min_seconds", "validity", "min", Unit::seconds, 15},
       of(&QuorumPoint::validity, &Distribution::min)},
      {{"node_cost_seconds", "", "node_cost_seconds", Unit::seconds, 0, Show::if_asked},
       &QuorumPoint::node_cost_seconds},
      {{"node_cost_low_seconds", "", "node_cost_low_seconds", Unit::seconds, 0, Show::if_asked},
       of(&QuorumPoint::node_cost_interval, &Interval::low)},
      {{"node_cost_high_seconds", "", "node_cost_high_seconds", Unit::seconds, 0, Show::if_asked},
       of(&QuorumPoint::node_cost_interval, &Interval::high)},
      {{"violated", "", "violated", Unit::text, 6}, &QuorumPoint::violated},
  };
  return fields;
}

}  // namespace

Table point_table(const std::vector<QuorumPoint>& points) {
  return table_of(quorum_fields(), points);
}

std::vector<std::string> violations(const std::vector<QuorumPoint>& points) {
  Lines lines;
  for (const QuorumPoint& point : points) {
    if (!point.violated.value_or(false)) continue;
    lines.push_back(fmt::format("{}{}: exclusion was violated",
                                with_clients(place(point), point.clients),
                                point.healthy() ? "" : ", with " + faults(point)));
  }
  return lines;
}

std::vector<std::string> findings(const std::vector<QuorumPoint>& points) {
  Lines lines = violations(points);
  compare_with_references(points, lines);
  cost_of_a_node(points, lines);
  compare_with_healthy(points, lines);
  return lines;
}

}  // namespace lockbench::results
