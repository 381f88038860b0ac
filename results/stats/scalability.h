#pragma once

#include <optional>
#include <span>

namespace lockbench::results {

/// Throughput of so many clients in a closed loop.
struct ScalabilityPoint {
  double clients = 1;
  double per_second = 0;
};

/// Gunther's Universal Scalability Law (2007): X(n) = lambda n / (1 + sigma (n-1) + kappa n (n-1)).
struct Scalability {
  double lambda = 0;  ///< throughput of one client
  double sigma = 0;   ///< contention: the share that only one can do at a time
  double kappa = 0;   ///< crosstalk: what each pair of clients costs

  double throughput(double clients) const;

  /// The same on a network that is `rtt` seconds longer: a client alone pays `trips` of them for a
  /// section, and each section that waits for another one pays one for the handoff, of `locks` side
  /// by side.
  double throughput(double clients, double rtt, double trips, double locks) const;

  /// Beyond so many clients throughput falls; nothing where it never does.
  std::optional<double> peak() const;
};

/// Least squares of the relative error of n/X(n), which is linear in what is looked for; none of it
/// is below 0. Nothing unless there are three different numbers of clients, each with throughput.
std::optional<Scalability> fit_scalability(std::span<const ScalabilityPoint> points);

}  // namespace lockbench::results
