#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "choose/answer.h"
#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using results::human_count;
using results::human_number;
using results::human_seconds;

/// A TTL without renewal, as a multiple of the work's p99. It leaves room for work beyond the p99
/// and for a client that pauses.
constexpr int kMargin = 3;
/// A TTL is this many times the longest stall seen.
constexpr int kStalls = 10;
constexpr Duration kShortestTtl = 1s;
/// The shortest TTL with renewal every third of it, which leaves time for two more attempts.
constexpr Duration kRenewedTtl = 3s;
/// Ratio of p99 to p50 above which renewal is better than a long TTL.
constexpr int kVariesMuch = 10;
constexpr int kCapMargin = 20;
/// A TTL is this many times the longest fault of its holder: two thirds of it are left just before
/// a renewal.
constexpr int kFaults = 2;
/// Longer sections are not suited to a load.
constexpr Duration kLongestTried = 500ms;
/// Fewer sections a second are not suited to a load either.
constexpr double kSlowestTried = 0.1;

std::string outcome_at(std::string_view scenario, const Descriptor& strategy,
                       const Evidence& evidence) {
  const FaultReport report = evidence.report(scenario, strategy);
  return fmt::format("{}: {}; {}", scenario, report.outcome, where_shown(report, strategy));
}

bool varies_much(const Requirements& requirements) {
  const auto& p50 = requirements.work_p50;
  const auto& p99 = requirements.work_p99;
  return p50 && p99 && *p50 > Duration::zero() && *p99 >= kVariesMuch * *p50;
}

/// Rounded up to whole seconds if the store counts in seconds, as etcd does, or the TTL is long.
Duration rounded(Duration ttl, const Traits& traits) {
  const bool session = traits.expiry == Expiry::session;
  if (traits.ttl_in_seconds || session || ttl > 3s)
    return std::chrono::ceil<std::chrono::seconds>(ttl);
  return 100ms * ((ttl + 100ms - 1ns) / 100ms);
}

Duration to_duration(double seconds) {
  // NaN counts as no stall.
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(seconds > 0 ? std::min(seconds, 3600.0) : 0));
}

/// The longest time that a client waited for the answer to its release: the client, its server or
/// the machine stalled. On a network, the round trip is added.
struct Stall {
  Duration longest{};
  std::string evidence;  ///< empty: none was measured
};

Stall longest_stall(const Descriptor& strategy, const Requirements& requirements,
                    const Evidence& evidence) {
  Stall stall;
  if (const results::Run* slowest = evidence.slowest_release(strategy.name)) {
    stall = {to_duration(slowest->release.max),
             "the longest stall seen in a release was " + human_seconds(slowest->release.max)};
  }
  const Duration rtt = requirements.rtt.value_or(0ns);
  if (rtt <= 0ns) return stall;
  stall.longest += rtt;
  stall.evidence += fmt::format("{}with a round trip of {}", stall.evidence.empty() ? "" : ", and ",
                                format_duration(rtt));
  return stall;
}

/// The longest fault that a grant must outlast. Servers that are away matter only to renewals.
Duration longest_fault(const Descriptor& strategy, const Requirements& requirements, bool renewed) {
  const Duration pause = requirements.pause.value_or(0ns);
  const bool ends_before = requirements.work_p99.value_or(kRenewedTtl) < kRenewedTtl / 3;
  if (!renewed || ends_before) return pause;
  // Where members agree, a new leader renews all sessions.
  const bool members = store_traits(strategy.backend).members_agree;
  const Duration failover = members ? 0ns : requirements.failover.value_or(0ns);
  return std::max({pause, requirements.outage.value_or(0ns), failover});
}

/// What a TTL must outlast.
struct Bound {
  Duration length{};
  std::string why;
};

Bound times(int factor, Duration of, std::string_view what, Duration beside = {}) {
  const Duration length = beside + factor * of;
  return {length,
          fmt::format("{}{} × {} ({}) = {}", beside > 0ns ? format_duration(beside) + " + " : "",
                      factor, human_seconds(seconds(of)), what, human_seconds(seconds(length)))};
}

Bound longest_of(const std::vector<Bound>& bounds) {
  return *std::ranges::max_element(bounds, {}, &Bound::length);
}

std::string outlasts(Duration fault) {
  return fault > 0ns ? fmt::format("outlasts a fault of {}; ", human_seconds(seconds(fault))) : "";
}

