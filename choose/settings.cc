#include "choose/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "choose/lifetime.h"
#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using results::human_count;
using results::human_number;
using results::human_seconds;

std::optional<Duration> usual_work(const Requirements& requirements) {
  return requirements.work_p50 ? requirements.work_p50 : requirements.work_p99;
}

bool can_wait_by(const Traits& traits, WaitKind kind) {
  const auto& choices = traits.waiting_choices;
  return std::find(choices.begin(), choices.end(), kind) != choices.end();
}

/// "of a grant's mean wait of 456 µs, 93 % were asleep (FILE)".
std::string waits_measured(const Descriptor& strategy, const Requirements& requirements,
                           const Evidence& evidence) {
  const auto measured = evidence.runs_of(strategy.name, requirements);
  if (measured.runs.empty()) return "not measured in the files";
  const results::WaitAnatomy& wait = measured.runs.front()->wait;
  const double all = wait.round_trip_seconds + wait.backoff_seconds + wait.notified_seconds;
  if (!(all > 0)) return "lockbench list";
  return fmt::format(
      "of a grant's mean wait of {} {:.0f} % were asleep between tries, {:.0f} % "
      "waiting to be told ({})",
      human_seconds(all), 100 * wait.backoff_seconds / all, 100 * wait.notified_seconds / all,
      measured.name);
}

/// A wait that adds little to the work, but a millisecond at least: the store is not to be flooded.
WaitPolicy backoff_for(const Requirements& requirements) {
  const Duration work = usual_work(requirements).value_or(400ms);
  const auto max = std::clamp(std::chrono::floor<std::chrono::milliseconds>(work / 4),
                              std::chrono::milliseconds(5), std::chrono::milliseconds(1000));
  return WaitPolicy::backoff(std::max<Duration>(1ms, max / 10), max);
}

Setting waiting(const Descriptor& strategy, const Requirements& requirements,
                const Evidence& evidence) {
  const Traits& traits = strategy.traits;
  Setting setting{.option = "--wait", .evidence = waits_measured(strategy, requirements, evidence)};
  const bool told =
      traits.waiting.kind == WaitKind::notify || traits.waiting.kind == WaitKind::queue;
  if (told) {
    setting.because =
        fmt::format("its waiters are told ({}): nothing to tune", to_string(traits.waiting.kind));
    return setting;
  }
  const int others = requirements.clients.value_or(1) - 1;
  if (others == 0 || !can_wait_by(traits, WaitKind::backoff)) {
    setting.because = fmt::format(
        "its own way ({}){}", to_string(traits.waiting),
        others == 0 ? ": no others want the lock at the same time" : ": it has no backoff");
    return setting;
  }
  const WaitPolicy policy = backoff_for(requirements);
  const double tries = others / (seconds(policy.max) / 2);
  setting.value = to_string(policy);
  setting.because = fmt::format(
      "full jitter keeps clients out of step; a handoff waits for the next try, about {} at most, "
      "and {} waiting clients send some {} tries a second",
      human_seconds(seconds(policy.max)), human_count(others), human_number(tries));
  return setting;
}

std::optional<Setting> acquire_timeout(const Descriptor& strategy, const Requirements& requirements,
                                       const Evidence& evidence) {
  const auto work = requirements.work_p99 ? requirements.work_p99 : requirements.work_p50;
  if (!work || requirements.clients.value_or(1) < 2) return std::nullopt;
  const int others = *requirements.clients - 1;
  // A day is the most that the option takes.
  const Duration longest = std::chrono::hours(24);
  const Duration queue = std::min<Duration>(*work, longest / others) * others;
  const Duration timeout =
      std::min<Duration>(std::chrono::ceil<std::chrono::seconds>(queue + queue / 4), longest);
  Setting setting{.option = "--acquire-timeout", .value = format_duration(timeout)};
  setting.because = fmt::format(
      "{} others ahead at {} each are {} on one lock, and a quarter on top; with more locks than "
      "one divide it by how many share one",
      human_count(others), format_duration(*work), human_seconds(seconds(*work) * others));
  if (timeout == longest) setting.because += "; a day is the most that there is";
  const auto measured = evidence.runs_of(strategy.name, requirements);
  if (strategy.traits.fair) {
    setting.evidence = "first come, first served: lockbench list";
  } else if (!measured.runs.empty()) {
    const results::Fairness& fairness = measured.runs.front()->fairness;
    setting.because += "; it is not fair, so that some wait longer";
    setting.evidence =
        fmt::format("Jain's index {}, longest wait {} ({})", human_number(fairness.jain),
                    human_seconds(fairness.longest_wait_seconds), measured.name);
  }
  return setting;
}

