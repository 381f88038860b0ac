#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "strategies/duration.h"
#include "strategies/random.h"

namespace lockbench {

/// Something that one client waits for and any thread may set. The wait that it ends resets it.
class Event {
 public:
  virtual ~Event() = default;
  /// Thread-safe. Setting an event that is set already changes nothing.
  virtual void set() noexcept = 0;
};

enum class WaitResult { signalled, timed_out, stopped };

/// One command on its way to a store. The views live only as long as the call they are passed to.
struct CommandInfo {
  std::string_view store;     ///< "redis"
  std::string_view endpoint;  ///< "127.0.0.1:6379": never with credentials
  std::string_view name;      ///< "SET"; a script's own name for EVALSHA and EVAL
  std::string_view key;       ///< empty where the command has none
  bool blocks = false;        ///< waits for the lock in a queue at the server
};

/// Whether a command goes through. Dropped before it is sent, it looks like a broken connection;
/// if its answer is dropped, the client does not know whether it took effect.
enum class CommandFate { proceed, drop };

enum class CommandEnd {
  answered,
  in_vain,  ///< a wait at the server that ended without the lock
  lost,
};

/// Everything that a strategy uses apart from its store: time, waiting, randomness, and the hooks
/// round its commands. One per client, used only where that client runs (except for its events), so
/// that a test can run on simulated time and a fault can skew one client's clock.
class Env {
 public:
  virtual ~Env() = default;

  virtual TimePoint now() = 0;
  virtual WallTime wall_now() = 0;
  /// 64 uniformly random bits, unique to this client of this run.
  virtual std::uint64_t random() = 0;

  /// To be made where it will be waited for.
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Every wait on the client's side goes through here: until `event` is set (null: a plain sleep),
  /// the deadline, or a stop, which ends it immediately.
  virtual WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) = 0;

  /// The token that ends a wait at the server, for a request with this `stop`. They can differ: a
  /// run that ends lets commands finish, but ends waits for a lock.
  virtual std::stop_token waiting_stop(const std::stop_token& stop) { return stop; }

  /// Each store's connection reports every command, in order: before it is sent, and when its
  /// answer was read or given up. Counting, tracing, stalls and kills are done here. The calls of
  /// pipelined commands overlap.
  virtual CommandFate before_command(const CommandInfo& /*command*/) {
    return CommandFate::proceed;
  }
  virtual CommandFate after_command(const CommandInfo& /*command*/, CommandEnd /*end*/) {
    return CommandFate::proceed;
  }

  /// Thread-safe. One line about a failure that no call's result can show, such as a service
  /// without its thread: measurements after it are in doubt.
  virtual void report(const std::string& /*failure*/) {}
};

/// Time and waits are those of the carrier that the caller runs on. `seed` must differ between
/// clients and between processes that share a store.
std::unique_ptr<Env> make_system_env(std::uint64_t seed);

/// Makes the Envs of a run's services, which outlive the client that started them. Some services
/// hold a mutex round a command, so these Envs must not wait in before_command() and
/// after_command().
struct EnvSource {
  std::function<std::unique_ptr<Env>()> make = [] { return make_system_env(random_seed()); };
};

class Services;

/// An Env for a service, from the run's EnvSource; a system Env if the run has none.
std::unique_ptr<Env> make_service_env(Services& services);

/// Passes everything on to another Env, which it owns or which must outlive it. The base of meters,
/// traces and faults.
class ForwardingEnv : public Env {
 public:
  explicit ForwardingEnv(Env& inner) : inner_(inner) {}
  explicit ForwardingEnv(std::unique_ptr<Env> inner) : owned_(std::move(inner)), inner_(*owned_) {}

  TimePoint now() override { return inner_.now(); }
  WallTime wall_now() override { return inner_.wall_now(); }
  std::uint64_t random() override { return inner_.random(); }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    return inner_.wait(event, deadline, stop);
  }
  std::stop_token waiting_stop(const std::stop_token& stop) override {
    return inner_.waiting_stop(stop);
  }
  CommandFate before_command(const CommandInfo& command) override {
    return inner_.before_command(command);
  }
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override {
    return inner_.after_command(command, end);
  }
  void report(const std::string& failure) override { inner_.report(failure); }

 private:
  const std::unique_ptr<Env> owned_;
  Env& inner_;
};

/// Calls `on_command` before each command is sent.
class CountingEnv final : public ForwardingEnv {
 public:
  CountingEnv(std::unique_ptr<Env> inner, std::function<void()> on_command)
      : ForwardingEnv(std::move(inner)), on_command_(std::move(on_command)) {}

  CommandFate before_command(const CommandInfo& command) override {
    on_command_();
    return ForwardingEnv::before_command(command);
  }

 private:
  const std::function<void()> on_command_;
};

/// 128 random bits in hex, drawn from a generator with a 64-bit seed: an owner token that is unique
/// to one acquisition.
std::string random_token(Env& env);

}  // namespace lockbench
