#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/zookeeper/client/link.h"
#include "tests/support/sim_env.h"
#include "tests/support/zookeeper_bytes.h"

namespace lockbench::zookeeper {

using test::jute::number;
using test::jute::number_at;
using test::jute::text;

/// Servers that share sessions and nodes, on simulated time. Answers come at once, unless a test
/// says otherwise.
class FakeEnsemble {
 public:
  explicit FakeEnsemble(SimClock& clock) : clock_(clock) {}

  struct Server {
    bool listens = true, answers = true;
  };
  struct Said {
    std::int32_t xid = 0, operation = 0;
    std::string body;
  };

  Connector connector() {
    return [this](const HostPort& server,
                  Duration) -> tl::expected<std::unique_ptr<Connecting>, std::string> {
      host_ = server.host;
      if (!servers_[host_].listens) return std::make_unique<FakeConnecting>(nullptr);
      latest_ = std::make_shared<Wire>(Wire{.host = host_});
      return std::make_unique<FakeConnecting>(std::make_unique<FakeTransport>(*this, latest_));
    };
  }
  Server& server(const std::string& host) { return servers_[host]; }
  /// The server of the latest connection.
  const std::string& host() const { return host_; }

  /// Every server gives this instead of what is asked for.
  void grant(Duration timeout) { granted_ = timeout; }
  bool is_over(std::int64_t session) const { return sessions_.at(session).over; }

  /// All requests but greetings, on all connections.
  const std::vector<Said>& said() const { return said_; }
  std::ptrdiff_t count(std::int32_t operation) const {
    return std::ranges::count(said_, operation, &Said::operation);
  }
  /// How often anybody has begun to wait for one of them.
  int waits() const { return waits_; }

  /// Bytes on the latest connection, in a frame or as they are.
  void push(const std::string& packet) { push_raw(text(packet)); }
  void push_raw(const std::string& bytes) { latest_->inbox += bytes; }
  void push_event(std::int32_t type, const std::string& path) {
    push(number(-1, 4) + number(-1, 8) + number(0, 4) + number(type, 4) + number(3, 4) +
         text(path));
  }
  void cut() { latest_->open = false; }

  static constexpr std::int32_t kExists = 3, kGetData = 4, kPing = 11, kCreate2 = 15, kAuth = 100,
                                kSetWatches = 101, kClose = -11;
  static constexpr std::int32_t kDeleted = 2, kChanged = 3;

 private:
  struct Session {
    Duration timeout{};
    std::string password;
    bool over = false;
  };
  struct Wire {
    std::string host;
    std::string sent;   ///< by the client, not dealt with
    std::string inbox;  ///< for the client
    bool open = true;
    std::int64_t session = 0;  ///< 0: not greeted
  };

  class FakeTransport : public Transport {
   public:
    FakeTransport(FakeEnsemble& ensemble, std::shared_ptr<Wire> wire)
        : ensemble_(ensemble), wire_(std::move(wire)) {}
    ~FakeTransport() override { wire_->open = false; }

    Status send(std::string_view bytes, Duration) override {
      if (!wire_->open) return Status::closed;
      wire_->sent += bytes;
      ensemble_.serve(*wire_);
      return Status::ok;
    }
    Received receive(std::span<char> buffer, Duration timeout,
                     const std::stop_token& stop) override {
      if (timeout > Duration::zero()) ++ensemble_.waits_;
      SimClock& clock = ensemble_.clock_;
      const TimePoint until = clock.now() + std::max(timeout, Duration::zero());
      while (wire_->inbox.empty() && wire_->open && clock.now() < until && !stop.stop_requested()) {
        clock.step(until);
      }
      if (wire_->inbox.empty()) {
        const Status open = stop.stop_requested() ? Status::stopped : Status::timed_out;
        return {wire_->open ? open : Status::closed, 0};
      }
      const std::size_t size = wire_->inbox.copy(buffer.data(), buffer.size());
      wire_->inbox.erase(0, size);
      return {Status::ok, size};
    }
    int descriptor() const override { return -1; }

   private:
    FakeEnsemble& ensemble_;
    std::shared_ptr<Wire> wire_;
  };

  class FakeConnecting : public Connecting {
   public:
    explicit FakeConnecting(std::unique_ptr<Transport> transport)
        : transport_(std::move(transport)) {}
    tl::expected<std::unique_ptr<Transport>, std::string> get(Duration,
                                                              const std::stop_token&) override {
      if (!transport_) return tl::unexpected<std::string>("Connection refused");
      return std::move(transport_);
    }

   private:
    std::unique_ptr<Transport> transport_;
  };

  void serve(Wire& wire) {
    constexpr std::size_t kLength = 4;
    while (wire.sent.size() >= kLength && servers_[wire.host].answers) {
      const auto size = static_cast<std::size_t>(number_at(wire.sent, 0, 4));
      if (wire.sent.size() < kLength + size) return;
      const std::string packet = wire.sent.substr(kLength, size);
      wire.sent.erase(0, kLength + size);
      if (wire.session == 0) {
        greet(wire, packet);
      } else {
        said_.push_back({static_cast<std::int32_t>(number_at(packet, 0, 4)),
                         static_cast<std::int32_t>(number_at(packet, 4, 4)), packet.substr(8)});
        answer(wire, said_.back());
      }
    }
  }

  void greet(Wire& wire, const std::string& packet) {
    std::int64_t id = number_at(packet, 16, 8);
    const Duration asked = std::chrono::milliseconds(number_at(packet, 12, 4));
    const bool begins = id == 0;
    if (begins) {
      id = 0x1000 + static_cast<std::int64_t>(sessions_.size());
      sessions_[id] = {.timeout = granted_ > Duration::zero() ? granted_ : asked,
                       .password = fmt::format("secret of {:x}", id)};
    }
    const Session& session = sessions_[id];
    const bool right =
        !session.over && (begins || packet.find(session.password) != std::string::npos);
    wire.session = id;
    wire.inbox += text(number(0, 4) + number(right ? ceil_milliseconds(session.timeout) : 0, 4) +
                       number(right ? id : 0, 8) + text(right ? session.password : "") +
                       std::string(1, '\0'));
    if (!right) wire.open = false;
  }

  void answer(Wire& wire, const Said& said) {
    const std::string stat = number(transactions_, 8) + std::string(36, '\0') +
                             number(wire.session, 8) + std::string(16, '\0');
    std::string body;
    if (said.operation == kCreate2) {
      body = text(said.body.substr(4, static_cast<std::size_t>(number_at(said.body, 0, 4)))) + stat;
    }
    if (said.operation == kGetData) body = number(-1, 4) + stat;
    if (said.operation == kExists) body = stat;
    wire.inbox += text(number(said.xid, 4) + number(++transactions_, 8) + number(0, 4) + body);
    if (said.operation == kClose) {
      sessions_[wire.session].over = true;
      wire.open = false;
    }
  }

  SimClock& clock_;
  std::map<std::string, Server> servers_;
  std::map<std::int64_t, Session> sessions_;
  std::vector<Said> said_;
  std::shared_ptr<Wire> latest_;
  std::string host_;
  Duration granted_{};
  std::int64_t transactions_ = 100;
  int waits_ = 0;
};

}  // namespace lockbench::zookeeper
