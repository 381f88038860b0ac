#pragma once

#include <cstdint>
#include <memory>

#include "strategies/env.h"
#include "strategies/lease.h"
#include "strategies/services.h"

namespace lockbench::loadgen {

/// The machines of a run whose clients are processes of their own, as in a simulation; it sees what
/// clients do with their locks. Otherwise all clients of a run share a process. Called on the
/// clients' threads.
class ClientHosts {
 public:
  virtual ~ClientHosts() = default;

  virtual std::unique_ptr<Env> make_env(int client, std::uint64_t seed) = 0;
  virtual std::unique_ptr<Services> make_services(int client, std::uint64_t seed) = 0;
  /// Its process has died; false again once another one may take its place.
  virtual bool is_dead(int client) const = 0;

  /// It begins to wait for the lock of this key.
  virtual void asks(int client, int key) = 0;
  /// It was granted the lock at last, `waited` after its intended start, and is to hold it for
  /// `hold`.
  virtual void granted(int client, int key, const Lease& lease, Duration waited, Duration hold) = 0;
  virtual void gave_up(int client, int key) = 0;
  /// It is about to release the lock, or has died with it.
  virtual void leaves(int client, int key) = 0;
};

}  // namespace lockbench::loadgen
