#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "hazards/client.h"
#include "hazards/play.h"
#include "simulate/wire.h"

namespace lockbench::hazards {

/// A client as a fiber on a simulated host: killed, nothing of it reaches a server any more;
/// stopped, what it waits for ends when it goes on. Used on fibers of one scheduler.
class SimulatedClient final : public ControlledClient, private ClientMachine {
 public:
  /// All must outlive it.
  SimulatedClient(simulate::Host& host, simulate::Network& network,
                  const std::vector<simulate::Server*>& servers);
  SimulatedClient(const SimulatedClient&) = delete;
  SimulatedClient& operator=(const SimulatedClient&) = delete;
  ~SimulatedClient() override;

  void send(const ClientSetup& setup) override { deliver(setup); }
  void send(const Request& request) override { deliver(request); }
  std::optional<Answer> receive(Duration within) override;
  void kill() override;
  void stop() override;
  void resume() override { host_.resume(); }
  void await_death() override;
  void await_stop() override;

 private:
  using Message = std::variant<ClientSetup, Request>;

  // For the client, on its fiber.
  std::unique_ptr<Env> make_env() override;
  void equip(Services& services, bool stalled) override;
  void die() override;
  void stand_still() override;
  void tell(const Answer& answer) override;

  void run(const std::stop_token& stop);
  /// Nothing when it is to end.
  std::optional<Message> next(const std::stop_token& stop);
  void deliver(Message message);
  void require_life() const;
  /// False if it does not come true in time.
  bool await(Duration within, const std::function<bool()>& change);

  simulate::Host& host_;
  simulate::Network& network_;
  const std::vector<simulate::Server*>& servers_;
  std::deque<Message> inbox_;
  std::deque<Answer> answers_;
  const std::unique_ptr<Event> asked_;    ///< the client waits for it
  const std::unique_ptr<Event> changed_;  ///< the play does
  std::unique_ptr<Task> task_;            ///< last
};

}  // namespace lockbench::hazards
