#include "strategies/zookeeper/client/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace lockbench::zookeeper {
namespace {

/// Grows, as thousands of sessions may wait for the same server to come back.
constexpr Duration kShortestPause = std::chrono::milliseconds(10);
constexpr Duration kLongestPause = std::chrono::milliseconds(250);

bool is_good_chroot(std::string_view chroot) {
  if (chroot.find("//") != std::string_view::npos || chroot.ends_with('/')) return false;
  return std::all_of(chroot.begin(), chroot.end(), [](char c) { return c > ' ' && c != 0x7f; });
}

}  // namespace

Connector connect_by(Dialer& dialer, std::shared_ptr<const TlsSettings> tls) {
  return [&dialer, tls = std::move(tls)](const HostPort& server, Duration patience) {
    return dialer.begin({.host = server.host, .port = server.port}, patience, tls.get());
  };
}

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  constexpr std::uint16_t kPort = 2181, kTlsPort = 2281;
  const bool tls = text.starts_with("zks://");
  const bool with_scheme = tls || text.starts_with("zk://");
  const UrlForm form{.what = "the address of a ZooKeeper server",
                     .allowed =
                         "[zk://[user:password@]]host[:port][,host[:port]...][/chroot], or "
                         "zks:// with ?cacert=FILE&cert=FILE&key=FILE&server-name=NAME",
                     .schemes = {"", "zk", "zks"},
                     .default_port = tls ? kTlsPort : kPort,
                     .max_hosts = 32,
                     .login = with_scheme ? UrlForm::Login::user_password : UrlForm::Login::none,
                     .tls = tls};
  auto url = parse_url(text, form);
  if (!url) return url;
  if (url->user.find(':') != std::string::npos) {
    return invalid_url("the user must not contain a colon", form);
  }
  if (url->path == "/") url->path.clear();
  if (!is_good_chroot(url->path)) return invalid_url("not a valid chroot path", form);
  return url;
}

Transport::Status Packets::receive(Duration longest, const std::stop_token& stop) {
  received_.erase(0, std::exchange(read_, 0));
  // On the stack of each fiber that waits; nearly all answers are short.
  std::array<char, 4096> bytes;  // NOLINT(*-member-init): written before it is read
  const auto got = transport_->receive(bytes, longest, stop);
  if (got.status == Transport::Status::ok) received_.append(bytes.data(), got.bytes);
  return got.status;
}

tl::expected<std::optional<std::string_view>, std::string> Packets::next() {
  constexpr std::size_t kLength = sizeof(std::int32_t);
  const std::string_view rest = std::string_view(received_).substr(read_);
  if (rest.size() < kLength) return std::nullopt;
  const std::int32_t length = Reader(rest).int32();
  if (length < 0 || static_cast<std::size_t>(length) > kLargest) {
    return tl::unexpected(fmt::format("it sent a packet of {} bytes", length));
  }
  const auto size = static_cast<std::size_t>(length);
  if (rest.size() - kLength < size) return std::nullopt;
  read_ += kLength + size;
  return rest.substr(kLength, size);
}

Link::Link(const Endpoint& endpoint, Env& env, Connector connector)
    : servers_(endpoint.hosts),
      connector_(connector ? std::move(connector) : connect_by(Dialer::real(), endpoint.tls)) {
  for (std::size_t left = servers_.size(); left > 1; --left) {
    std::swap(servers_[left - 1], servers_[env.random() % left]);
  }
}

void Link::begin(Duration patience) {
  drop();
  patience_ = patience;
  pause_ = {};
  failures_ = refusals_ = 0;
  over_ = false;
  why_.clear();
}

std::optional<Greeting> Link::advance(const Identity& session, Duration ttl, Env& env,
                                      Duration longest) {
  const TimePoint now = env.now();
  over_ = false;
  if (step_ != Step::idle && now >= give_up_at_) {
    fail(now, "no answer within " + format_duration(patience_), true);
    return std::nullopt;
  }
  if (step_ == Step::idle && now < retry_at_) {
    over_ = longest > Duration::zero() &&
            env.wait(nullptr, std::min(retry_at_, now + longest), {}) == WaitResult::stopped;
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
  // A server that has not caught up with this session closes the connection.
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
