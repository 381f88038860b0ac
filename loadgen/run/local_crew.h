#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "loadgen/fibers/scheduler.h"
#include "loadgen/run/worker.h"

namespace lockbench::loadgen {

/// This process's clients: its share of the run's. All calls come from the runner's thread, in this
/// order. A stop of RunShared::over ends the load.
class LocalCrew {
 public:
  /// All must outlive it. A stop of `external` ends the run early.
  LocalCrew(RunShared& run, Env& env, std::stop_token external)
      : run_(run),
        env_(env),
        external_(std::move(external)),
        changed_(Carrier::current().make_event()) {}

  /// Starts the clients and waits until all are connected; calls `connected` with the number
  /// connected so far. If one fails, or after a stop, no client is left. The error says why.
  tl::expected<void, std::string> connect(const std::function<void(int)>& connected) {
    const int clients = run_.share.count();
    clients_.reserve(static_cast<std::size_t>(clients));
    TimePoint next_report = env_.now();
    State now = state();
    // Bounded: every client either connects or fails within the command timeout.
    while (now.connected < clients && now.connect_error.empty() && !external_.stop_requested()) {
      if (env_.now() >= next_report) {
        connected(now.connected);
        next_report = env_.now() + kConnectReportInterval;
      }
      const auto started = static_cast<int>(clients_.size());
      if (started == clients || started - now.connected >= kConnectingAtOnce) {
        await_change(next_report, external_);
        now = state();
        continue;
      }
      auto client = start_client(started);
      now = state();
      if (client) {
        clients_.push_back(*std::move(client));
      } else {
        now.connect_error =
            fmt::format("client {} of {}: {}", started + 1, clients, client.error());
      }
    }
    if (now.connect_error.empty() && now.connected < clients) {
      now.connect_error = "interrupted while connecting";
    }
    if (now.connect_error.empty()) {
      connected(clients);
      return {};
    }
    call_off();
    return tl::unexpected(now.connect_error);
  }

  /// The load does not begin after all: ends the clients.
  void call_off() {
    run_.over.request_stop();
    // After a stop, does not wait for answers that may never come.
    if (external_.stop_requested()) run_.abort.request_stop();
    gate_.request_stop();
    clients_.clear();
  }

  /// The times of the load are set: clients may work.
  void begin() {
    stood_still_ = {};
    const Workload& workload = run_.workload;
    // A share without clients has no turn: its schedule would search for ever.
    if (workload.rate && run_.share.count() > 0) {
      run_.schedule = std::make_unique<Schedule>(*workload.rate, workload.arrival, run_.load_start,
                                                 run_.seed, run_.share);
    }
    gate_.request_stop();
  }

  /// Waits until `until`, or until the load is over earlier: stopped, or without clients.
  bool wait(TimePoint until) {
    while (true) {
      const State now = state();
      const bool none_left =
          now.working == 0 && (now.failed > 0 || run_.demand_met || run_.share.count() == 0);
      const bool over = none_left || run_.over.stop_requested() || external_.stop_requested();
      if (over || env_.now() >= until) return over;
      // On virtual time no process stands still.
      await_change(run_.threads ? std::min(until, env_.now() + kBetweenBeats) : until, external_);
    }
  }

  /// The longest time for which this process stood still since the measured part began: it was
  /// stopped, or had no CPU. A beat less than that at worst, and zero on virtual time.
  Duration stood_still() const { return stood_still_; }

  /// After the measured window: waits until every wait that belongs to it has ended, at most until
  /// `until`. Meanwhile the clients go on with the same load.
  void run_out(TimePoint until) {
    // Clients do not tell when their waits end: that would cost each section, and the runner may
    // look while a client is about to begin one.
    constexpr Duration kLook = std::chrono::milliseconds(10);
    int settled = 0;
    while (!is_settled(settled) && state().working > 0 && env_.now() < until &&
           !run_.over.stop_requested() && !external_.stop_requested()) {
      await_change(std::min(until, env_.now() + kLook), external_);
    }
  }

  /// After the load: lets clients finish their sections, and ends them. Waits for `patience`, by
  /// default as long as a store may take to answer.
  void drain(std::optional<Duration> patience) {
    // Two commands under way, one after the other, each bounded by its own time-out.
    const TimePoint give_up_at =
        env_.now() + patience.value_or(2 * run_.workload.strategy.command_timeout);
    while (state().working > 0 && env_.now() < give_up_at) await_change(give_up_at, {});
    run_.abort.request_stop();
    clients_.clear();  // waits for their ends
  }

  /// After drain(): counts the sections that were due in the measured window and never begun,
  /// though the run ended only at `cut`.
  void count_never_begun(TimePoint cut) {
    const TimePoint until = run_.measure_end;
    // Nothing counts before the measured part.
    if (!run_.schedule || run_.demand_met || until <= run_.measure_start.load()) return;
    const Workload& workload = run_.workload;
    // Sections of the load that have not begun.
    std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
    if (workload.iterations) left = *workload.iterations - run_.measured_sections;
    if (workload.trace) left = std::min(left, workload.trace->transactions - run_.ended_of_trace);
    if (left == 0) return;
    // Due, but without a free client: they have waited since their intended start.
    const auto [due, to_window_end] = run_.schedule->due_before(until);
    const std::uint64_t beyond = due - std::min(due, left);
    const Duration shortest = std::max(cut - until, Duration::zero());
    const Duration longest = shortest + to_window_end;
    Recorder::Histograms& histograms = run_.recorder.histograms(Phase::measured);
    histograms[Timing::abandoned].record_evenly(longest, due, beyond, shortest);
    if (workload.has_transactions()) {
      histograms[Timing::transaction_cut].record_evenly(longest, due, beyond, shortest);
    }
    // Their modes were never drawn, so they get the load's shares. Modes of a trace are unknown.
    if (workload.has_shared_sections() && !workload.trace) {
      const auto shared_of = [&](std::uint64_t sections) {
        return static_cast<std::uint64_t>(
            std::llround(static_cast<double>(sections) * workload.shared_share));
      };
      const std::uint64_t shared = shared_of(due), shared_beyond = shared_of(beyond);
      histograms[Timing::shared_cut].record_evenly(longest, shared, shared_beyond, shortest);
      histograms[Timing::exclusive_cut].record_evenly(longest, due - shared, beyond - shared_beyond,
                                                      shortest);
    }
    histograms[Timing::schedule_lag].record_evenly(longest, due, beyond, shortest);
  }

