#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "loadgen/run/duration_distribution.h"
#include "strategies/duration.h"
#include "strategies/random.h"

namespace lockbench::simulate {

/// How the orders of deliveries and wake-ups are explored.
struct OrderPlan {
  enum class Kind {
    drawn,       ///< not at all: as the delays of the network are drawn
    uniform,     ///< half of them are late by a random time
    priorities,  ///< PCT
  };
  Kind kind = Kind::drawn;
  Duration latest{};        ///< at most so late
  int changes = 0;          ///< of priorities
  std::uint64_t steps = 1;  ///< about as many as there will be: the changes are among these
};

/// Makes steps of clients late: deliveries of their messages, and wake-ups. With priorities, as
/// PCT (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with probabilistic
/// guarantees of finding bugs", ASPLOS 2010): clients have random priorities, and at `changes`
/// random steps the client that makes the step gets the lowest one. Time goes on here, so a client
/// cannot wait until all above it have nothing to do: instead its steps are four times as late as
/// those of the next one above.
class Orders {
 public:
  Orders(const OrderPlan& plan, int clients, std::uint64_t seed)
      : plan_(plan), random_(seed, kStream), clients_(static_cast<std::size_t>(clients)) {
    std::iota(clients_.begin(), clients_.end(), 0);
    for (std::size_t i = clients_.size(); i > 1; --i) {
      std::swap(clients_[i - 1], clients_[random_() % i]);
    }
    for (int i = 0; i < plan.changes; ++i) changes_.insert(random_() % plan.steps);
  }

  Duration late(int client) {
    if (plan_.kind == OrderPlan::Kind::drawn) return {};
    if (plan_.kind == OrderPlan::Kind::uniform) {
      const double late = std::max(0.0, 2 * loadgen::draw_unit(random_) - 1);
      return Duration(static_cast<Duration::rep>(late * static_cast<double>(plan_.latest.count())));
    }
    const auto place = std::ranges::find(clients_, client);
    if (changes_.contains(step_++)) std::rotate(place, place + 1, clients_.end());
    const auto above = clients_.end() - std::ranges::find(clients_, client) - 1;
    return plan_.latest / (std::int64_t{1} << std::min<std::ptrdiff_t>(2 * above, kMostHalvings));
  }

 private:
  static constexpr std::uint64_t kStream = std::uint64_t{1} << 41;  // clients have those from 0
  static constexpr std::ptrdiff_t kMostHalvings = 40;

  OrderPlan plan_;
  Random random_;
  std::vector<int> clients_;  ///< the highest priority first
  std::set<std::uint64_t> changes_;
  std::uint64_t step_ = 0;
};

}  // namespace lockbench::simulate
