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

/// Longer than any test, for locks that must not expire during it.
inline constexpr seconds kLongTtl{600};
/// For locks that must expire. Long enough for a busy machine to learn of the grant before its end.
inline constexpr seconds kShortTtl{1};

/// How long a check waits for a lock that it must get: kPatience, but much less if a broken lock is
/// expected to make it wait in vain.
Duration patience();
/// Whether the condition becomes true in that time.
bool comes_true(const std::function<bool()>& condition);
/// While one of these lives, patience() is short.
struct Impatience {
  Impatience();
  Impatience(const Impatience&) = delete;
  Impatience& operator=(const Impatience&) = delete;
  ~Impatience();
};

/// One client of the strategy under test, on an Env that records and can inject failures.
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
  /// Releases the lease. Throws Broken if that fails.
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
/// The result's lease. Throws Broken if there is none, with a text that begins with `when`.
Lease granted(AcquireResult result, const std::string& when = {});

/// The environment of one check: an empty server, and any number of clients.
class Bench {
 public:
  /// On the shared store, or on `tested`, which is cleared, or on the server at `url`.
  explicit Bench(const Descriptor& descriptor, const StrategyOptions& options = {});
  Bench(const Descriptor& descriptor, TestStore& tested, const StrategyOptions& options = {});
  Bench(const Descriptor& descriptor, std::string url, const StrategyOptions& options = {});
  Bench(const Descriptor& descriptor, std::vector<std::string> urls,
        const StrategyOptions& options = {});

  /// A new client. Throws std::runtime_error if it cannot connect.
  std::unique_ptr<Client> client();
  std::unique_ptr<Client> unconnected_client();
  /// The lock of another client, on the test's Env.
  std::unique_ptr<LockStrategy> lock_on(Env& env);
  /// For a second bench, whose clients must have other numbers.
  void number_clients_after(int last) { clients_ = last; }

  const Descriptor& descriptor() const { return descriptor_; }
  const std::string& key() const { return key_; }
  /// All keys that the strategy may leave in the store for `key()`.
  std::vector<std::string> named_keys() const;
  /// The clients' shared services, and the Envs of these.
  Services& services() { return services_; }
  ServiceEnvs& worlds() { return worlds_; }
  /// Whether an unrelated client is refused. Releases the lock if it is granted.
  bool is_held();
  /// Whether the lock is free, or will be once the server has noticed a closed connection.
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

/// A bench on which a client holds the lock. Throws Broken if it is not granted.
struct HeldBench : Bench {
  /// Further arguments are those of Bench.
  template <class... Arguments>
  explicit HeldBench(Duration ttl, const Descriptor& descriptor, Arguments&&... arguments)
      : Bench(descriptor, std::forward<Arguments>(arguments)...),
        holder(client()),
        held(granted(holder->try_once(key(), ttl))) {}

  std::unique_ptr<Client> holder;
  const Lease held;
};

/// Options with this policy, if the strategy's waiting policy can be replaced.
StrategyOptions waiting_by(const Descriptor& descriptor, WaitPolicy policy);
/// Waiting for tests with contention: short, without flooding the machine.
StrategyOptions impatient(const Descriptor& descriptor);

StrategyOptions renewed_every(Duration period);
/// Without timed renewal, which keeps a held lock for ever.
StrategyOptions unrenewed(StrategyOptions options = {});

/// Waiting for a message, if the lock can.
StrategyOptions notified();
bool can_notify(const Descriptor& descriptor);

/// A proxy to that loopback port.
std::unique_ptr<testbed::Proxy> proxy_to(std::uint16_t port);
/// The suite's store at that port, reached as by commands.
std::unique_ptr<Store> store_at(std::uint16_t port);

/// Acquires and releases once, to set up connection, scripts and the like.
void warm_up(Client& client, const std::string& key);

bool has_store(const Descriptor& descriptor);
/// Whether the failure of one server changes nothing.
bool is_quorum(const Descriptor& descriptor);
/// The endpoints of the shared store's servers, as the Env gets them.
std::vector<std::string> shared_endpoints();
/// Whether it waits in the server's own queue, in one command that lasts as long as the wait.
bool waits_at_the_server(const Descriptor& descriptor);
bool has_hazard(const Descriptor& descriptor, std::string_view scenario, HazardOutcome outcome);

std::string_view name_of(AcquireOutcome outcome);
std::string_view name_of(ReleaseOutcome outcome);
std::string_view name_of(RenewOutcome outcome);

inline double in_ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace lockbench::test
