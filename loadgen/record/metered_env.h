#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/env.h"

namespace lockbench::loadgen {

/// The costs of one client's lock so far. Plain numbers, used only on the client's thread.
struct Effort {
  std::uint64_t commands = 0;
  std::uint64_t wakes = 0;  ///< waits ended by an event or by the store's own queue
  Duration round_trip{}, backoff{}, notified{};

  Effort operator-(const Effort& earlier) const {
    return {commands - earlier.commands, wakes - earlier.wakes, round_trip - earlier.round_trip,
            backoff - earlier.backoff, notified - earlier.notified};
  }
};

/// Divides a client's waiting time by its commands and waits. Overlapping commands, pipelined or on
/// several connections, count as one stretch of time, which ends when the client no longer waits
/// for the rest: a sleep begins, or the acquisition is over. In a run, waits stop at the run's end;
/// the request's own stop comes later, if commands under way remain unanswered.
class MeteredEnv : public ForwardingEnv {
 public:
  /// Called for each answer, with its duration and its time. `kind`: small, and its own for each
  /// command's name and server.
  using OnAnswer = std::function<void(std::size_t kind, std::string_view command, Duration taken,
                                      TimePoint ended)>;

  explicit MeteredEnv(Env& inner, std::stop_token run_over = {}, OnAnswer on_answer = {})
      : ForwardingEnv(inner), run_over_(std::move(run_over)), on_answer_(std::move(on_answer)) {}

  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    leave_behind();
    const TimePoint before = now();
    const WaitResult result = ForwardingEnv::wait(event, deadline, waiting_stop(stop));
    const Duration waited = now() - before;
    (event == nullptr ? effort_.backoff : effort_.notified) += waited;
    if (event != nullptr && result == WaitResult::signalled) ++effort_.wakes;
    return result;
  }

  std::stop_token waiting_stop(const std::stop_token& stop) override {
    // A wait that cannot be stopped, as in a clean-up, stays so.
    const bool in_run = run_over_.stop_possible() && stop.stop_possible();
    return in_run ? run_over_ : stop;
  }

  CommandFate before_command(const CommandInfo& command) override {
    ++effort_.commands;
    const TimePoint begun = now();
    if (under_way_++ == 0) since_ = begun;
    if (on_answer_ && !command.blocks) begun_.push_back({kind_of(command), begun});
    return ForwardingEnv::before_command(command);
  }

  CommandFate after_command(const CommandInfo& command, CommandEnd end) override {
    const TimePoint ended = now();
    note_answer(command, end, ended);
    // Any command will do: the stretch ends with the last one anyway.
    if (left_behind_ > 0) {
      --left_behind_;
    } else if (--under_way_ == 0) {
      const Duration taken = ended - since_;
      (command.blocks ? effort_.notified : effort_.round_trip) += taken;
      if (command.blocks && end == CommandEnd::answered) ++effort_.wakes;
    }
    return ForwardingEnv::after_command(command, end);
  }

  /// The client no longer waits for the commands under way: they are counted already, and take no
  /// more time.
  void leave_behind() {
    if (under_way_ == 0) return;
    effort_.round_trip += now() - since_;
    left_behind_ += std::exchange(under_way_, 0);
  }

  const Effort& effort() const { return effort_; }

 private:
  /// The commands of one name to one server, which answers them in order.
  struct Kind {
    std::string name, endpoint;

    bool has(const CommandInfo& command) const {
      return name == command.name && endpoint == command.endpoint;
    }
  };
  struct Begun {
    std::size_t kind = 0;
    TimePoint at{};
  };

  std::size_t kind_of(const CommandInfo& command) {
    // A client repeats its few commands in the same order, so the next one is mostly expected.
    for (std::size_t looked = 0; looked < kinds_.size(); ++looked) {
      if (++latest_ >= kinds_.size()) latest_ = 0;
      if (kinds_[latest_].has(command)) return latest_;
    }
    kinds_.push_back({std::string(command.name), std::string(command.endpoint)});
    return latest_ = kinds_.size() - 1;
  }

  void note_answer(const CommandInfo& command, CommandEnd end, TimePoint ended) {
    if (begun_.empty() || command.blocks) return;
    // Mostly only one is under way, and needs no comparison.
    const auto first =
        begun_.size() == 1 ? begun_.begin() : std::ranges::find_if(begun_, [&](const Begun& one) {
          return kinds_[one.kind].has(command);
        });
    if (first == begun_.end()) return;
    if (end == CommandEnd::answered) {
      on_answer_(first->kind, command.name, ended - first->at, ended);
    }
    begun_.erase(first);
  }

  const std::stop_token run_over_;
  const OnAnswer on_answer_;
  std::vector<Begun> begun_;  ///< commands under way, oldest first
  std::vector<Kind> kinds_;   ///< in the order of their first use
  std::size_t latest_ = 0;    ///< of these
  Effort effort_;
  int under_way_ = 0;
  int left_behind_ = 0;  ///< also under way, but no longer waited for
  TimePoint since_{};
};

}  // namespace lockbench::loadgen
