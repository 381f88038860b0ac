#include "watch/sources/zookeeper_observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace lockbench::watch {
namespace {

using zookeeper::Code;
using zookeeper::Packets;
using zookeeper::Xid;
using ZkRequest = zookeeper::Request;

/// Long enough for a busy machine, short enough to notice soon that the server is gone.
constexpr Duration kSessionTimeout = std::chrono::seconds(6);
/// Of a server that sends without end.
constexpr std::size_t kMostUnread = 100'000;

}  // namespace

ZookeeperObserver::ZookeeperObserver(zookeeper::Endpoint endpoint, Duration command_timeout,
                                     Env& env)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeout_(command_timeout),
      env_(env),
      link_(endpoint_, env, {}) {}

tl::unexpected<StoreError> ZookeeperObserver::broken(std::string_view why) {
  link_.drop();
  connected_ = false;
  pending_.clear();
  events_.clear();
  return tl::unexpected(
      StoreError{StoreError::Kind::unanswered, fmt::format("{}: {}", display_, printable(why))});
}

StoreResult<void> ZookeeperObserver::connect(const std::stop_token& stop) {
  if (connected_) return {};
  if (auto greeted = greet_server(stop); !greeted) return greeted;
  connected_ = true;
  heard_at_ = pinged_at_ = env_.now();
  if (endpoint_.user.empty()) return {};
  if (!link_.packets().send(zookeeper::authenticate(endpoint_.user, endpoint_.password))) {
    return broken("the server closed it");
  }
  return {};
}

StoreResult<void> ZookeeperObserver::greet_server(const std::stop_token& stop) {
  const TimePoint give_up_at = env_.now() + timeout_;
  const auto servers = static_cast<std::int64_t>(endpoint_.servers.size());
  link_.begin(std::max<Duration>(timeout_ / servers, std::chrono::milliseconds(50)));
  while (env_.now() < give_up_at && !link_.is_hopeless()) {
    if (stop.stop_requested()) return broken("stopped while connecting");
    const auto greeting = link_.advance({}, kSessionTimeout, env_, Packets::kPace);
    if (!greeting) continue;
    granted_ = greeting->timeout;
    if (granted_ > Duration::zero()) return {};
    return broken("it grants no session");
  }
  return broken("no ZooKeeper answers: " + link_.why());
}

StoreResult<std::vector<zookeeper::Reply>> ZookeeperObserver::call(
    std::span<const ZkRequest> requests, const std::stop_token& stop) {
  if (!connected_) return broken("not connected");
  std::vector<zookeeper::Reply> answers(requests.size());
  std::string all;
  const auto info = [&](const ZkRequest& request) {
    return CommandInfo{.store = "zookeeper",
                       .endpoint = display_,
                       .name = zookeeper::name_of(request.kind),
                       .key = request.path};
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    env_.before_command(info(requests[i]));
    const std::int32_t xid = next_xid_;
    next_xid_ = xid == std::numeric_limits<std::int32_t>::max() ? 1 : xid + 1;
    all += zookeeper::write(xid, requests[i], endpoint_.chroot, false);
    pending_.push_back({.xid = xid, .request = &requests[i], .answer = &answers[i]});
  }
  const TimePoint give_up_at = env_.now() + timeout_;
  StoreResult<void> heard;
  if (!link_.packets().send(all)) heard = broken("the server closed it, or does not read");
  while (heard && !pending_.empty()) {
    if (env_.now() >= give_up_at) heard = broken("no answer within " + format_duration(timeout_));
    if (heard && stop.stop_requested()) heard = broken("stopped while waiting for the answer");
    if (heard) heard = receive(Packets::kPace, stop);
  }
  for (const ZkRequest& request : requests) {
    env_.after_command(info(request), heard ? CommandEnd::answered : CommandEnd::lost);
  }
  if (!heard) return tl::unexpected(std::move(heard.error()));
  return answers;
}

StoreResult<std::vector<std::string>> ZookeeperObserver::events(Duration longest,
                                                                const std::stop_token& stop) {
  if (!connected_) return broken("not connected");
  const TimePoint until = env_.now() + longest;
  // At least one look; each further one waits.
  while (true) {
    const TimePoint now = env_.now();
    const Duration left = std::clamp(until - now, Duration::zero(), Packets::kPace);
    if (auto heard = receive(events_.empty() ? left : Duration::zero(), stop); !heard) {
      return tl::unexpected(std::move(heard.error()));
    }
    if (!events_.empty() || stop.stop_requested() || env_.now() >= until) break;
  }
  const TimePoint now = env_.now();
  if (now - heard_at_ >= granted_ * 2 / 3) return broken("the server was silent");
  if (now - pinged_at_ >= granted_ / 3) {
    pinged_at_ = now;
    if (!link_.packets().send(zookeeper::ping())) return broken("the server closed it");
  }
  return std::exchange(events_, {});
}

StoreResult<void> ZookeeperObserver::receive(Duration longest, const std::stop_token& stop) {
  const auto status = link_.packets().receive(longest, stop);
  if (status == Transport::Status::closed) return broken(link_.packets().why_closed());
  if (status != Transport::Status::ok) return {};
  heard_at_ = env_.now();
  while (true) {
    const auto packet = link_.packets().next();
    if (!packet) return broken(packet.error());
    if (!*packet) return {};
    if (const std::string wrong = take(**packet); !wrong.empty()) return broken(wrong);
  }
}

std::string ZookeeperObserver::take(std::string_view packet) {
  zookeeper::Reader from(packet);
  const auto header = read_header(from);
  if (!header) return header.error();
  switch (header->xid) {
    case Xid::kEvent: {
      auto event = read_event(from, endpoint_.chroot);
      if (!event) return std::move(event.error());
      if (events_.size() >= kMostUnread) return "events without end";
      events_.push_back(std::move(event->path));
      return {};
    }
    case Xid::kPing:
      return {};
    case Xid::kAuth:
      return header->code == Code::ok ? std::string() : zookeeper::describe(header->code);
    default:
      break;
  }
  if (pending_.empty() || pending_.front().xid != header->xid) {
    return "it answered what nobody asked, or out of order";
  }
  const Pending pending = pending_.front();
  pending_.pop_front();
  pending.answer->code = header->code;
  if (zookeeper::ends_session(header->code)) return zookeeper::describe(header->code);
  if (header->code != Code::ok) return {};
  auto reply = read_reply(*pending.request, endpoint_.chroot, from);
  if (!reply) return std::move(reply.error());
  *pending.answer = *std::move(reply);
  return {};
}

void ZookeeperObserver::close() {
  // So that its watches do not burden the server until the session would expire.
  if (std::exchange(connected_, false)) link_.packets().send(zookeeper::end_session(next_xid_++));
  link_.drop();
  pending_.clear();
  events_.clear();
}

}  // namespace lockbench::watch
