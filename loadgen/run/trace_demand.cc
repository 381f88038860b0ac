#include "loadgen/run/trace_demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <stdexcept>

#include "loadgen/run/trace.h"

namespace lockbench::loadgen {
namespace {

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
    while (read_next(locks)) {
      if (share_.takes(begun_++)) return true;
    }
    return false;
  }

  bool read_next(std::vector<Wanted>& locks) {
    if (read_one(locks)) return true;
    if (!trace_.repeats) return false;
    reader_.rewind();
    return read_one(locks);
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

tl::expected<std::unique_ptr<Demand>, std::string> make_trace_demand(const Workload& workload,
                                                                     const Share& share) {
  auto demand = std::make_unique<TraceDemand>(workload, share);
  if (demand->readable()) return demand;
  return tl::unexpected(fmt::format("{}: cannot be read", workload.trace->path));
}

}  // namespace lockbench::loadgen
