#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "loadgen/fibers/pool.h"
#include "loadgen/run/worker.h"
#include "strategies/carrier.h"

namespace lockbench::loadgen {

/// The clients of this process: those of its share of the run. All calls come from the runner's
/// thread, in their order here. The end of `over` in RunShared ends the load.
class LocalCrew {
 public:
  /// All must outlive it. `pool`: on whose threads clients run; null: as fibers beside the runner,
  /// which is one itself. A stop of `external` ends the run early.
  LocalCrew(RunShared& run, const std::unique_ptr<fibers::Pool>& pool, Env& env,
            std::stop_token external)
      : run_(run),
        pool_(pool),
        env_(env),
        external_(std::move(external)),
        changed_(Carrier::current().make_event()) {}

  /// Starts the clients and waits until all are connected; `connected` is told how many are. If one
  /// cannot, or after a stop, no client is left. The error says why.
  tl::expected<void, std::string> connect(const std::function<void(int)>& connected);
  /// The load does not begin after all: ends the clients.
  void call_off();
  /// The times of the load are set: clients may work.
  void begin();
  /// Waits until that time, or until the load is over before: it was stopped, or no client is left.
  bool wait(TimePoint until);
  /// The load is over: lets clients finish what is under way, and ends them. Waits as long as a
  /// store may take to answer, or only so long.
  void drain(std::optional<Duration> patience = {});
  /// After drain(): counts what was due until then and was never begun.
  void count_never_begun(TimePoint until);

 private:
  tl::expected<std::unique_ptr<Task>, std::string> start_client(int place);
  /// What a client does on its fiber.
  void run_client(int number);
  /// Its end by an exception.
  void client_failed(int number, const std::string& why);
  /// How far the clients are.
  struct State {
    int connected = 0, working = 0, failed = 0;
    std::string connect_error;  ///< what kept a client from connecting; empty: nothing yet
  };
  State state() {
    const std::scoped_lock lock(mutex_);
    return state_;
  }
  template <class Change>
  void change(const Change& change) {
    {
      const std::scoped_lock lock(mutex_);
      change(state_);
    }
    changed_->set();
  }
  /// Waits until the state changed, the time, or a stop.
  void await_change(TimePoint until, const std::stop_token& stop) {
    Carrier::current().wait(changed_.get(), until, stop);
  }

  RunShared& run_;
  const std::unique_ptr<fibers::Pool>& pool_;
  Env& env_;
  const std::stop_token external_;

  std::mutex mutex_;
  State state_;                                 ///< under the mutex
  const std::unique_ptr<Event> changed_;        ///< only the runner waits for it
  std::stop_source gate_;                       ///< connected clients wait for this stop
  std::vector<std::unique_ptr<Task>> clients_;  ///< end before anything they use is destroyed
};

}  // namespace lockbench::loadgen
