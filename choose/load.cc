#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "choose/evidence.h"
#include "results/file/loads.h"
#include "results/stats/statistics.h"
#include "results/tables/text.h"

namespace lockbench::choose {
namespace {

using results::human_count;
using results::human_number;
using results::human_seconds;

/// Shorter work is negligible compared with the lock's own time, and so is a shorter round trip.
constexpr double kNoWork = 1e-3, kNoNetwork = 1e-4;
/// Loads that differ by less are the same.
constexpr double kSame = 0.1;
/// A lock that is busier is saturated.
constexpr double kSaturated = 0.95;
/// So much more is asked of a lock than an objective of throughput, so that it can be shown.
constexpr double kShown = 1.1;
/// Requests of two clients can meet at any lock, however many locks there are.
constexpr double kFewestThatMeet = 2;
/// Assumed of a mutex where nothing is said: loads of the reference.
constexpr double kUsualUtilisation = 0.3, kMuchUtilisation = 0.7, kUsualClients = 32,
                 kUsualWork = 2e-3, kLeastWork = 1e-6;

// What each kind of difference weighs. Waits grow with 1/(1 - utilisation) (Little, Kleinrock), so
// that decides most; work scales waits of all locks alike; the number of clients hardly matters at
// a given utilisation.
constexpr double kWeightOfUtilisation = 2, kWeightOfNetwork = 1, kWeightOfWork = 0.5,
                 kWeightOfClients = 0.25, kNeedlessContention = 4;

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
    // The sum of the others is close to an integral, from and to the middle between two keys.
    const double from = kExact + 0.5, to = keys + 0.5, power = 1 - skew;
    weights += std::abs(power) < 1e-9 ? std::log(to / from)
                                      : (std::pow(to, power) - std::pow(from, power)) / power;
  }
  return 1 / std::max(1.0, weights);
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
    // Clients that are always busy with some lock are busy with this one for their share.
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
  // "per-client": every client has a lock of its own.
  if (!results::text_in(result.workload, "keys").empty()) load.clients = 1;
  // Files come from anywhere.
  if (load.rate && !(*load.rate > 0)) load.rate.reset();
  if (load.clients) {
    const double fewest = load.rate && *load.clients > 1 ? kFewestThatMeet : 1;
    load.clients = std::max(fewest, *load.clients * share);
  }
  if (load.rate) *load.rate *= share;
  if (load.work) load.work = std::max(0.0, *load.work);
  if (load.work) return load;
  // A distribution's parameters, or a file from elsewhere: what the sections really took.
  std::vector<double> held;
  for (const results::Run& run : result.runs) {
    if (run.hold.count > 0) held.push_back(std::max(0.0, run.hold.mean));
  }
  load.work = results::median(held);
  return load;
}

std::string describe(const Load& load) {
  std::vector<std::string> words;
  if (load.contended()) words.push_back(shown_utilisation(load));
  const double clients = load.clients.value_or(1);
  words.push_back(fmt::format("{} client{}", human_count(clients), clients == 1 ? "" : "s"));
  if (load.work) words.push_back(shown_work(*load.work));
  if (load.rtt.value_or(0) > 0) words.push_back(shown_network(*load.rtt));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::optional<double> distance(const Load& asked, const Load& measured) {
  if (asked.contended() && !measured.contended()) return std::nullopt;
  double sum = 0;
  if (!asked.contended() && measured.contended()) sum += kNeedlessContention;
  sum += kWeightOfUtilisation * apart(idle_share(asked), idle_share(measured));
  sum += kWeightOfNetwork * rtt_apart(asked.rtt.value_or(0), measured.rtt.value_or(0));
  if (asked.work && measured.work) sum += kWeightOfWork * work_apart(*asked.work, *measured.work);
  sum += kWeightOfClients * apart(asked.clients.value_or(1), measured.clients.value_or(1));
  return sum;
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

}  // namespace lockbench::choose