std::string quorum_costs(const Descriptor& strategy, const Evidence& evidence) {
  const auto measured = evidence.quorum();
  std::string text;
  for (const results::QuorumPoint& point : measured.points) {
    const bool healthy = point.down + point.frozen + point.slow == 0;
    if (point.strategy != strategy.name || !healthy || point.clients != 1) continue;
    if (point.acquire.count == 0) continue;
    text += fmt::format("{}{} nodes {}", text.empty() ? "acquire p50 on " : ", ", point.nodes,
                        human_seconds(point.acquire.p50));
  }
  return text.empty() ? "not measured in the files: lockbench quorum"
                      : fmt::format("{} ({})", text, measured.source);
}

void add_nodes(std::vector<Setting>& settings, const Descriptor& strategy, Duration ttl,
               const Evidence& evidence) {
  if (strategy.traits.nodes < 2) return;
  settings.push_back({"--nodes", "5",
                      "independent servers, none a replica of another: two may be gone; with 3 one",
                      quorum_costs(strategy, evidence)});
  const Duration timeout = std::min<Duration>(50ms, ttl / 20);
  settings.push_back({"--node-timeout", format_duration(timeout),
                      "so that a node that is gone uses up little of the TTL; above the slowest "
                      "round trip to a healthy node",
                      "lockbench run --help"});
}

void add_replicas(std::vector<Setting>& settings, const Descriptor& strategy,
                  const Evidence& evidence) {
  if (!strategy.traits.needs_replicas) return;
  std::string shown = "lockbench hazards failover --strategies " + std::string(strategy.name);
  if (const hazards::Scenario* failover = hazards::find_scenario("failover")) {
    const FaultReport report = evidence.report(*failover, strategy);
    shown = fmt::format("failover: {}; {}", report.outcome, where_shown(report, strategy));
  }
  settings.push_back({"--wait-replicas", "all",
                      "with fewer the replica that is promoted may not have the lock", shown});
}

}  // namespace

std::vector<Setting> settings_for(const Descriptor& strategy, const Requirements& requirements,
                                  const Evidence& evidence) {
  const Lifetime lifetime = lifetime_of(strategy, requirements, evidence);
  std::vector<Setting> settings = lifetime.settings;
  settings.push_back(waiting(strategy, requirements, evidence));
  if (auto timeout = acquire_timeout(strategy, requirements, evidence)) {
    settings.push_back(*std::move(timeout));
  }
  add_nodes(settings, strategy, lifetime.ttl, evidence);
  add_replicas(settings, strategy, evidence);
  return settings;
}

std::string check_command(const Descriptor& strategy, const Requirements& requirements,
                          const std::vector<Setting>& settings) {
  std::string command = fmt::format("lockbench run {}", strategy.name);
  if (requirements.clients) command += fmt::format(" --clients {}", *requirements.clients);
  if (requirements.rate) command += fmt::format(" --rate {}", *requirements.rate);
  if (const auto work = usual_work(requirements)) {
    command += fmt::format(" --hold {}", format_duration(*work));
  }
  for (const Setting& setting : settings) {
    if (!setting.value.empty()) command += fmt::format(" {} {}", setting.option, setting.value);
  }
  for (const results::Threshold& slo : requirements.slos) {
    command += fmt::format(" --threshold '{}'", slo.text);
  }
  return command;
}

}  // namespace lockbench::choose
