#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "strategies/env.h"

namespace lockbench::test {

/// A command as a strategy's connection reported it, before it was sent.
struct TracedCommand {
  std::string store, endpoint, name, key;
};

/// Remembers every command, and says when its client begins to wait. Its own methods are
/// thread-safe.
class TracingEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override;
  CommandFate before_command(const CommandInfo& command) override;
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override;

  /// What was reported since the last call.
  std::vector<TracedCommand> take();
  /// Commands whose end was not reported yet: none between a client's calls.
  int under_way() const;
  /// Until the client has begun a wait, be it in a queue at the server, or has a command under way;
  /// false if it does not come to that.
  bool await_waiting();
  bool await_command();
  /// Until it waits for something that may well not come for a second.
  bool await_sleep();
  /// Whether such a wait lasted until its deadline.
  bool overslept() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TracedCommand> commands_;
  int under_way_ = 0;
  int waits_ = 0;
  TimePoint waits_until_ = TimePoint::min();
  bool overslept_ = false;
};

/// Their names, in order.
std::vector<std::string> names_of(const std::vector<TracedCommand>& commands);

}  // namespace lockbench::test
