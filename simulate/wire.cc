#include "simulate/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace lockbench::simulate {

void Wire::broke(std::string reason) {
  if (state == State::broken) return;
  state = State::broken;
  why = std::move(reason);
  wake();
}

void Wire::answer(std::string bytes, TimePoint departs) {
  network.send(*this, Way::to_client, departs,
               [self = shared_from_this(), bytes = std::move(bytes)] {
                 if (self->state == State::broken) return;
                 self->input += bytes;
                 self->wake();
               });
}

void Wire::accepted() {
  network.send(*this, Way::to_client, host.world().now(), [self = shared_from_this()] {
    if (self->state == State::connecting) self->state = State::open;
    self->wake();
  });
}

void Wire::refuse(std::string reason) {
  network.send(*this, Way::to_client, host.world().now(),
               [self = shared_from_this(), reason = std::move(reason)] { self->broke(reason); });
}

void Wire::send(std::string bytes) {
  network.send(*this, Way::to_server, host.resumes(host.world().now()),
               [self = shared_from_this(), bytes = std::move(bytes)]() mutable {
                 self->server.arrive(self, std::move(bytes));
               });
}

void Wire::close() {
  if (state == State::broken) return;
  broke("closed");
  network.send(*this, Way::to_server, host.resumes(host.world().now()),
               [self = shared_from_this()] { self->server.closed(self); });
}

namespace {

/// Waits on a client's machine until `done()`, at most `longest`. A stop ends it `after_stop`
/// later. A mere look does not wait for the end of a pause, as its caller may hold a mutex.
template <class Done>
WaitResult wait_on(Wire& wire, Event& event, Duration longest, Duration after_stop,
                   std::stop_token stop, const Done& done) {
  Host& host = wire.host;
  World& world = host.world();
  TimePoint until = world.now() + longest;
  bool stopped = false;
  wire.waiting = &event;
  while (!done() && !host.dead() && world.now() < until) {
    if (world.carrier().wait(&event, until, stop) != WaitResult::stopped) continue;
    stopped = true;
    until = std::min(until, world.now() + after_stop);
    stop = {};
  }
  wire.waiting = nullptr;
  if (longest > Duration::zero()) host.pass_pause();
  if (done() || host.dead()) return WaitResult::signalled;
  return stopped ? WaitResult::stopped : WaitResult::timed_out;
}

}  // namespace

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(SimulatedDialer& dialer, std::shared_ptr<Wire> wire,
                     std::unique_ptr<Event> event, Duration after_stop)
      : dialer_(dialer),
        wire_(std::move(wire)),
        event_(std::move(event)),
        after_stop_(after_stop),
        descriptor_(++dialer.last_descriptor_) {
    dialer_.wires_[descriptor_] = wire_.get();
  }
  SimulatedTransport(const SimulatedTransport&) = delete;
  SimulatedTransport& operator=(const SimulatedTransport&) = delete;
  ~SimulatedTransport() override {
    dialer_.wires_.erase(descriptor_);
    wire_->waiting = nullptr;
    wire_->close();
  }

  Status send(std::string_view bytes, Duration /*timeout*/) override {
    if (wire_->state != Wire::State::open || wire_->host.dead()) return Status::closed;
    wire_->send(std::string(bytes));
    return Status::ok;
  }

  Received receive(std::span<char> buffer, Duration timeout, const std::stop_token& stop) override {
    Wire& wire = *wire_;
    const WaitResult waited =
        wait_on(wire, *event_, timeout, after_stop_, stop, [&wire] { return wire.has_news(); });
    if (waited == WaitResult::timed_out) return {Status::timed_out, 0};
    if (waited == WaitResult::stopped) return {Status::stopped, 0};
    if (wire.input.empty() || wire.host.dead()) return {Status::closed, 0};
    const std::size_t bytes = std::min(buffer.size(), wire.input.size());
    std::memcpy(buffer.data(), wire.input.data(), bytes);
    wire.input.erase(0, bytes);
    return {Status::ok, bytes};
  }

  int descriptor() const override { return wire_->input.empty() ? descriptor_ : -1; }
  std::string why_closed() override {
    return wire_->why.empty() ? "the connection was closed" : wire_->why;
  }

 private:
  SimulatedDialer& dialer_;
  const std::shared_ptr<Wire> wire_;
  const std::unique_ptr<Event> event_;
  const Duration after_stop_;
  const int descriptor_;
};

namespace {

class SimulatedConnecting final : public Connecting {
 public:
  SimulatedConnecting(SimulatedDialer& dialer, std::shared_ptr<Wire> wire, Duration after_stop)
      : dialer_(dialer),
        wire_(std::move(wire)),
        event_(wire_->host.world().carrier().make_event()),
        after_stop_(after_stop) {}
  SimulatedConnecting(const SimulatedConnecting&) = delete;
  SimulatedConnecting& operator=(const SimulatedConnecting&) = delete;
  ~SimulatedConnecting() override {
    if (wire_) wire_->close();
  }