 private:
  /// Whether the waits of all clients from the `settled`-th on, and of starts to come, begin after
  /// the window. Moves `settled` on: a client that has begun such a wait has no other left.
  bool is_settled(int& settled) const {
    const TimePoint end = run_.measure_end;
    if (run_.schedule && !run_.schedule->has_passed(end)) return false;
    for (; settled < run_.share.count(); ++settled) {
      const ClientRecord& client = run_.recorder.client(run_.share.number(settled));
      if (client.since.load(std::memory_order_acquire) < end) return false;
    }
    return true;
  }

  struct State {
    int connected = 0, working = 0, failed = 0;
    std::string connect_error;  ///< why a client could not connect; empty: none failed
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
  void await_change(TimePoint until, const std::stop_token& stop) {
    Carrier::current().wait(changed_.get(), until, stop);
    if (!run_.threads) return;
    // What the runner does between its waits holds up no client.
    const TimePoint now = env_.now();
    if (now >= run_.measure_start.load()) stood_still_ = std::max(stood_still_, now - until);
  }

  tl::expected<std::unique_ptr<Task>, std::string> start_client(int place) {
    const int number = run_.share.number(place);
    auto body = [this, number](const std::stop_token&) { run_client(number); };
    auto failed = [this, number](const std::string& why) { client_failed(number, why); };
    return run_.threads ? run_.threads->start(place, std::move(body), std::move(failed))
                        : Carrier::current().start(std::move(body), std::move(failed));
  }

  void run_client(int number) {
    for (int life = 0; live(number, life) && await_replacement(number); ++life) {
    }
  }

  /// A killed client is dead until another one takes its place; false: until the end.
  bool await_replacement(int number) {
    constexpr Duration kLook = std::chrono::milliseconds(10);
    Carrier& carrier = Carrier::current();
    while (run_.hosts->is_dead(number) && !run_.over.stop_requested()) {
      carrier.wait(nullptr, carrier.now() + kLook, run_.over.get_token());
    }
    return !run_.over.stop_requested();
  }

  /// Returns whether it may be replaced: it was killed, or is to be started again.
  bool live(int number, int life) {
    Worker worker(run_, number, life);
    const StoreResult<void> connected = worker.connect();
    change([&](State& state) {
      if (connected) {
        ++state.connected;
        ++state.working;
      } else if (state.connect_error.empty()) {
        state.connect_error = connected.error().message;
      }
    });
    if (!connected) {
      if (life == 0) return false;
      run_.recorder.failure(connected.error().message);
      // Started again, as by its host.
      Carrier& carrier = Carrier::current();
      carrier.wait(nullptr, carrier.now() + kRestart, run_.over.get_token());
      return true;
    }
    work(worker);
    if (worker.is_dead()) return true;
    // Stays connected, also if it has nothing left to do: a server with fewer clients is another
    // one.
    Carrier::current().wait(nullptr, TimePoint::max(), run_.over.get_token());
    return false;
  }

  void work(Worker& worker) {
    // Counts down on any exit.
    struct Working {
      ~Working() {
        crew.change([](State& state) { --state.working; });
      }
      LocalCrew& crew;
    };
    const Working working{*this};
    // Connecting, with the resolver and TLS, needs more stack than the load ever will.
    fibers::trim_stack();
    Carrier::current().wait(nullptr, TimePoint::max(), gate_.get_token());
    worker.work();
  }

  void client_failed(int number, const std::string& why) {
    const std::string line = fmt::format("client {} ended: {}", number + 1, why);
    run_.recorder.failure(line);
    ClientRecord& client = run_.recorder.client(number);
    client.state.store(ClientState::idle, std::memory_order_relaxed);
    client.since.store(TimePoint::max(), std::memory_order_release);
    change([&](State& state) {
      ++state.failed;
      if (state.connect_error.empty()) state.connect_error = line;
    });
  }

  // Each costs the clients on the same cores about 30 microseconds.
  static constexpr Duration kBetweenBeats = std::chrono::milliseconds(20);
  static constexpr Duration kRestart = std::chrono::seconds(1);
  static constexpr Duration kConnectReportInterval = std::chrono::milliseconds(200);
  // A server's accept queue is short: with more, connections wait for retransmissions.
  static constexpr int kConnectingAtOnce = 64;

  RunShared& run_;
  Env& env_;
  const std::stop_token external_;

  std::mutex mutex_;
  State state_;                           ///< under the mutex
  const std::unique_ptr<Event> changed_;  ///< only the runner waits for it
  std::stop_source gate_;                 ///< connected clients wait for this stop
  Duration stood_still_{};
  std::vector<std::unique_ptr<Task>> clients_;  ///< last: end before all that they use
};

}  // namespace lockbench::loadgen
