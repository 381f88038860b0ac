#include "choose/evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "loadgen/run/workload.h"
#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/stats/load_figures.h"
#include "results/stats/statistics.h"
#include "results/tables/hazards.h"
#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

using results::human_count;
using results::human_seconds;

/// Shorter work, or a shorter round trip, is negligible compared with the lock's own time.
constexpr double kNoWork = 1e-3, kNoNetwork = 1e-4;
/// Loads that differ by less are the same.
constexpr double kSame = 0.1;
/// A busier lock is saturated.
constexpr double kSaturated = 0.95;
/// The load exceeds a throughput objective by this factor, so that it can be shown.
constexpr double kShown = 1.1;
/// Even with many locks, requests of two clients can meet at any of them.
constexpr double kFewestThatMeet = 2;
/// Assumptions about a mutex if nothing is given: loads of the reference.
constexpr double kUsualUtilisation = 0.3, kMuchUtilisation = 0.7, kUsualClients = 32,
                 kUsualWork = 2e-3, kLeastWork = 1e-6;

// Weights of the kinds of difference. Waits grow with 1/(1 - utilisation) (Little, Kleinrock), so
// utilisation weighs most; work scales the waits of all locks alike; the number of clients hardly
// matters at a given utilisation.
constexpr double kWeightOfUtilisation = 2, kWeightOfNetwork = 1, kWeightOfWork = 0.5,
                 kWeightOfClients = 0.25, kNeedlessContention = 4;

/// A load at this distance is of little use: 7 times as many clients, 3 times the work, 1.6 times
/// the round trip, or 1.3 times the idle time.
constexpr double kFar = 0.5;

double apart(double a, double b) { return std::abs(std::log(a / b)); }
double work_apart(double a, double b) { return apart(a + kNoWork, b + kNoWork); }
double rtt_apart(double a, double b) { return apart(a + kNoNetwork, b + kNoNetwork); }

double idle_share(const Load& load) { return 1 - std::min(load.utilisation(), kSaturated); }

std::string shown_work(double seconds) {
  return seconds > 0 ? human_seconds(seconds) + " of work" : "no work";
}

std::string shown_utilisation(const Load& load) {
  return load.utilisation() >= 1 ? "never free"
                                 : fmt::format("{:.0f} % busy", 100 * load.utilisation());
}

std::string shown_network(double seconds) {
  return seconds > 0 ? "RTT " + human_seconds(seconds) : "no network";
}

double share_of_first(double keys, double skew) {
  double weights = 0;
  constexpr int kExact = 1000;
  for (int key = 1; key <= kExact && key <= keys; ++key) weights += std::pow(key, -skew);
  if (keys > kExact) {
    // The sum over the other keys is close to an integral between midpoints of keys.
    const double from = kExact + 0.5, to = keys + 0.5, power = 1 - skew;
    weights += std::abs(power) < 1e-9 ? std::log(to / from)
                                      : (std::pow(to, power) - std::pow(from, power)) / power;
  }
  return 1 / std::max(1.0, weights);
}

