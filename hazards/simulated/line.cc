#include "hazards/simulated/line.h"

#include <utility>

#include "deployment/failure.h"

namespace lockbench::hazards {

using simulate::Way;
using simulate::Wire;

SimulatedLine::SimulatedLine(simulate::Host& host, int server) : host_(host), server_(server) {
  host_.relays[server_] = this;
}

SimulatedLine::~SimulatedLine() {
  host_.relays.erase(server_);
  for (const Connection& connection : connections_) {
    if (const auto wire = connection.wire.lock()) wire->relay = nullptr;
  }
}

void SimulatedLine::delay(std::chrono::nanoseconds each_way, const testbed::Connections& which) {
  each_way_ = each_way;
  delays_ = which;
}

tl::expected<void, std::string> SimulatedLine::vanish() {
  black_hole();
  return {};
}

void SimulatedLine::cut() {
  for (const Connection& connection : connections_) reset(connection);
}

void SimulatedLine::heal() {
  loses_.reset();
  holds_.reset();
  delays_.reset();
  for (Connection& connection : connections_) {
    connection.dark = false;
    if (std::exchange(connection.lost, false)) reset(connection);
  }
  for (Held& message : std::exchange(held_, {})) {
    Wire& wire = *message.wire;
    wire.network.send(wire, message.way, host_.world().now(), std::move(message.arrive));
  }
}

void SimulatedLine::lead_to(std::uint16_t /*server*/) {
  throw deployment::Failure("a simulated line leads to one server");
}

testbed::ProxyCounts SimulatedLine::counts() const { return counts_; }

void SimulatedLine::reset(const Connection& connection) {
  const auto wire = connection.wire.lock();
  if (!wire) return;
  wire->refuse("the connection was reset");
  host_.world().at(host_.world().now(), [wire] { wire->server.closed(wire); });
}

std::uint64_t SimulatedLine::opens(const std::shared_ptr<Wire>& wire) {
  connections_.push_back({.wire = wire, .dark = holds_.has_value()});
  return ++counts_.accepted;
}

std::optional<Duration> SimulatedLine::pass(Wire& wire, Way way, std::function<void()>& arrive) {
  const auto strikes = [&](const std::optional<testbed::Connections>& which) {
    return which && which->has(wire.number);
  };
  const bool to_client = way == Way::to_client;
  if (to_client) ++counts_.from_server;
  Connection& connection = connections_.at(wire.number - 1);
  if (connection.dark || strikes(loses_)) {
    connection.lost = true;
    ++counts_.swallowed;
    return std::nullopt;
  }
  if (strikes(holds_)) {
    held_.push_back({wire.shared_from_this(), way, std::move(arrive)});
    return std::nullopt;
  }
  ++(to_client ? counts_.to_client : counts_.to_server);
  return strikes(delays_) ? each_way_ : Duration::zero();
}

}  // namespace lockbench::hazards
