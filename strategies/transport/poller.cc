#include "strategies/transport/poller.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "strategies/carrier.h"

namespace lockbench {
namespace {

/// No connection has it: their tags are addresses of objects.
constexpr std::uint64_t kWakeTag = 0;

constexpr Duration kLongest = std::chrono::hours(1);

class EpollPoller final : public Poller {
 public:
  EpollPoller(int epoll, int wake) : epoll_(epoll), wake_(wake) {}
  EpollPoller(const EpollPoller&) = delete;
  EpollPoller& operator=(const EpollPoller&) = delete;
  ~EpollPoller() override;

  void watch(int descriptor, std::uint64_t tag) override;
  void unwatch(int descriptor) override;
  void wake() noexcept override;
  std::span<const std::uint64_t> wait(Duration longest) override;

 private:
  static constexpr std::size_t kAtOnce = 64;

  const int epoll_, wake_;
  std::array<std::uint64_t, kAtOnce> tags_{};
};

}  // namespace

tl::expected<std::unique_ptr<Poller>, std::string> Poller::make() {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int wake = epoll < 0 ? -1 : ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeTag}};
  if (wake < 0 || ::epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event) != 0) {
    const std::string why = std::system_category().message(errno);
    if (wake >= 0) ::close(wake);
    if (epoll >= 0) ::close(epoll);
    return tl::unexpected("connections cannot be watched: " + why);
  }
  return std::make_unique<EpollPoller>(epoll, wake);
}

EpollPoller::~EpollPoller() {
  ::close(wake_);
  ::close(epoll_);
}

void EpollPoller::watch(int descriptor, std::uint64_t tag) {
  if (descriptor < 0) return;
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data = {.u64 = tag}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event) != 0 && errno == ENOENT) {
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
  }
}

void EpollPoller::unwatch(int descriptor) {
  epoll_event event{.events = EPOLLONESHOT, .data = {.u64 = kWakeTag}};
  if (descriptor >= 0) ::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event);
}

void EpollPoller::wake() noexcept {
  // Can only fail if an earlier wake() ends the wait already.
  ::eventfd_write(wake_, 1);
}

std::span<const std::uint64_t> EpollPoller::wait(Duration longest) {
  // The epoll descriptor is ready if one of its set is.
  pollfd ready{.fd = epoll_, .events = POLLIN, .revents = 0};
  Carrier::current().poll({&ready, 1}, std::clamp(longest, Duration::zero(), kLongest), {});
  std::array<epoll_event, kAtOnce> events;  // NOLINT(*-member-init): written before it is read
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(kAtOnce), 0);
  std::size_t tags = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events.at(static_cast<std::size_t>(i)).data.u64;
    if (tag != kWakeTag) {
      tags_.at(tags++) = tag;
      continue;
    }
    eventfd_t wakes = 0;
    ::eventfd_read(wake_, &wakes);
  }
  return {tags_.data(), tags};
}

}  // namespace lockbench