/// The TTL of a lock that a session or renewal keeps alive.
Setting renewed_ttl(const Descriptor& strategy, const Requirements& requirements,
                    const Evidence& evidence) {
  const Stall stall = longest_stall(strategy, requirements, evidence);
  const SafeSession& safe = strategy.safe_session;
  const Duration least = std::max(kRenewedTtl, safe.shortest);
  const Duration fault = longest_fault(strategy, requirements, true);
  const Bound bound = longest_of(
      {{least, safe.because.empty() ? "the minimum"
                                    : fmt::format("{} ({})", format_duration(least), safe.because)},
       times(kStalls, stall.longest, "stalls"),
       times(kFaults, fault, "faults", stall.longest)});
  const Duration ttl = rounded(bound.length, strategy.traits);
  const bool session = strategy.traits.expiry == Expiry::session;
  return {"--ttl", format_duration(ttl),
          fmt::format("{}{}; work of any length; a crash blocks the lock for up to {}",
                      outlasts(fault), session ? "session time-out" : "renewed every third of it",
                      human_seconds(seconds(longest_blocked(strategy, ttl)))),
          fmt::format("{}; {}; {}", bound.why,
                      stall.evidence.empty() ? "no stalls were measured" : stall.evidence,
                      outcome_at("crash-holding", strategy, evidence))};
}

Setting outlasting_ttl(const Descriptor& strategy, const Requirements& requirements,
                       const Evidence& evidence) {
  const std::string shown = outcome_at("overrun-holding", strategy, evidence);
  const auto work = requirements.work_p99 ? requirements.work_p99 : requirements.work_p50;
  if (!work) {
    const Duration ttl =
        std::max<Duration>(10s, kFaults * longest_fault(strategy, requirements, false));
    return {"--ttl", format_duration(ttl),
            "not by the work, which is unknown: give --work-time-p99", shown};
  }
  const Stall stall = longest_stall(strategy, requirements, evidence);
  const Duration fault = longest_fault(strategy, requirements, false);
  const bool typical = !requirements.work_p99;
  const Bound bound =
      longest_of({{kShortestTtl, "the minimum"},
                  times(kMargin, *work, typical ? "the work's p50" : "the work's p99"),
                  times(kStalls, stall.longest, "stalls", *work),
                  times(kFaults, fault, "faults", *work)});
  const Duration ttl = rounded(bound.length, strategy.traits);
  return {
      "--ttl", format_duration(ttl),
      fmt::format("{}longer work loses the lock; a crash blocks it for up to {}{}", outlasts(fault),
                  human_seconds(seconds(longest_blocked(strategy, ttl))),
                  typical ? "; half of the work is longer than its p50: give --work-time-p99" : ""),
      fmt::format("{}; {}{}", bound.why, stall.evidence.empty() ? "" : stall.evidence + "; ",
                  shown)};
}

/// Adds the settings for the lifetime of a grant and its renewal. Without renewal, the TTL must
/// outlast the work; with renewal, a crash blocks the lock for one TTL. Returns the TTL; 0: the
/// lock never expires.
Duration add_lifetime(std::vector<Setting>& settings, const Descriptor& strategy,
                      const Requirements& requirements, const Evidence& evidence) {
  const Traits& traits = strategy.traits;
  if (traits.expiry == Expiry::none) {
    settings.push_back({"--ttl", "", "it never expires: after a crash it must be removed by hand",
                        outcome_at("crash-holding", strategy, evidence)});
    return {};
  }
  if (traits.ends_with_connection) {
    settings.push_back({"at the server", "",
                        fmt::format("{}: a dead host blocks the lock for up to {}",
                                    store_traits(strategy.backend).keepalives,
                                    human_seconds(seconds(kKeepalives))),
                        fmt::format("the lock ends with its connection; {}; {}",
                                    outcome_at("crash-holding", strategy, evidence),
                                    outcome_at("host-crash-keepalive", strategy, evidence))});
    return {};
  }
  const bool by_itself = traits.renews || traits.expiry == Expiry::session;
  const bool renewed =
      by_itself || (traits.renewable && (varies_much(requirements) || is_long_held(requirements)));
  settings.push_back(renewed ? renewed_ttl(strategy, requirements, evidence)
                             : outlasting_ttl(strategy, requirements, evidence));
  const Duration ttl = parse_duration(settings.back().value).value_or(10s);
  if (renewed && !by_itself) {
    settings.push_back({"--renew", "auto", "every third of the TTL: no fixed TTL fits such work",
                        outcome_at("overrun-holding", strategy, evidence)});
  }
  if (renewed && traits.renewable && requirements.work_p99 && !requirements.is_for(Use::leader) &&
      evidence.report("runaway-holder", strategy).harmful) {
    const Duration longest = std::chrono::ceil<std::chrono::seconds>(
        std::max<Duration>(kCapMargin * *requirements.work_p99, 3 * ttl));
    settings.push_back({"--renew-cap", format_duration(longest),
                        "without a cap, a holder that hangs keeps the lock forever",
                        fmt::format("the larger of {} × the work's p99 and three TTLs; {}; {}",
                                    kCapMargin, outcome_at("runaway-holder", strategy, evidence),
                                    outcome_at("runaway-holder-capped", strategy, evidence))});
  }
  return ttl;
}

