#include "strategies/redis/stop_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace lockbench::redis {

void StopSignal::Raise::operator()() const noexcept {
  // Cannot block or fail: the counter is far from its limit.
  ::eventfd_write(fd, 1);
}

StopSignal::StopSignal(const std::stop_token& stop)
    : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ >= 0) on_stop_.emplace(stop, Raise{fd_});
}

StopSignal::~StopSignal() {
  on_stop_.reset();  // waits for a callback that is running
  if (fd_ >= 0) ::close(fd_);
}

std::shared_ptr<StopSignal> StopSignals::of(const std::stop_token& stop) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<StopSignal> signal = signal_.lock();
  if (!signal || latest_ != stop) {
    signal = std::make_shared<StopSignal>(stop);
    signal_ = signal;
    latest_ = stop;
  }
  return signal;
}

}  // namespace lockbench::redis
