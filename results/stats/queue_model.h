#pragma once

#include <optional>

namespace lockbench::results {

/// One lock as a queue with one server: sections arrive at random (Poisson), one that finds the
/// lock free takes it, and each of the others takes its hold and the handoff to it. M/G/1 with a
/// first service of its own, so first come first served but for those that overtake: these do not
/// queue, and the handoff to those that do is longer by their sections. Times in seconds, rates in
/// sections per second at this one lock.
struct QueueModel {
  double hold_mean = 0, hold_variance = 0;
  double handoff_mean = 0, handoff_variance = 0;  ///< with overtaking sections
  double free_seconds = 0;                        ///< what it takes to get a free lock
  double overtaking_share = 0;                    ///< of the sections

  /// From the start of an acquire to the grant: Welch (1964), which is Pollaczek and Khinchine's
  /// where the first service is as any other. Nothing where sections come faster than they are
  /// served.
  std::optional<double> mean_acquire(double rate) const;

  /// A share of 0.99 is p99. Waits above 0 are taken as exponentially distributed: true of
  /// M/M/1 and, near saturation, of every M/G/1 (Kingman 1961); below it too long where
  /// holds hardly vary, at 30 % utilisation by up to a third.
  std::optional<double> acquire_percentile(double rate, double share) const;

 private:
  struct Waits {
    double share = 0;  ///< of the sections
    double mean = 0;   ///< of these
  };
  std::optional<Waits> waits(double rate) const;
};

}  // namespace lockbench::results
