#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "strategies/descriptor.h"

namespace lockbench::program {

class Process;

/// A client program that stands for a strategy.
struct Client {
  std::string name, command;
  std::string about;             ///< its answer to hello, as JSON
  std::string library, version;  ///< as it says; known once it is registered
};

/// Reads "COMMAND" or "NAME=COMMAND"; otherwise the name is that of the program's file. The error
/// says what is allowed.
tl::expected<Client, std::string> parse_client(const std::string& text);

/// Starts the program, asks it what it is, and ends it. It gets the user's URLs, and for other
/// stores addresses where nobody listens. The error is one line that names the client.
tl::expected<Client, std::string> ask(Client client, const Endpoints& given);

/// By store, addresses where nobody listens.
Endpoints nowhere();

/// Registers it as a strategy, with the traits that it has told and the defaults of its store for
/// those that it has not. Not while others look strategies up. The error says which name, store or
/// trait is wrong.
tl::expected<const Descriptor*, std::string> add(const Client& client);
/// Null if the strategy is no client program.
const Client* client_of(const Descriptor& strategy);

/// The processes that the clients of a run share: StrategyOptions::clients_per_process in each.
/// Thread-safe. One of its Services.
class Fleet {
 public:
  Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet();

  /// The process of this client; the first of its clients starts it.
  tl::expected<Process*, std::string> process_of(const Client& client, const Context& context,
                                                 Duration ttl);
  /// Of all its processes; `of_tree` knows that of a process with its children.
  double cpu_seconds(const std::function<std::optional<double>(pid_t)>& of_tree) const;
  std::size_t size() const;

 private:
  struct Member;

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::unique_ptr<Member>> members_;
};

/// One of the Services. False: programs stay in this process's group, so that its signals reach
/// them too.
struct Grouping {
  bool own_group = true;
};

/// What only the lock of a client program can be asked.
class ProgramLock : public LockStrategy {
 public:
  enum class Done { done, unsupported, failed };

  /// Asks the library whether it believes to hold the lock, and updates the lease's state.
  virtual void look(const Lease& lease) = 0;
  /// Releases, and cancels the request after this time.
  virtual ReleaseResult release(const Lease& lease, Duration cancel_after) = 0;
  using LockStrategy::release;
  /// Keeps the thread that would do the application's work busy for this time, and waits for it.
  virtual Done work(Duration busy) = 0;
  /// Signals its process.
  virtual void signal(int number) = 0;
};

/// For Descriptor::make. `waits`: the library does; otherwise the lock asks again and again.
/// `expires`: a grant ends a TTL later by itself.
std::unique_ptr<LockStrategy> make_lock(const Client& client, const Context& context, bool waits,
                                        bool expires);

}  // namespace lockbench::program
