#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/store.h"
#include "testbed/proxy/proxy.h"
#include "tests/conformance/common/properties.h"
#include "tests/conformance/common/test_store.h"
#include "tests/support/eventually.h"
#include "tests/support/servers.h"
#include "tests/support/test_envs.h"

namespace lockbench::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Longer than any test: for locks that are not meant to expire in it.
inline constexpr seconds kLongTtl{600};
/// For locks that are. Long enough for a busy machine to hear of the grant before its end.
inline constexpr seconds kShortTtl{1};

/// How long a check waits for a lock that it must get: kPatience, but much less where a broken lock
/// is expected to keep it waiting in vain.
Duration patience();
/// Whether the condition comes true in that time.
bool comes_true(const std::function<bool()>& condition);
/// While one of these lives, patience() is short.
struct Impatience {
  Impatience();
  Impatience(const Impatience&) = delete;
  Impatience& operator=(const Impatience&) = delete;
  ~Impatience();
};

/// One client of the strategy under test, on an Env that can be watched and told to fail.
class Client {
 public:
  Client(const Descriptor& descriptor, const Endpoints& endpoints, const StrategyOptions& options,
         Services& services, int number);

  StoreResult<void> connect() { return lock_->connect(); }
  /// One attempt.
  AcquireResult try_once(const std::string& key, Duration ttl = kLongTtl);
  AcquireResult acquire(const std::string& key, Duration longest, Duration ttl = kLongTtl,
                        const std::stop_token& stop = {}, Mode mode = Mode::exclusive);
  AcquireResult share(const std::string& key, Duration longest = {}, Duration ttl = kLongTtl) {
    return acquire(key, longest, ttl, {}, Mode::shared);
  }
  ReleaseOutcome release(const Lease& lease) { return lock_->release(lease).outcome; }
  /// Throws Broken unless that releases it.
  void give_back(const Lease& lease);
  LockStrategy& lock() { return *lock_; }

  TimePoint now() { return system_->now(); }
  FaultyEnv& faults() { return faults_; }
  TracingEnv& trace() { return trace_; }

 private:
  std::unique_ptr<Env> system_;
  FaultyEnv faults_;
  TracingEnv trace_;
  std::unique_ptr<LockStrategy> lock_;
};

/// "acquire gave refused (reason), not acquired"
std::string unexpected(const AcquireResult& got, AcquireOutcome wanted);
/// Its lease. Throws Broken, whose text begins with `when`, if there is none.
Lease granted(AcquireResult result, const std::string& when = {});

/// Where one check takes place: a server without any key, and as many clients as wanted.
class Bench {
 public:
  /// On the shared tested, or on `tested`, which is cleared; or where `url` leads to.
  explicit Bench(const Descriptor& descriptor, const StrategyOptions& options = {});
  Bench(const Descriptor& descriptor, TestStore& tested, const StrategyOptions& options = {});
  Bench(const Descriptor& descriptor, std::string url, const StrategyOptions& options = {});
  Bench(const Descriptor& descriptor, std::vector<std::string> urls,
        const StrategyOptions& options = {});

  /// Throws std::runtime_error if it cannot connect.
  std::unique_ptr<Client> client();
  std::unique_ptr<Client> unconnected_client();
  /// Of one more client, on an Env of the test's own.
  std::unique_ptr<LockStrategy> lock_on(Env& env);
  /// For a bench beside another, whose clients are others.
  void number_clients_after(int last) { clients_ = last; }

  const Descriptor& descriptor() const { return descriptor_; }
  const std::string& key() const { return key_; }
  /// All that the strategy may leave in the store for `key()`.
  std::vector<std::string> named_keys() const;
  /// What the clients share, and the worlds in which that lives.
  Services& services() { return services_; }
  ServiceEnvs& worlds() { return worlds_; }
  /// Whether a client that has nothing to do with the holder is refused. Frees what it is granted.
  bool is_held();
  /// Whether it is free, or will be once the server has seen that a connection is gone.
  bool becomes_free();

 private:
  const Descriptor& descriptor_;
  const Endpoints endpoints_;
  const StrategyOptions options_;
  ServiceEnvs worlds_;
  Services services_;
  const std::string key_ = "lockbench:conformance:{lock}";
  int clients_ = 0;
};

/// A bench on which a client holds the lock. Throws Broken where it is not granted.
struct HeldBench : Bench {
  /// The other arguments are those of Bench.
  template <class... Arguments>
  explicit HeldBench(Duration ttl, const Descriptor& descriptor, Arguments&&... arguments)
      : Bench(descriptor, std::forward<Arguments>(arguments)...),
        holder(client()),
        held(granted(holder->try_once(key(), ttl))) {}

  std::unique_ptr<Client> holder;
  const Lease held;
};

/// Options with this policy, where the strategy lets its waiting be replaced.
StrategyOptions waiting_by(const Descriptor& descriptor, WaitPolicy policy);
/// A strategy's waiting for tests that contend: soon again, without flooding the machine.
StrategyOptions impatient(const Descriptor& descriptor);

StrategyOptions renewed_every(Duration period);
/// Without renewal on a timer, which keeps a held lock for ever.
StrategyOptions unrenewed(StrategyOptions options = {});

/// Waiting for a message, where the lock can.
StrategyOptions notified();
bool can_notify(const Descriptor& descriptor);

/// A proxy before that port of the loopback.
std::unique_ptr<testbed::Proxy> proxy_to(std::uint16_t port);
/// The suite's kind of store as commands reach it, at that port.
std::unique_ptr<Store> store_at(std::uint16_t port);

/// Acquires and releases once, so that connection, scripts and the like are there.
void warm_up(Client& client, const std::string& key);

bool has_store(const Descriptor& descriptor);
/// Where one server's failure changes nothing.
bool is_quorum(const Descriptor& descriptor);
/// Of the shared tested's servers, as the Env is told them.
std::vector<std::string> shared_endpoints();
/// Waits in the server's own queue, in one command that lasts as long as the wait.
bool waits_at_the_server(const Descriptor& descriptor);
bool has_hazard(const Descriptor& descriptor, std::string_view scenario, HazardOutcome outcome);

std::string_view name_of(AcquireOutcome outcome);
std::string_view name_of(ReleaseOutcome outcome);
std::string_view name_of(RenewOutcome outcome);

inline double in_ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace lockbench::test
