#include "choose/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using results::human_count;
using results::human_number;
using results::human_seconds;

/// How long a grant lasts, and what prolongs it.
struct Lifetime {
  Duration ttl{};  ///< 0: it never expires
  std::vector<Setting> settings;
};

/// A TTL without renewal, as a multiple of the work's p99. It leaves room for work beyond the p99
/// and for a client that pauses.
constexpr int kMargin = 3;
/// The shortest TTL with renewal every third of it, which leaves time for two more attempts.
constexpr Duration kRenewedTtl = 3s;
/// The same, as a multiple of the longest measured delay of a renewal.
constexpr int kLatenesses = 10;
/// Ratio of p99 to p50 above which renewal is better than a long TTL.
constexpr int kVariesMuch = 10;
constexpr int kCapMargin = 20;

std::string outcome_at(std::string_view scenario, const Descriptor& strategy,
                       const Evidence& evidence) {
  const hazards::Scenario* found = hazards::find_scenario(scenario);
  if (found == nullptr) return "lockbench list";
  const FaultReport report = evidence.report(*found, strategy);
  return fmt::format("{}: {}; {}", scenario, report.outcome, where_shown(report, strategy));
}

bool falls_to(std::string_view scenario, const Descriptor& strategy, const Evidence& evidence) {
  const hazards::Scenario* found = hazards::find_scenario(scenario);
  return found != nullptr && evidence.report(*found, strategy).harmful;
}

bool varies_much(const Requirements& requirements) {
  const auto& p50 = requirements.work_p50;
  const auto& p99 = requirements.work_p99;
  return p50 && p99 && *p50 > Duration::zero() && *p99 >= kVariesMuch * *p50;
}

/// Rounded up to whole seconds if the store counts in seconds, or if it is long.
Duration rounded(Duration ttl, const Traits& traits) {
  if (traits.ttl_in_seconds || ttl > 10s) return std::chrono::ceil<std::chrono::seconds>(ttl);
  return 100ms * ((ttl + 100ms - 1ns) / 100ms);
}

/// The point that held as many locks as there are clients, or the next larger one.
const results::RenewalPoint* point_for(const std::vector<results::RenewalPoint>& points,
                                       std::uint64_t clients) {
  const results::RenewalPoint* found = nullptr;
  for (const results::RenewalPoint& point : points) {
    if (point.mode != "batched" || point.held < clients || point.slip.count == 0) continue;
    if (found == nullptr || point.held < found->held) found = &point;
  }
  return found;
}

Setting renewed_ttl(const Descriptor& strategy, const Requirements& requirements,
                    const Evidence& evidence) {
  Duration ttl = kRenewedTtl;
  std::string lateness = "the files have no delays of renewals: lockbench renewal measures them";
  const auto measured = evidence.renewal();
  const auto clients = static_cast<std::uint64_t>(requirements.clients.value_or(1));
  if (const auto* point = point_for(measured.points, clients)) {
    const double worst = std::min(point->slip.max, 3600.0);
    ttl = std::max(ttl, std::chrono::duration_cast<Duration>(
                            std::chrono::duration<double>(kLatenesses * worst)));
    lateness = fmt::format("with {} locks held, renewals were at most {} late ({})",
                           human_count(static_cast<double>(point->held)),
                           human_seconds(point->slip.max), measured.source);
  }
  ttl = rounded(ttl, strategy.traits);
  return {"--ttl", format_duration(ttl),
          fmt::format("{} covers work of any length, so the TTL can be short: after a crash "
                      "the lock stays blocked for up to {}, and a holder that pauses for longer "
                      "loses it",
                      strategy.traits.expiry == Expiry::session ? "the session" : "renewal",
                      format_duration(ttl)),
          fmt::format("{}; {}", lateness, outcome_at("crash-holding", strategy, evidence))};
}

Setting outlasting_ttl(const Descriptor& strategy, const Requirements& requirements,
                       const Evidence& evidence) {
  const std::string shown = outcome_at("overrun-holding", strategy, evidence);
  const auto work = requirements.work_p99 ? requirements.work_p99 : requirements.work_p50;
  if (!work) {
    return {"--ttl", "10s", "lockbench's default; --work-time-p99 gives a TTL that fits the work",
            shown};
  }
  const Duration ttl = std::max<Duration>(rounded(kMargin * *work, strategy.traits), 100ms);
  return {"--ttl", format_duration(ttl),
          fmt::format("{} × the work's {} of {}: work that takes longer loses the lock, and a "
                      "crash blocks the lock for this long",
                      kMargin, requirements.work_p99 ? "p99" : "p50", format_duration(*work)),
          shown};
}