/// "70 % busy, 32 clients, 2 ms of work, RTT 1 ms".
std::string describe(const Load& load) {
  std::vector<std::string> words;
  if (load.contended()) words.push_back(shown_utilisation(load));
  const double clients = load.clients.value_or(1);
  words.push_back(fmt::format("{} client{}", human_count(clients), clients == 1 ? "" : "s"));
  if (load.work) words.push_back(shown_work(*load.work));
  if (load.rtt.value_or(0) > 0) words.push_back(shown_network(*load.rtt));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// How far the measured load is from the required one; 0: the same in all required parts. Nothing
/// if it cannot answer: it has no contention, and the required load has; or its clients ask only
/// when they have been served, so that its percentiles leave out most of the waits at a rate.
std::optional<double> distance(const Load& asked, const Load& measured) {
  if (asked.contended() && (!measured.contended() || (asked.rate && !measured.rate))) {
    return std::nullopt;
  }
  double sum = 0;
  if (!asked.contended() && measured.contended()) sum += kNeedlessContention;
  sum += kWeightOfUtilisation * apart(idle_share(asked), idle_share(measured));
  sum += kWeightOfNetwork * rtt_apart(asked.rtt.value_or(0), measured.rtt.value_or(0));
  if (asked.work && measured.work) sum += kWeightOfWork * work_apart(*asked.work, *measured.work);
  sum += kWeightOfClients * apart(asked.clients.value_or(1), measured.clients.value_or(1));
  return sum;
}

struct Seen {
  const results::Hazard* hazard = nullptr;
  const Source* source = nullptr;
};

/// A play that does harm, else one that was played, else any.
Seen find_play(const std::vector<Source>& sources, std::string_view scenario,
               std::string_view strategy) {
  const std::string_view not_played = to_string(HazardOutcome::not_played);
  Seen first;
  for (const Source& source : sources) {
    if (!source.result.hazards) continue;
    for (const results::Hazard& hazard : *source.result.hazards) {
      if (hazard.scenario != scenario || hazard.strategy != strategy) continue;
      if (results::does_harm(hazard.observed)) return {&hazard, &source};
      if (first.hazard == nullptr || first.hazard->observed == not_played) {
        first = {&hazard, &source};
      }
    }
  }
  return first;
}

/// With an injected fault, the figures are those of the fault.
bool is_valid(const results::Run& run) {
  return results::is_of_the_lock(run) && run.faults.empty();
}

/// The sources that can answer, the nearest first; those without a valid run last.
std::multimap<std::pair<bool, double>, const Source*> by_distance(
    const std::vector<Source>& sources, const Load& asked) {
  std::multimap<std::pair<bool, double>, const Source*> found;
  for (const Source& source : sources) {
    const auto& runs = source.result.runs;
    if (runs.empty()) continue;
    const auto away = distance(asked, measured_load(source.result));
    if (away) found.emplace(std::pair(std::ranges::none_of(runs, is_valid), *away), &source);
  }
  return found;
}

/// A source for each load.
std::vector<Source> split(std::vector<Source> sources) {
  std::vector<Source> found;
  for (Source& source : sources) {
    if (!results::has_several_loads(source.result)) {
      found.push_back(std::move(source));
      continue;
    }
    for (results::Result& one : results::split_by_load(source.result)) {
      found.push_back({source.name, std::move(one)});
    }
  }
  return found;
}

}  // namespace

bool Load::contended() const { return clients.value_or(1) > 1; }

double Load::utilisation() const {
  if (!contended()) return 0;
  if (assumed_utilisation) return *assumed_utilisation;
  const double most = shared ? kMuchUtilisation : 1;
  if (!rate) return most;
  const double taken = work.value_or(assumed_work.value_or(0)) + rtt.value_or(0);
  return std::clamp(*rate * taken, 0.0, most);
}

bool wants_throughput(const results::Threshold& slo) {
  return slo.figure == "sections_per_second" && slo.wants_more();
}

std::optional<double> wanted_rate(const Requirements& requirements) {
  if (requirements.rate) return requirements.rate;
  std::optional<double> most;
  for (const results::Threshold& slo : requirements.slos) {
    const bool counts = wants_throughput(slo) && slo.bound > 0;
    if (counts) most = std::max(most.value_or(0), kShown * slo.bound);
  }
  return most;
}

double busiest_share(const Requirements& requirements) {
  return share_of_first(requirements.keys.value_or(1), requirements.key_skew);
}

std::optional<loadgen::DurationDistribution> spread_of_work(const Requirements& requirements) {
  using loadgen::DurationDistribution;
  const auto &p50 = requirements.work_p50, &p99 = requirements.work_p99;
  if (!p50 || !p99 || *p50 >= *p99 || *p99 > DurationDistribution::kLongestDraw) return {};
  return DurationDistribution::lognormal(*p50, *p99);
}

Load asked_load(const Requirements& requirements) {
  Load load;
  const auto spread = spread_of_work(requirements);
  const auto work = spread                  ? std::optional(spread->mean())
                    : requirements.work_p50 ? requirements.work_p50
                                            : requirements.work_p99;
  if (work) load.work = seconds(*work);
  if (requirements.rtt) load.rtt = seconds(*requirements.rtt);
  const double share = busiest_share(requirements);
  if (const auto rate = wanted_rate(requirements)) load.rate = *rate * share;
  load.shared = requirements.shared;
  if (requirements.clients == 1) {
    load.clients = 1;
    return load;
  }
  if (requirements.clients) {
    load.clients = std::max(kFewestThatMeet, *requirements.clients * share);
  } else if (load.rate || requirements.is_for(Use::mutex)) {
    load.clients = kUsualClients;
  }
  if (!load.clients) return load;
  if (!load.rate) {
    // Clients that are always busy with some lock use this one for its share of the time.
    const double most = requirements.clients.value_or(1) * share;
    load.assumed_utilisation =
        requirements.clients ? kMuchUtilisation * std::min(1.0, most) : kUsualUtilisation;
  }
  if (!load.work) {
    const double room =
        load.rate ? kMuchUtilisation / *load.rate - load.rtt.value_or(0) : kUsualWork;
    load.assumed_work = std::clamp(room, kLeastWork, kUsualWork);
  }
  return load;
}

