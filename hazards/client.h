#pragma once

#include <functional>
#include <memory>

#include "hazards/messages.h"
#include "strategies/env.h"
#include "strategies/services.h"

namespace lockbench::hazards {

/// The machine of one client as the client itself uses it: a process of its own, or a simulated
/// machine. Used where the client runs.
class ClientMachine {
 public:
  virtual ~ClientMachine() = default;

  /// For the client's strategy, or for its protected counter.
  virtual std::unique_ptr<Env> make_env() = 0;
  /// Provides what the strategy's services need here. `stalled`: nothing runs beside the client,
  /// neither the renewal of its leases nor the keeper of its session.
  virtual void equip(Services& services, bool stalled) = 0;
  /// The client is killed: on a simulated machine this returns, and no command goes out any more.
  virtual void die() = 0;
  /// Returns when the play lets it go on.
  virtual void stand_still() = 0;
  /// To the play.
  virtual void tell(const Answer& answer) = 0;
};

/// Carries out one request after the other. Throws std::exception with the reason if that fails.
using Client = std::function<Answer(const Request&)>;

/// Connects a client of this setup; `machine` must outlive it. Throws as above.
Client make_client(const ClientSetup& setup, ClientMachine& machine);

}  // namespace lockbench::hazards
