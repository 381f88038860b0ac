#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "loadgen/run/client_threads.h"
#include "loadgen/run/crew.h"
#include "loadgen/run/worker.h"
#include "strategies/carrier.h"

namespace lockbench::loadgen {

/// Clients of this process: those of its share of the run.
class LocalCrew : public Crew {
 public:
  /// All must outlive it. A stop of `external` ends the run early.
  LocalCrew(RunShared& run, ClientThreads& threads, Env& env, std::stop_token external)
      : run_(run),
        threads_(threads),
        env_(env),
        external_(std::move(external)),
        changed_(Carrier::current().make_event()) {}

  tl::expected<void, std::string> connect(const std::function<void(int)>& connected) override;
  TimePoint start_time() override { return env_.now(); }
  void begin() override;
  void wait(TimePoint until) override;
  bool nobody_works() override;
  void drain() override;
  void count_never_begun(TimePoint until) override;

  /// Clients that have not ended. On any thread.
  int working();
  /// How long drain() waits, where it should not for as long as a store may take to answer.
  void limit_drain(Duration patience) { patience_ = patience; }
  /// Lets clients that never began end.
  void release_waiting() { gate_.request_stop(); }

 private:
  /// What a client does on its thread or fiber.
  void run_client(int number);
  /// Its end by an exception.
  void client_failed(int number, const std::string& why);
  /// Waits until something changed that the mutex guards, the time, or a stop.
  void await_change(TimePoint until, const std::stop_token& stop) {
    Carrier::current().wait(changed_.get(), until, stop);
  }
  /// Waits until every client is connected or one has failed.
  tl::expected<void, std::string> await_connected(const std::function<void(int)>& connected);
  int connected_so_far();
  /// What kept a client from connecting; empty: nothing yet.
  std::string connect_error();
  /// Under the mutex.
  bool none_left() const { return working_ == 0 && (failed_ > 0 || run_.demand_met); }
  /// That the load asks for beside those that have begun.
  std::uint64_t sections_left() const;

  RunShared& run_;
  ClientThreads& threads_;
  Env& env_;
  const std::stop_token external_;

  std::mutex mutex_;  ///< guards connected_, working_, failed_ and connect_error_
  const std::unique_ptr<Event> changed_;  ///< only the runner waits for it
  int connected_ = 0, working_ = 0, failed_ = 0;
  std::string connect_error_;
  std::optional<Duration> patience_;
  std::stop_source gate_;                       ///< connected clients wait for this stop
  std::vector<std::unique_ptr<Task>> clients_;  ///< end before anything they use is destroyed
};

}  // namespace lockbench::loadgen