std::optional<double> Load::demand() const {
  if (!assumed_utilisation) return rate;
  return *assumed_utilisation / (work.value_or(assumed_work.value_or(0)) + rtt.value_or(0));
}

Load measured_load(const results::Result& result) {
  const auto number = [&](const char* key) { return results::workload_number(result, key); };
  Load load{.clients = number("clients"),
            .work = number("hold"),
            .rate = number("rate"),
            .rtt = number("rtt"),
            .shared = number("shared_share").value_or(0) > 0};
  const double share = share_of_first(std::clamp(number("keys").value_or(1), 1.0, 1e6),
                                      std::clamp(number("key_skew").value_or(0), 0.0, 10.0));
  // "per-client": every client has its own lock.
  if (!results::text_in(result.workload, "keys").empty()) load.clients = 1;
  // Files may be hostile.
  if (load.rate && !(*load.rate > 0)) load.rate.reset();
  if (load.clients) {
    const double fewest = load.rate && *load.clients > 1 ? kFewestThatMeet : 1;
    load.clients = std::max(fewest, *load.clients * share);
  }
  if (load.rate) *load.rate *= share;
  if (load.work) load.work = std::max(0.0, *load.work);
  if (load.work) return load;
  // `hold` is a distribution, or missing: use the measured time of the sections.
  std::vector<double> held;
  for (const results::Run& run : result.runs) {
    if (run.hold.count > 0) held.push_back(std::max(0.0, run.hold.mean));
  }
  load.work = results::median(held);
  return load;
}

std::vector<Difference> differences(const Load& asked, const Load& measured) {
  std::vector<Difference> found;
  const auto instead = [&](std::string was, const std::string& wanted, bool lighter) {
    found.push_back({fmt::format("{} instead of {}", std::move(was), wanted), lighter});
  };
  if (asked.contended() && apart(idle_share(asked), idle_share(measured)) > kSame) {
    instead("a lock that is " + shown_utilisation(measured), shown_utilisation(asked),
            measured.utilisation() < asked.utilisation());
  }
  if (asked.clients && measured.clients && apart(*asked.clients, *measured.clients) > kSame) {
    instead(fmt::format("{} client{} at a lock", human_count(*measured.clients),
                        *measured.clients == 1 ? "" : "s"),
            human_count(*asked.clients), *measured.clients < *asked.clients);
  }
  if (asked.work && measured.work && work_apart(*asked.work, *measured.work) > kSame) {
    instead(shown_work(*measured.work), human_seconds(*asked.work), *measured.work < *asked.work);
  }
  const double rtt = measured.rtt.value_or(0);
  if (asked.rtt && rtt_apart(*asked.rtt, rtt) > kSame) {
    instead(shown_network(rtt), human_seconds(*asked.rtt), rtt < *asked.rtt);
  }
  return found;
}

Evidence::Evidence(std::vector<Source> files, std::vector<Source> reference)
    : files_(split(std::move(files))), reference_(split(std::move(reference))) {}

Evidence::Basis Evidence::basis_for(const Requirements& requirements) const {
  // Figures of the user's machine are not mixed with those of another.
  const Load asked = asked_load(requirements);
  auto sources = by_distance(files_, asked);
  Basis basis;
  const bool none_valid = !sources.empty() && sources.begin()->first.first;
  if (none_valid) {
    // An invalid run says nothing about the lock.
    basis.left_out.push_back(sources.begin()->second->name + " (none of its runs is valid)");
  }
  basis.own = !sources.empty() && !none_valid;
  if (!basis.own) {
    auto others = by_distance(reference_, asked);
    if (sources.empty() || !others.empty()) sources = std::move(others);
  }
  if (sources.empty()) return basis;
  const Source& nearest = *sources.begin()->second;
  basis.far = sources.begin()->first > std::pair(false, kFar);
  basis.load = measured_load(nearest.result);
  std::set<std::string> used;
  std::map<std::string, std::string> other;
  for (const auto& [away, source] : sources) {
    const auto reasons = results::incompatibilities(nearest.result, source->result);
    if (reasons.empty()) {
      basis.sources.push_back(source);
      used.insert(source->name);
    } else if (basis.own && source->name != nearest.name) {
      // Further loads of a file differ for the same reasons.
      other.emplace(source->name, fmt::format("{}", fmt::join(reasons, ", ")));
    }
  }
  for (const auto& [name, why] : other) {
    if (!used.contains(name)) basis.left_out.push_back(fmt::format("{} ({})", name, why));
  }
  basis.name = fmt::format("{}: {}", fmt::join(used, ", "), describe(basis.load));
  return basis;
}

