#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

#include "strategies/duration.h"

namespace lockbench {

/// Something that one client waits for and any thread may set. A wait that it ended has consumed
/// it.
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

/// What becomes of a command. Dropping it before it is sent looks like a broken connection;
/// dropping its answer leaves the client not knowing whether it took effect.
enum class CommandFate { proceed, drop };

enum class CommandEnd {
  answered,
  in_vain,  ///< a wait at the server that ended without what was waited for
  lost,
};

/// All that a strategy may know of the world outside its store: time, waiting, randomness, and what
/// watches its commands. One per client, used on that client's thread only (events apart), so that
/// a test can run on simulated time and a fault can skew one client's clock.
class Env {
 public:
  virtual ~Env() = default;

  virtual TimePoint now() = 0;
  virtual WallTime wall_now() = 0;
  /// 64 uniformly random bits, unique to this client of this run.
  virtual std::uint64_t random() = 0;

  virtual std::unique_ptr<Event> make_event() = 0;
  /// Every wait of ours goes through here: until `event` is set (null: a plain sleep), the
  /// deadline, or a stop, which ends it at once.
  virtual WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) = 0;

  /// What ends a wait at the server, for a request that `stop` belongs to. Not always the same: a
  /// run that ends lets commands under way finish, but no wait for a lock.
  virtual std::stop_token waiting_stop(const std::stop_token& stop) { return stop; }

  /// Every store's connection reports each of its commands, in order: before it is sent, and when
  /// its answer was read or given up. Counting, tracing, stalls and deaths hang here. Calls nest
  /// where commands are pipelined.
  virtual CommandFate before_command(const CommandInfo& /*command*/) {
    return CommandFate::proceed;
  }
  virtual CommandFate after_command(const CommandInfo& /*command*/, CommandEnd /*end*/) {
    return CommandFate::proceed;
  }
};

/// Where services that outlive the client that needed them first get worlds of their own.
struct EnvSource {
  std::function<std::unique_ptr<Env>()> make;
};

/// Real worlds.
std::shared_ptr<EnvSource> system_env_source();

/// The real world. `seed` must differ between clients and between processes that share a store.
std::unique_ptr<Env> make_system_env(std::uint64_t seed);

/// Passes everything on to another Env, which must outlive it. The base of meters, traces and
/// faults.
class ForwardingEnv : public Env {
 public:
  explicit ForwardingEnv(Env& inner) : inner_(inner) {}

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

 private:
  Env& inner_;
};

/// 128 random bits in hex: an owner token that no other acquisition has.
std::string random_token(Env& env);

}  // namespace lockbench