/// The longest time that one holder's fault keeps the others waiting. `ttl` is 0 if there is none.
Duration blocked_by_faults(const Descriptor& strategy, const Requirements& requirements,
                           Duration ttl) {
  Duration blocked = requirements.pause.value_or(0ns);
  if (must_survive(requirements, "crash") && ttl > 0ns)
    blocked = std::max(blocked, longest_blocked(strategy, ttl));
  const bool by_connection = strategy.traits.ends_with_connection;
  if (must_survive(requirements, "host-crash") && by_connection)
    blocked = std::max(blocked, kKeepalives);
  return blocked;
}

void add_acquire_timeout(std::vector<Setting>& settings, const Descriptor& strategy,
                         const Question& question, Duration ttl) {
  const Requirements& requirements = question.requirements;
  if (requirements.is_for(Use::once)) {
    settings.push_back({"--acquire-timeout", "0s",
                        "one try: a client that does not get the lock skips the job",
                        "lockbench run --help"});
    settings.push_back({"done-marker", "",
                        "written under the lock, where the job writes, and checked after each "
                        "grant: a late client "
                        "would run the job again",
                        "no lock knows what happened before its grant"});
  }
  if (!requirements.is_for(Use::mutex)) return;
  const auto work = requirements.work_p99 ? requirements.work_p99 : requirements.work_p50;
  const auto sharing = static_cast<int>(question.asked.clients.value_or(1));
  if (!work || !requirements.clients || sharing < 2 || question.asked.shared) return;
  const int others = sharing - 1;
  // The option allows at most a day.
  const Duration longest = std::chrono::hours(24), rtt = requirements.rtt.value_or(0ns);
  const Duration turn = *work + rtt;
  const Duration queue = std::min<Duration>(turn, longest / others) * others;
  const Duration blocked = blocked_by_faults(strategy, requirements, ttl);
  const Duration away =
      std::max(requirements.outage.value_or(0ns), requirements.failover.value_or(0ns));
  const Duration timeout = std::min<Duration>(
      std::chrono::ceil<std::chrono::seconds>(queue + queue / 4 + blocked + away), longest);
  Setting& setting =
      settings.emplace_back(Setting{"--acquire-timeout", format_duration(timeout), "", ""});
  setting.because = fmt::format(
      "{} others ahead ({}){}{}", human_count(others), human_seconds(seconds(turn) * others),
      blocked > 0ns ? fmt::format(" + a holder that fails ({})", human_seconds(seconds(blocked)))
                    : "",
      away > 0ns ? fmt::format(" + servers that are away ({})", human_seconds(seconds(away))) : "");
  if (!strategy.traits.fair) setting.because += "; it is not fair, so some wait longer";
  if (timeout == longest) setting.because += "; a day is the longest allowed";
  setting.evidence =
      fmt::format("{} each{}, plus a quarter, in whole seconds", format_duration(*work),
                  rtt > 0ns ? fmt::format(" and a round trip of {}", format_duration(rtt)) : "");
  const auto measured = question.basis.runs_of(strategy.name);
  if (strategy.traits.fair) {
    setting.evidence += "; first come, first served: lockbench list";
  } else if (!measured.runs.empty()) {
    const results::Fairness& fairness = measured.runs.front()->fairness;
    setting.evidence +=
        fmt::format("; Jain's index {}, longest wait {} ({})", human_number(fairness.jain),
                    human_seconds(fairness.longest_wait_seconds), question.basis.name);
  }
}

