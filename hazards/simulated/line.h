#pragma once

#include <memory>
#include <vector>

#include "deployment/private_store.h"
#include "simulate/wire.h"

namespace lockbench::hazards {

/// A line of a simulated client to a simulated server. It counts messages in place of bytes, and
/// what is in transit still arrives: that takes less than a millisecond.
class SimulatedLine final : public testbed::Line, public simulate::Relay {
 public:
  /// On the way of this host's connections from now on. The host must outlive it.
  SimulatedLine(simulate::Host& host, int server);
  SimulatedLine(const SimulatedLine&) = delete;
  SimulatedLine& operator=(const SimulatedLine&) = delete;
  ~SimulatedLine() override;

  std::uint16_t port() const override { return static_cast<std::uint16_t>(server_); }
  void delay(std::chrono::nanoseconds each_way, const testbed::Connections& which = {}) override;
  void black_hole(const testbed::Connections& which = {}) override { loses_ = which; }
  tl::expected<void, std::string> vanish() override;
  void hold(const testbed::Connections& which = {}) override { holds_ = which; }
  void cut() override;
  void heal() override;
  void lead_to(std::uint16_t server) override;
  testbed::ProxyCounts counts() const override;

  std::uint64_t opens(const std::shared_ptr<simulate::Wire>& wire) override;
  std::optional<Duration> pass(simulate::Wire& wire, simulate::Way way,
                               std::function<void()>& arrive) override;

 private:
  struct Connection {
    std::weak_ptr<simulate::Wire> wire;
    bool dark = false;  ///< opened while the line held others: it loses all
    bool lost = false;  ///< a message
  };
  struct Held {
    std::shared_ptr<simulate::Wire> wire;
    simulate::Way way;
    std::function<void()> arrive;
  };

  void reset(const Connection& connection);

  simulate::Host& host_;
  const int server_;
  std::vector<Connection> connections_;  ///< by their numbers, from 1
  std::optional<testbed::Connections> loses_, holds_, delays_;
  Duration each_way_{};
  std::vector<Held> held_;
  testbed::ProxyCounts counts_;
};

}  // namespace lockbench::hazards
