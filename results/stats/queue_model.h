#pragma once

#include <optional>

namespace lockbench::results {

/// One lock as a queue with one server: sections arrive at random (Poisson), and each blocks the
/// next one for its hold and the handoff. M/G/1, so first come first served but for those that
/// overtake: these do not queue, and the handoff to those that do is longer by their sections.
/// Times in seconds, rates in sections per second at this one lock.
struct QueueModel {
  double service_mean = 0, service_variance = 0;  ///< hold and handoff, with overtaking sections
  double free_seconds = 0;                        ///< what it takes to get a free lock
  double overtaking_share = 0;                    ///< of the sections

  double utilisation(double rate) const { return queueing(rate) * service_mean; }

  /// Pollaczek (1930), Khinchine (1932). Nothing where sections come faster than they are served.
  std::optional<double> mean_wait(double rate) const;

  /// A share of 0.99 is p99. Waits above 0 are taken as exponentially distributed: true of
  /// M/M/1 and, near saturation, of every M/G/1 (Kingman 1961); below it too long where
  /// holds hardly vary, at 30 % utilisation by up to a third.
  std::optional<double> wait_percentile(double rate, double share) const;

  /// The wait, plus the time to acquire a free lock.
  std::optional<double> mean_acquire(double rate) const;
  std::optional<double> acquire_percentile(double rate, double share) const;

 private:
  double queueing(double rate) const { return rate * (1 - overtaking_share); }
};

}  // namespace lockbench::results