Setting cap(const Descriptor& strategy, const Requirements& requirements, Duration ttl,
            const Evidence& evidence) {
  const Duration longest = std::chrono::ceil<std::chrono::seconds>(
      std::max<Duration>(kCapMargin * *requirements.work_p99, 3 * ttl));
  return {"--renew-cap", format_duration(longest),
          fmt::format("{} × the work's p99: without a cap a holder that hangs keeps the lock "
                      "forever",
                      kCapMargin),
          fmt::format("{}; {}", outcome_at("runaway-holder", strategy, evidence),
                      outcome_at("runaway-holder-capped", strategy, evidence))};
}

/// Without renewal the TTL must outlast the work. With renewal, a crash blocks the lock for one
/// TTL.
Lifetime lifetime_of(const Descriptor& strategy, const Requirements& requirements,
                     const Evidence& evidence) {
  const Traits& traits = strategy.traits;
  Lifetime lifetime;
  if (traits.expiry == Expiry::none) {
    lifetime.settings.push_back({"--ttl", "",
                                 "it never expires: after a crash it must be removed by hand",
                                 outcome_at("crash-holding", strategy, evidence)});
    return lifetime;
  }
  const bool by_itself = traits.renews || traits.expiry == Expiry::session;
  const bool renewed = by_itself || (traits.renewable && varies_much(requirements));
  lifetime.settings.push_back(renewed ? renewed_ttl(strategy, requirements, evidence)
                                      : outlasting_ttl(strategy, requirements, evidence));
  lifetime.ttl = parse_duration(lifetime.settings.back().value).value_or(10s);
  if (renewed && !by_itself) {
    lifetime.settings.push_back(
        {"--renew", "auto", "every third of the TTL: the work time varies too much for a fixed TTL",
         outcome_at("overrun-holding", strategy, evidence)});
  }
  if (renewed && traits.renewable && requirements.work_p99 &&
      falls_to("runaway-holder", strategy, evidence)) {
    lifetime.settings.push_back(cap(strategy, requirements, lifetime.ttl, evidence));
  }
  return lifetime;
}

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
      "waiting for a notification ({})",
      human_seconds(all), 100 * wait.backoff_seconds / all, 100 * wait.notified_seconds / all,
      measured.name);
}

/// Short compared with the work, but at least a millisecond, so that polling does not flood the
/// store.
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
  const bool notified =
      traits.waiting.kind == WaitKind::notify || traits.waiting.kind == WaitKind::queue;
  if (notified) {
    setting.because = fmt::format("its waiters are notified ({}): nothing to tune",
                                  to_string(traits.waiting.kind));
    return setting;
  }
  const int others = requirements.clients.value_or(1) - 1;
  if (others == 0 || !can_wait_by(traits, WaitKind::backoff)) {
    setting.because = fmt::format(
        "its default ({}){}", to_string(traits.waiting),
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
      "{} others ahead at {} each take {} on one lock, plus a quarter; with several locks count "
      "only the clients that share one",
      human_count(others), format_duration(*work), human_seconds(seconds(*work) * others));
  if (timeout == longest) setting.because += "; a day is the longest allowed";
  const auto measured = evidence.runs_of(strategy.name, requirements);
  if (strategy.traits.fair) {
    setting.evidence = "first come, first served: lockbench list";
  } else if (!measured.runs.empty()) {
    const results::Fairness& fairness = measured.runs.front()->fairness;
    setting.because += "; it is not fair, so some wait longer";
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
    if (point.strategy != strategy.name || !point.healthy() || point.clients != 1) continue;
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
  settings.push_back(
      {"--nodes", "5",
       "independent servers, not replicas of each other: 5 tolerate the loss of two, 3 of one",
       quorum_costs(strategy, evidence)});
  const Duration timeout = std::min<Duration>(50ms, ttl / 20);
  settings.push_back({"--node-timeout", format_duration(timeout),
                      "short, so that a dead node uses up little of the TTL; above the slowest "
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
