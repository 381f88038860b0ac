#include "loadgen/run/demand.h"

#include <algorithm>

#include "loadgen/run/key_chooser.h"
#include "loadgen/run/random.h"
#include "loadgen/run/trace_demand.h"

namespace lockbench::loadgen {
namespace {

/// Keys, modes and times at random.
class DrawnDemand : public Demand {
 public:
  explicit DrawnDemand(const Workload& workload)
      : workload_(workload), keys_(workload.key_count(), workload.key_skew, workload.hot_set) {}

  bool next(int client, Duration since_start, Random& random, Transaction& out) override {
    const Draw draw{client, since_start, random};
    out.locks.clear();
    for (int i = 0; i < workload_.locks_per_section; ++i) {
      const int key = another_key(draw, out.locks);
      out.locks.push_back({key, pick_mode(random)});
    }
    out.hold = workload_.hold.draw(random);
    out.think = workload_.think.draw(random);
    return true;
  }

 private:
  /// For whom and when.
  struct Draw {
    int client;
    Duration since_start;
    Random& random;
  };

  int pick_key(const Draw& draw) const {
    return workload_.key_per_client ? draw.client % workload_.key_count()
                                    : keys_.pick(draw.random, draw.since_start);
  }

  /// One that is not among these.
  int another_key(const Draw& draw, const std::vector<Wanted>& others) const {
    // With a skew most draws may be of keys that are taken already.
    constexpr int kMostDraws = 16;
    const auto taken = [&](int key) {
      return std::any_of(others.begin(), others.end(),
                         [key](const Wanted& other) { return other.key == key; });
    };
    int key = pick_key(draw);
    for (int draws = 1; draws < kMostDraws && taken(key); ++draws) key = pick_key(draw);
    // There are more keys than locks of a section, so this ends.
    while (taken(key)) key = (key + 1) % workload_.key_count();
    return key;
  }

  Mode pick_mode(Random& random) const {
    if (workload_.shared_share <= 0) return Mode::exclusive;
    return draw_unit(random) < workload_.shared_share ? Mode::shared : Mode::exclusive;
  }

  const Workload& workload_;
  const KeyChooser keys_;
};

}  // namespace

tl::expected<std::unique_ptr<Demand>, std::string> make_demand(const Workload& workload,
                                                               const Share& share) {
  if (workload.trace) return make_trace_demand(workload, share);
  if (workload.locks_per_section < 1 || workload.locks_per_section > workload.key_count()) {
    return tl::unexpected<std::string>("a section takes at least one lock, and at most one a key");
  }
  return std::make_unique<DrawnDemand>(workload);
}

}  // namespace lockbench::loadgen