  tl::expected<std::unique_ptr<Transport>, std::string> get(Duration longest,
                                                            const std::stop_token& stop) override {
    wait_on(*wire_, *event_, longest, Duration::zero(), stop,
            [this] { return wire_->state != Wire::State::connecting; });
    if (wire_->host.dead()) return tl::unexpected(std::string("the client is dead"));
    if (wire_->state == Wire::State::broken) return tl::unexpected(wire_->why);
    if (wire_->state == Wire::State::connecting) return nullptr;
    return std::make_unique<SimulatedTransport>(dialer_, std::move(wire_), std::move(event_),
                                                after_stop_);
  }

 private:
  SimulatedDialer& dialer_;
  std::shared_ptr<Wire> wire_;
  std::unique_ptr<Event> event_;
  const Duration after_stop_;
};

}  // namespace

tl::expected<std::unique_ptr<Connecting>, std::string> SimulatedDialer::begin(
    const SocketAddress& address, const Timeouts& timeouts, const TlsSettings* /*tls*/) {
  const auto server = std::ranges::find(servers_, address.host, &Server::host);
  if (server == servers_.end()) return tl::unexpected("no server is called " + address.host);
  if (host_.dead()) return tl::unexpected(std::string("the client is dead"));
  auto wire = std::make_shared<Wire>(host_, network_, **server);
  wire->port = address.port;
  std::erase_if(host_.wires, [](const auto& other) { return other.expired(); });
  host_.wires.push_back(wire);
  if (const auto relay = host_.relays.find(wire->server.number); relay != host_.relays.end()) {
    wire->relay = relay->second;
    wire->number = wire->relay->opens(wire);
  }
  network_.send(*wire, Way::to_server, host_.resumes(host_.world().now()),
                [wire] { wire->server.accept(wire); });
  return std::make_unique<SimulatedConnecting>(*this, std::move(wire), timeouts.after_stop);
}

/// As an epoll set: a connection is reported once, and those that are closed leave it.
class SimulatedPoller final : public Poller {
 public:
  explicit SimulatedPoller(SimulatedDialer& dialer)
      : dialer_(dialer), host_(dialer.host_), event_(host_.world().carrier().make_event()) {}

  void watch(int descriptor, std::uint64_t tag) override {
    if (descriptor < 0) return;
    watched_[descriptor] = tag;
    const auto found = dialer_.wires_.find(descriptor);
    if (found != dialer_.wires_.end() && found->second->has_news()) event_->set();
  }
  void unwatch(int descriptor) override { watched_.erase(descriptor); }
  void wake() noexcept override {
    woken_ = true;
    event_->set();
  }

  std::span<const std::uint64_t> wait(Duration longest) override {
    Carrier& carrier = host_.world().carrier();
    const TimePoint now = host_.world().now();
    const TimePoint until = longest > TimePoint::max() - now ? TimePoint::max() : now + longest;
    host_.polling.push_back(event_.get());
    tags_.clear();
    // What waits in a dead process is woken only to end.
    while (!woken_ && (host_.dead() || (!take_ready() && host_.world().now() < until))) {
      carrier.wait(event_.get(), host_.dead() ? TimePoint::max() : until, {});
    }
    std::erase(host_.polling, event_.get());
    // A stop does not wait for the end of a pause.
    if (!std::exchange(woken_, false)) host_.pass_pause();
    return tags_;
  }

 private:
  bool take_ready() {
    std::erase_if(watched_, [&](const auto& one) {
      const auto found = dialer_.wires_.find(one.first);
      if (found == dialer_.wires_.end()) return true;
      if (!found->second->has_news()) return false;
      tags_.push_back(one.second);
      return true;
    });
    return !tags_.empty();
  }

  SimulatedDialer& dialer_;
  Host& host_;
  const std::unique_ptr<Event> event_;
  bool woken_ = false;
  std::map<int, std::uint64_t> watched_;  ///< tags, by descriptor
  std::vector<std::uint64_t> tags_;
};

tl::expected<std::unique_ptr<Poller>, std::string> SimulatedDialer::make_poller() {
  return std::make_unique<SimulatedPoller>(*this);
}

bool SimulatedDialer::look(std::span<pollfd> descriptors) const {
  bool any = host_.dead();
  for (pollfd& one : descriptors) {
    const auto found = wires_.find(one.fd);
    const bool ready = found == wires_.end() || found->second->has_news();
    one.revents = ready ? POLLIN : 0;
    any |= ready;
  }
  return any;
}

void SimulatedDialer::poll(std::span<pollfd> descriptors, Duration longest,
                           const std::stop_token& stop) {
  World& world = host_.world();
  const TimePoint until = world.now() + std::max(longest, Duration::zero());
  const std::unique_ptr<Event> event = world.carrier().make_event();
  host_.polling.push_back(event.get());
  while (!look(descriptors) && world.now() < until && !stop.stop_requested()) {
    world.carrier().wait(event.get(), until, stop);
  }
  std::erase(host_.polling, event.get());
  host_.pass_pause();
  look(descriptors);
}

}  // namespace lockbench::simulate