Evidence::Runs Evidence::Basis::runs_of(std::string_view strategy) const {
  Runs found;
  for (const Source* source : sources) {
    for (const results::Run& run : source->result.runs) {
      if (run.strategy == strategy) found.runs.push_back(&run);
    }
  }
  const auto is_invalid = [](const results::Run* run) { return !is_valid(*run); };
  found.valid = found.runs.empty() || !std::ranges::all_of(found.runs, is_invalid);
  if (found.valid) found.left_out = std::erase_if(found.runs, is_invalid);
  return found;
}

const results::Run* Evidence::slowest_release(std::string_view strategy) const {
  for (const auto* sources : {&files_, &reference_}) {
    const results::Run* slowest = nullptr;
    for (const Source& source : *sources) {
      // An experiment shows the cost of locks in its own setting, not under a required load.
      if (results::is_experiment(source.result)) continue;
      for (const results::Run& run : source.result.runs) {
        if (run.strategy != strategy || !run.faults.empty()) continue;
        // Files may be hostile: NaN is greater than nothing.
        if (run.release.max > (slowest ? slowest->release.max : 0)) slowest = &run;
      }
    }
    if (slowest != nullptr) return slowest;
  }
  return nullptr;
}

results::Result Evidence::alone(const Descriptor& strategy) const {
  const std::string_view load = to_string(loadgen::NamedLoad::alone);
  results::Result found;
  auto& runs = found.runs;
  for (const auto* sources : {&files_, &reference_}) {
    for (const bool its_own : {true, false}) {
      for (const Source& source : *sources) {
        for (const results::Run& run : source.result.runs) {
          const bool of_one = runs.empty() || run.strategy == runs.front().strategy;
          const bool fits =
              its_own ? run.strategy == strategy.name : run.backend == strategy.backend && of_one;
          if (fits && run.load.name == load && is_valid(run)) runs.push_back(run);
        }
      }
      if (!runs.empty()) return found;
    }
  }
  return found;
}

Evidence::Violation Evidence::violation_of(std::string_view strategy) const {
  for (const auto* sources : {&files_, &reference_}) {
    for (const Source& source : *sources) {
      for (const results::Run& run : source.result.runs) {
        if (run.strategy != strategy) continue;
        if (run.audit.verdict == results::Verdict::violated) return {&run, &source};
      }
    }
  }
  return {};
}

FaultReport Evidence::report(const hazards::Scenario& scenario, const Descriptor& strategy) const {
  FaultReport report{.scenario = std::string(scenario.name)};
  if (auto why = hazards::not_applicable(scenario, strategy)) {
    report.outcome = to_string(HazardOutcome::not_applicable);
    report.reason = *std::move(why);
    return report;
  }
  report.blocks = hazards::never_gets_there(scenario, strategy.traits);
  const std::string_view declared = to_string(hazards::expected_outcome(scenario, strategy));
  const std::string_view not_played = to_string(HazardOutcome::not_played);
  Seen seen = find_play(files_, scenario.name, strategy.name);
  if (seen.hazard == nullptr || seen.hazard->observed == not_played) {
    const Seen other = find_play(reference_, scenario.name, strategy.name);
    if (other.hazard != nullptr) seen = other;
  }
  report.outcome = seen.hazard == nullptr ? declared : seen.hazard->observed;
  report.harmful = results::does_harm(report.outcome);
  const bool applies = report.outcome != to_string(HazardOutcome::not_applicable);
  if (!report.harmful && applies && results::does_harm(declared)) {
    report.outcome = declared;
    report.harmful = true;
    if (seen.source != nullptr) report.source = seen.source->name;
    return report;
  }
  if (seen.hazard == nullptr) return report;
  report.played = report.outcome != not_played;
  report.reason = results::text_in(seen.hazard->evidence, "reason");
  report.source = seen.source->name;
  return report;
}

FaultReport Evidence::report(std::string_view scenario, const Descriptor& strategy) const {
  const hazards::Scenario* const found = hazards::find_scenario(scenario);
  if (found == nullptr) throw std::logic_error(fmt::format("no such scenario: {}", scenario));
  return report(*found, strategy);
}

std::vector<Source> reference() {
  std::vector<Source> sources;
  for (const EmbeddedFile& file : reference_files()) {
    auto result = results::from_json(file.text);
    const std::string name = fmt::format("results/reference/{}", file.name);
    if (!result) throw std::runtime_error(fmt::format("{}: {}", name, result.error()));
    sources.push_back({name, std::move(*result)});
  }
  return sources;
}

}  // namespace lockbench::choose
