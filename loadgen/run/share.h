#pragma once

#include <cstdint>

namespace lockbench::loadgen {

/// Which clients, of all of a run, a process has: neighbours. Shares of one run differ by at most
/// one client. In a run of one process it has all of them.
struct Share {
  int rank = 0, ranks = 1;
  int clients = 1;  ///< of the whole run

  /// How many it has.
  int count() const { return clients / ranks + (rank < clients % ranks ? 1 : 0); }

  /// The number, among all clients, of its i-th one.
  int number(int i) const {
    const int longer = clients % ranks;  // the first shares have one client more
    return rank * (clients / ranks) + (rank < longer ? rank : longer) + i;
  }

  /// Whether it takes the n-th of what all clients of the run take turns at, such as the arrivals
  /// of an open loop. Shares take theirs evenly and not in bursts, each in proportion to its
  /// clients.
  bool takes(std::uint64_t n) const {
    const auto turn = n % static_cast<std::uint64_t>(clients);
    return turn % static_cast<std::uint64_t>(ranks) == static_cast<std::uint64_t>(rank);
  }

  /// How many of the first n it takes.
  std::uint64_t part_of(std::uint64_t n) const {
    const auto all = static_cast<std::uint64_t>(clients), step = static_cast<std::uint64_t>(ranks);
    const std::uint64_t rest = n % all, first = static_cast<std::uint64_t>(rank);
    const std::uint64_t of_rest = rest > first ? (rest - first + step - 1) / step : 0;
    return n / all * static_cast<std::uint64_t>(count()) + of_rest;
  }
};

}  // namespace lockbench::loadgen
