#include "strategies/etcd/client/completions.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "strategies/carrier.h"

namespace lockbench::etcd {

tl::expected<std::shared_ptr<Completions>, std::string> Completions::for_caller() {
  if (!Carrier::current().shared()) return std::make_shared<Completions>();
  // Of the process, as gRPC's own threads are; it ends with the last connection.
  static std::mutex mutex;
  static std::weak_ptr<Completions> shared;
  const std::scoped_lock lock(mutex);
  if (auto known = shared.lock()) return known;
  auto made = std::make_shared<Completions>();
  auto thread = Thread::start(
      [looked_at = made.get()](const std::stop_token&) {
        looked_at->look(nullptr, gpr_inf_future(GPR_CLOCK_MONOTONIC));
      },
      [](const std::string&) {});
  if (!thread) return tl::unexpected(std::move(thread.error()));
  made->thread_ = *std::move(thread);
  shared = made;
  return made;
}

void Completions::look(const Completion* awaited, gpr_timespec deadline) {
  void* tag = nullptr;
  bool ok = false;
  while ((awaited == nullptr || !awaited->ended_) &&
         queue_.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
    static_cast<Completion*>(tag)->end(ok);
  }
}

Completion::Completion(Completions& completions) : completions_(completions) {
  if (completions.thread_.started()) event_ = Carrier::current().make_event();
}

void Completion::end(bool ok) noexcept {
  ok_ = ok;
  if (event_) {
    event_->set();  // the caller may now destroy this
  } else {
    ended_ = true;
  }
}

bool Completion::ends_by(TimePoint deadline) {
  if (event_) {
    ended_ = ended_ || Carrier::current().wait(event_.get(), deadline, {}) == WaitResult::signalled;
  } else {
    completions_.look(this, deadline == TimePoint::max()
                                ? gpr_inf_future(GPR_CLOCK_MONOTONIC)
                                : from_now(deadline - Carrier::current().now()));
  }
  return ended_;
}

bool Completion::ends_within(Duration time) { return ends_by(Carrier::current().now() + time); }

bool Completion::succeeds() {
  while (!ends_by(TimePoint::max())) {
  }
  return ok_;
}

gpr_timespec from_now(Duration time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<std::int64_t>(time.count(), 0), GPR_TIMESPAN));
}

}  // namespace lockbench::etcd
