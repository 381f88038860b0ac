#include "results/stats/queue_model.h"

#include <algorithm>
#include <cmath>

namespace lockbench::results {

std::optional<QueueModel::Waits> QueueModel::waits(double rate) const {
  const double queueing = rate * (1 - overtaking_share);
  const double first = free_seconds + hold_mean, later = handoff_mean + hold_mean;
  const double idle = 1 - queueing * later;
  if (!(idle > 0)) return std::nullopt;
  const double first_square = first * first + hold_variance;
  const double later_square = later * later + hold_variance + handoff_variance;
  const double busy = queueing * first / (idle + queueing * first);
  if (!(busy > 0)) return Waits{};
  const double ahead =
      queueing / 2 *
      (later_square / idle + (first_square - later_square) / (idle + queueing * first));
  return Waits{.share = (1 - overtaking_share) * busy, .mean = ahead / busy + handoff_mean};
}

std::optional<double> QueueModel::mean_acquire(double rate) const {
  const auto waiting = waits(rate);
  if (!waiting) return std::nullopt;
  return waiting->share * waiting->mean + (1 - waiting->share) * free_seconds;
}

std::optional<double> QueueModel::acquire_percentile(double rate, double share) const {
  const auto waiting = waits(rate);
  if (!waiting) return std::nullopt;
  if (waiting->share <= 1 - share) return free_seconds;  // so many find it free, or overtake
  return std::max(free_seconds, waiting->mean * std::log(waiting->share / (1 - share)));
}

}  // namespace lockbench::results
