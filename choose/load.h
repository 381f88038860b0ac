#pragma once

#include <optional>
#include <string>
#include <vector>

#include "choose/requirements.h"
#include "loadgen/run/duration_distribution.h"
#include "results/file/model.h"

namespace lockbench::choose {

/// The load on one lock, the one that is wanted most; unknown parts are nothing. Times are in
/// seconds.
struct Load {
  std::optional<double> clients;  ///< that share the lock
  std::optional<double> work;     ///< that a section takes on average
  std::optional<double> rate;     ///< sections per second; nothing: each client asks again at once
  std::optional<double> rtt;      ///< added between clients and servers
  bool shared = false;            ///< some of the sections hold the lock together
  // Where nothing was said about them:
  std::optional<double> assumed_utilisation, assumed_work;

  /// Whether clients wait for one another.
  bool contended() const;
  /// Of the time, the share for which somebody needs the lock, from 0 to 1: (work + round trip) ×
  /// rate, or 1 if several clients always want it. What is shared is never taken for full.
  double utilisation() const;
  /// The rate, or that of the assumed utilisation.
  std::optional<double> demand() const;
};

/// Of a shared lock's sections, those that are assumed to read.
constexpr double kReaders = 0.9;

/// Whether it wants at least so many sections per second.
bool wants_throughput(const results::Threshold& slo);

/// Sections per second over all locks; without --rate, what an objective of throughput needs.
std::optional<double> wanted_rate(const Requirements& requirements);

/// The share of the sections that want the lock that is wanted most.
double busiest_share(const Requirements& requirements);

/// The work's median and 99th percentile as a distribution; nothing unless both are known.
std::optional<loadgen::DurationDistribution> spread_of_work(const Requirements& requirements);

/// What was asked. Without a rate, a mutex for several clients is assumed to be busy for 70 % of
/// the time, or what so many clients can at most, and one for which nothing is said for 30 %.
/// Without a work time, 2 ms are assumed, or what keeps the rate's lock busy for 70 % of the time.
Load asked_load(const Requirements& requirements);
Load measured_load(const results::Result& result);

/// "70 % busy, 32 clients, 2 ms of work, RTT 1 ms".
std::string describe(const Load& load);

/// How far the measured load is from the requested one; 0: the same in all requested parts. Nothing
/// if it cannot answer the question: without contention where that was asked for.
std::optional<double> distance(const Load& asked, const Load& measured);

/// One difference of the measured load from the requested one.
struct Difference {
  std::string text;      ///< "8 clients at a lock instead of 200"
  bool lighter = false;  ///< than what was asked
};
std::vector<Difference> differences(const Load& asked, const Load& measured);

}  // namespace lockbench::choose
