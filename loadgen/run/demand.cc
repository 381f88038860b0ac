#include "loadgen/run/demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <stdexcept>

#include "loadgen/run/key_chooser.h"
#include "loadgen/run/random.h"
#include "loadgen/run/trace.h"

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

/// The transactions of the workload's trace in their order, each for the client that asks next,
/// with its hold and think times.
class TraceDemand : public Demand {
 public:
  TraceDemand(const Workload& workload, const Share& share)
      : workload_(workload),
        share_(share),
        trace_(workload.trace.value()),
        file_(trace_.path),
        reader_(file_, trace_.path) {}

  bool readable() const { return file_.is_open(); }

  bool next(int /*client*/, Duration /*since_start*/, Random& random, Transaction& out) override {
    if (!read(out.locks)) return false;
    out.hold = workload_.hold.draw(random);
    out.think = workload_.think.draw(random);
    return true;
  }

 private:
  bool read(std::vector<Wanted>& locks) {
    const std::scoped_lock lock(mutex_);
    // A share takes at least one of as many transactions as there are clients, so this ends.
    while (read_one(locks)) {
      if (share_.takes(begun_++)) return true;
    }
    return false;
  }

  bool read_one(std::vector<Wanted>& locks) {
    const auto more = reader_.next(locks);
    if (!more) throw std::runtime_error(more.error());
    const bool known = std::all_of(locks.begin(), locks.end(), [this](const Wanted& wanted) {
      return wanted.key < trace_.keys;
    });
    if (!known) throw std::runtime_error(trace_.path + ": the file was changed");
    return *more;
  }

  const Workload& workload_;
  const Share share_;
  const Trace& trace_;
  std::mutex mutex_;
  std::uint64_t begun_ = 0;  ///< by all shares
  std::ifstream file_;
  TraceReader reader_;
};

}  // namespace

tl::expected<std::unique_ptr<Demand>, std::string> make_demand(const Workload& workload,
                                                               const Share& share) {
  if (workload.trace) {
    auto demand = std::make_unique<TraceDemand>(workload, share);
    if (demand->readable()) return demand;
    return tl::unexpected(fmt::format("{}: cannot be read", workload.trace->path));
  }
  if (workload.locks_per_section < 1 || workload.locks_per_section > workload.key_count()) {
    return tl::unexpected<std::string>("a section takes at least one lock, and at most one a key");
  }
  return std::make_unique<DrawnDemand>(workload);
}

}  // namespace lockbench::loadgen
