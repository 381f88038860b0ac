#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/duration.h"
#include "watch/sighting.h"

namespace lockbench::watch {

/// Takes what sources see. Thread-safe; returns at once. Sightings of one lock come in order.
class Sink {
 public:
  virtual ~Sink() = default;
  /// What the source can see, told before its first sighting and again if it changes.
  virtual void facts(const SourceFacts& facts) = 0;
  virtual void seen(const std::string& endpoint, Sighting sighting) = 0;
  /// Keys of this pattern look like locks, where the user named none. They are not followed. May
  /// come again and again.
  virtual void proposed(std::string pattern) = 0;
  /// From now on the source sees nothing, for this reason; until `sees` is called.
  virtual void blind(const std::string& endpoint, TimePoint at, std::string reason) = 0;
  /// It sees again. What happened meanwhile is missed: the first sighting of each lock afterwards
  /// is a new beginning and ends no holding.
  virtual void sees(const std::string& endpoint, TimePoint at) = 0;
  /// Changes that were not looked at, for want of budget or memory.
  virtual void missed(const std::string& endpoint, std::uint64_t changes, std::string reason) = 0;
};

/// What the user asked a watch for.
struct Request {
  std::vector<std::string> locks;  ///< patterns with * and ?; none: propose those that look so
  double budget = 200;             ///< commands per second to each server, at most
  std::uint64_t most_locks = 1'000'000;  ///< distinct locks that are followed at once, at most
  std::vector<std::string> lock_tables;  ///< of PostgreSQL: "schema.table" or
                                         ///< "table(name,lock_until,locked_by)"
  Duration command_timeout = std::chrono::seconds(3);
};

/// Watches the locks of one server or cluster, read-only. Constructing it does not connect.
class Source {
 public:
  virtual ~Source() = default;
  /// What it watches, as its facts name it.
  virtual const std::string& endpoint() const = 0;
  /// Connects and checks that it may see. The error names the endpoint and what is missing.
  virtual tl::expected<void, std::string> reach(const std::stop_token& stop) = 0;
  /// Watches until the stop, which ends it within 100 ms. A server that is lost is tried again with
  /// growing pauses; meanwhile the sink is told that it is blind. Does not throw. On a thread of
  /// its own.
  virtual void run(Sink& sink, const std::stop_token& stop) = 0;
  /// Commands sent so far. Thread-safe.
  virtual std::uint64_t commands() const = 0;
};

/// The source of the locks of one server or cluster. The error says what is wrong with the URL or
/// the request, or names the store that cannot be watched, and why.
tl::expected<std::unique_ptr<Source>, std::string> make_source(const std::string& store,
                                                               const std::string& url,
                                                               const Request& request);

}  // namespace lockbench::watch