/// The work in the form of --hold; empty if it is unknown and nobody waits for it.
std::string hold_of(const Requirements& requirements, const Load& asked) {
  if (const auto spread = spread_of_work(requirements)) return spread->to_string();
  const auto& work = requirements.work_p50 ? requirements.work_p50 : requirements.work_p99;
  if (work) return format_duration(*work);
  if (!asked.assumed_work) return "";
  const Duration mean = std::chrono::round<std::chrono::microseconds>(
      std::chrono::duration<double>(*asked.assumed_work));
  return fmt::format("exp({})", format_duration(mean));
}

}  // namespace

std::vector<Setting> settings_for(const Descriptor& strategy, const Question& question) {
  const Requirements& requirements = question.requirements;
  const Evidence& evidence = question.evidence;
  std::vector<Setting> settings;
  const Duration ttl = add_lifetime(settings, strategy, requirements, evidence);
  add_acquire_timeout(settings, strategy, question, ttl);
  if (strategy.traits.nodes > 1) {
    settings.push_back({"--nodes", "5", "5 independent servers tolerate the loss of two, 3 of one",
                        "lockbench quorum measures the cost"});
    const Duration brief = std::min<Duration>(50ms, ttl / 20);
    // Within less than a round trip, no healthy node could answer.
    const Duration timeout = std::max<Duration>(brief, 3 * requirements.rtt.value_or(0ns));
    settings.push_back({"--node-timeout", format_duration(timeout),
                        "a dead node uses up little of the TTL; above each healthy round trip",
                        "lockbench run --help"});
  }
  if (strategy.traits.needs_replicas) {
    settings.push_back({"--wait-replicas", "all",
                        "a replica that is promoted without the lock grants it again; give their "
                        "number for your own server",
                        outcome_at("failover", strategy, evidence)});
  }
  return settings;
}

std::vector<std::string> load_options(const Requirements& requirements) {
  std::vector<std::string> options;
  const auto add = [&](const char* name, const auto& value) {
    options.insert(options.end(), {name, fmt::format("{}", value)});
  };
  const Load asked = asked_load(requirements);
  const int clients = static_cast<int>(std::ceil(asked.clients.value_or(1)));
  add("--clients", requirements.clients.value_or(clients));
  if (requirements.keys) add("--keys", *requirements.keys);
  if (asked.shared) add("--shared-share", kReaders);
  if (requirements.key_skew > 0) add("--key-skew", requirements.key_skew);
  if (const auto demand = asked.demand()) {
    const double over_all = *demand / busiest_share(requirements);
    add("--rate", requirements.rate ? fmt::format("{}", *requirements.rate)
                  : over_all < 1000 ? fmt::format("{:.3g}", over_all)
                                    : fmt::format("{:.0f}", over_all));
  }
  if (const std::string hold = hold_of(requirements, asked); !hold.empty()) add("--hold", hold);
  if (requirements.rtt) add("--rtt", format_duration(*requirements.rtt));
  return options;
}

std::vector<std::string> lock_options(const std::vector<Setting>& settings) {
  std::vector<std::string> options;
  for (const Setting& setting : settings) {
    if (setting.value.empty()) continue;
    options.insert(options.end(), {setting.option, setting.value});
  }
  return options;
}

std::string check_command(const Candidate& best, const Requirements& requirements) {
  const auto work = requirements.work_p50 ? requirements.work_p50 : requirements.work_p99;
  const double rate = asked_load(requirements).demand().value_or(1);
  if (!requirements.is_for(Use::mutex) || work.value_or(Duration::zero()) > kLongestTried ||
      rate < kSlowestTried) {
    // A load of such long or rare sections would have too few to measure.
    std::vector<std::string> plays;
    for (const Survival& fault : faults_to_survive(requirements)) {
      if (!fault.is_basic) std::ranges::copy(fault.scenarios, std::back_inserter(plays));
    }
    if (plays.empty()) plays = {"crash-holding", "pause-holding", "overrun-holding"};
    return fmt::format("lockbench hazards {} --strategies {}", fmt::join(plays, " "),
                       best.strategy->name);
  }
  std::string command = fmt::format("lockbench run {}", best.strategy->name);
  for (const auto& options : {load_options(requirements), lock_options(best.settings)}) {
    for (const std::string& word : options) {
      command += word.find('(') == std::string::npos ? " " + word : fmt::format(" '{}'", word);
    }
  }
  for (const results::Threshold& slo : requirements.slos) {
    command += fmt::format(" --threshold '{}'", slo.text);
  }
  return command;
}

}  // namespace lockbench::choose
