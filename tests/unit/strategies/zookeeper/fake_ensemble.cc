#include "tests/unit/strategies/zookeeper/fake_ensemble.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockbench::zookeeper {
namespace {

using test::jute::number_at;
using test::jute::text;

class FakeTransport : public Transport {
 public:
  FakeTransport(FakeEnsemble& ensemble, std::shared_ptr<FakeEnsemble::Wire> wire)
      : ensemble_(ensemble), wire_(std::move(wire)) {}
  ~FakeTransport() override { wire_->open = false; }

  Status send(std::string_view bytes, Duration) override {
    if (!wire_->open) return Status::closed;
    wire_->sent += bytes;
    ensemble_.serve(*wire_);
    return Status::ok;
  }
  Received receive(std::span<char> buffer, Duration timeout, const std::stop_token& stop) override {
    if (timeout > Duration::zero()) ensemble_.begin_wait();
    SimClock& clock = ensemble_.clock();
    const TimePoint until = clock.now() + std::max(timeout, Duration::zero());
    while (wire_->inbox.empty() && wire_->open && clock.now() < until && !stop.stop_requested()) {
      clock.step(until);
    }
    if (wire_->inbox.empty()) {
      const Status open = stop.stop_requested() ? Status::stopped : Status::timed_out;
      return {wire_->open ? open : Status::closed, 0};
    }
    const std::size_t size = std::min(buffer.size(), wire_->inbox.size());
    std::copy_n(wire_->inbox.begin(), size, buffer.begin());
    wire_->inbox.erase(0, size);
    return {Status::ok, size};
  }
  int descriptor() const override { return -1; }

 private:
  FakeEnsemble& ensemble_;
  std::shared_ptr<FakeEnsemble::Wire> wire_;
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

}  // namespace

Connector FakeEnsemble::connector() {
  return [this](const HostPort& server,
                Duration) -> tl::expected<std::unique_ptr<Connecting>, std::string> {
    host_ = server.host;
    if (!servers_[host_].listens) return std::make_unique<FakeConnecting>(nullptr);
    latest_ = std::make_shared<Wire>(Wire{.host = host_});
    return std::make_unique<FakeConnecting>(std::make_unique<FakeTransport>(*this, latest_));
  };
}

int FakeEnsemble::count(std::int32_t operation) const {
  return static_cast<int>(
      std::ranges::count(said_, operation, [](const Said& said) { return said.operation; }));
}

void FakeEnsemble::push(const std::string& packet) { push_raw(text(packet)); }
void FakeEnsemble::push_raw(const std::string& bytes) { latest_->inbox += bytes; }
void FakeEnsemble::push_event(std::int32_t type, const std::string& path) {
  push(number(-1, 4) + number(-1, 8) + number(0, 4) + number(type, 4) + number(3, 4) + text(path));
}
void FakeEnsemble::cut() { latest_->open = false; }

void FakeEnsemble::serve(Wire& wire) {
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

void FakeEnsemble::greet(Wire& wire, const std::string& packet) {
  ++servers_[wire.host].greeted;
  std::int64_t id = number_at(packet, 16, 8);
  const Duration asked = std::chrono::milliseconds(number_at(packet, 12, 4));
  if (id == 0) {
    id = 0x1000 + static_cast<std::int64_t>(sessions_.size());
    sessions_[id] = {.timeout = granted_ > Duration::zero() ? granted_ : asked,
                     .password = fmt::format("secret of {:x}", id)};
  }
  const Session& session = sessions_[id];
  const bool right = !session.over && (number_at(packet, 16, 8) == 0 ||
                                       packet.find(session.password) != std::string::npos);
  wire.session = id;
  wire.inbox +=
      text(number(0, 4) + number(right ? ceil_milliseconds(session.timeout) : 0, 4) +
           number(right ? id : 0, 8) + text(right ? session.password : "") + std::string(1, '\0'));
  if (!right) wire.open = false;
}

void FakeEnsemble::answer(Wire& wire, const Said& said) {
  constexpr std::int32_t kExists = 3, kGetData = 4, kGetChildren = 8, kCreate2 = 15,
                         kCreateContainer = 19;
  const std::string stat = number(transactions_, 8) + std::string(36, '\0') +
                           number(wire.session, 8) + std::string(16, '\0');
  std::string body;
  const auto path = [&] {
    return said.body.substr(4, static_cast<std::size_t>(number_at(said.body, 0, 4)));
  };
  switch (said.operation) {
    case kCreate2:
    case kCreateContainer: {
      const bool sequential = said.body.ends_with(number(3, 4));
      body = text(path() + (sequential ? fmt::format("{:010}", ++sequence_) : "")) + stat;
      break;
    }
    case kGetChildren:
      body = number(0, 4);
      break;
    case kGetData:
      body = number(-1, 4) + stat;
      break;
    case kExists:
      body = stat;
      break;
    default:
      break;
  }
  wire.inbox += text(number(said.xid, 4) + number(++transactions_, 8) + number(0, 4) + body);
  if (said.operation == kClose) {
    sessions_[wire.session].over = true;
    wire.open = false;
  }
}

}  // namespace lockbench::zookeeper
