#include "results/stats/queue_model.h"

#include <algorithm>
#include <cmath>

namespace lockbench::results {

std::optional<double> QueueModel::mean_wait(double rate) const {
  const double busy = utilisation(rate);
  if (!(busy < 1)) return std::nullopt;
  const double second_moment = service_variance + service_mean * service_mean;
  return (1 - overtaking_share) * queueing(rate) * second_moment / (2 * (1 - busy));
}

std::optional<double> QueueModel::wait_percentile(double rate, double share) const {
  const auto mean = mean_wait(rate);
  if (!mean) return std::nullopt;
  const double waiting = (1 - overtaking_share) * utilisation(rate);
  if (waiting <= 1 - share) return 0;  // so many find it free, or overtake
  return *mean / waiting * std::log(waiting / (1 - share));
}

std::optional<double> QueueModel::mean_acquire(double rate) const {
  const auto wait = mean_wait(rate);
  if (!wait) return std::nullopt;
  return *wait + (1 - utilisation(rate)) * free_seconds;
}

std::optional<double> QueueModel::acquire_percentile(double rate, double share) const {
  const auto wait = wait_percentile(rate, share);
  if (!wait) return std::nullopt;
  return std::max(*wait, free_seconds);
}

}  // namespace lockbench::results
