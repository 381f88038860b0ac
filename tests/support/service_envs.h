#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strategies/duration.h"
#include "tests/support/eventually.h"
#include "tests/support/tracing_env.h"

namespace lockbench::test {

/// The worlds of what clients share, such as renewal and notification: remembers their commands,
/// and holds them back as it is told. Thread-safe. Outlives the services.
class ServiceEnvs {
 public:
  /// For Services::provide().
  std::shared_ptr<EnvSource> source();

  /// What was reported since the last call.
  std::vector<TracedCommand> take();

  /// Until so many commands of that name have ended since the beginning; false if they do not
  /// come.
  bool await(const std::string& name, int count, Duration longest = kPatience);

  /// Likewise, whatever their names.
  bool await_any(int count, Duration longest = kPatience);
  int ended() const;

  /// Commands do not leave until let_go().
  void hold_back_all();
  /// Until one is held back; false if none is.
  bool await_held(Duration longest = kPatience);
  void let_go();

 private:
  class World;

  void begin(const CommandInfo& command);
  bool holds_back() const;
  void end(const CommandInfo& command);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TracedCommand> commands_;
  std::map<std::string, int, std::less<>> ended_;
  int all_ended_ = 0;
  bool holds_back_ = false;
  int held_ = 0;
};

}  // namespace lockbench::test
