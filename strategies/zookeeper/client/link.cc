#include "strategies/zookeeper/client/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockbench::zookeeper {
namespace {

/// Thousands of sessions may wait for the same server to come back.
constexpr Duration kShortestPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(250);

Connector by_sockets(const std::shared_ptr<const TlsSettings>& tls) {
  return [tls](const HostPort& server, Duration patience) {
    return begin_connecting({.host = server.host, .port = server.port}, patience, tls.get());
  };
}

}  // namespace

Link::Link(const Endpoint& endpoint, Env& env, Connector connector)
    : servers_(endpoint.servers),
      connector_(connector ? std::move(connector) : by_sockets(endpoint.tls)) {
  for (std::size_t left = servers_.size(); left > 1; --left) {
    std::swap(servers_[left - 1], servers_[env.random() % left]);
  }
}

void Link::begin(Duration patience) {
  drop();
  patience_ = patience;
  pause_ = {};
  failures_ = refusals_ = 0;
  why_.clear();
}

std::optional<Greeting> Link::advance(const Identity& session, Duration ttl, Env& env,
                                      Duration longest) {
  const TimePoint now = env.now();
  if (step_ != Step::idle && now >= give_up_at_) {
    fail(now, "no answer within " + format_duration(patience_), true);
    return std::nullopt;
  }
  if (step_ == Step::idle && now < retry_at_) {
    if (longest > Duration::zero()) env.wait(nullptr, std::min(retry_at_, now + longest), {});
    return std::nullopt;
  }
  if (step_ == Step::idle) dial(now);
  if (step_ == Step::dialling) {
    finish_dialling(session, ttl, now, longest);
  } else if (step_ == Step::greeting) {
    return hear(now, longest);
  }
  return std::nullopt;
}

void Link::dial(TimePoint now) {
  auto dialling = connector_(servers_[next_], patience_);
  if (!dialling) return fail(now, std::move(dialling.error()));
  dialling_ = *std::move(dialling);
  give_up_at_ = now + patience_;
  step_ = Step::dialling;
}

void Link::finish_dialling(const Identity& session, Duration ttl, TimePoint now, Duration longest) {
  auto connected = dialling_->get(longest, {});
  if (!connected) return fail(now, std::move(connected.error()));
  if (!*connected) return;
  dialling_.reset();
  packets_.emplace(*std::move(connected));
  greeted_at_ = now;
  step_ = Step::greeting;
  if (!packets_->send(greet(session, ttl))) fail(now, packets_->why_closed());
}

std::optional<Greeting> Link::hear(TimePoint now, Duration longest) {
  const Transport::Status status = packets_->receive(longest);
  if (status == Transport::Status::timed_out) return std::nullopt;
  // A server that is behind what the session has seen closes it.
  if (status != Transport::Status::ok) {
    fail(now, packets_->why_closed());
    return std::nullopt;
  }
  const auto packet = packets_->next();
  if (packet && !*packet) return std::nullopt;
  auto greeting =
      packet ? read_greeting(**packet) : Parsed<Greeting>(tl::unexpected(packet.error()));
  if (!greeting) {
    fail(now, std::move(greeting.error()));
  } else if (greeting->read_only) {
    fail(now, "it has no quorum");
  } else {
    step_ = Step::up;
    failures_ = refusals_ = 0;
    pause_ = {};
    return *std::move(greeting);
  }
  return std::nullopt;
}

void Link::fail(TimePoint now, std::string why, bool kept_waiting) {
  why_ =
      servers_.size() == 1 ? std::move(why) : fmt::format("{}: {}", servers_[next_].display(), why);
  disconnect();
  next_ = (next_ + 1) % servers_.size();
  refusals_ = kept_waiting ? 0 : refusals_ + 1;
  ++failures_;
  if (failures_ % servers_.size() != 0) return;
  pause_ = std::clamp(2 * pause_, kShortestPause, kLongestPause);
  retry_at_ = now + pause_;
}

void Link::drop() {
  if (step_ != Step::idle) next_ = (next_ + 1) % servers_.size();
  disconnect();
  retry_at_ = TimePoint::min();
}

void Link::disconnect() {
  step_ = Step::idle;
  dialling_.reset();
  packets_.reset();
}

}  // namespace lockbench::zookeeper
