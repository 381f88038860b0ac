#include "tests/support/sim_env.h"

#include <algorithm>
#include <stdexcept>

namespace lockbench {
namespace {

class SimEvent : public Event {
 public:
  void set() noexcept override { set_ = true; }
  bool take() { return std::exchange(set_, false); }

 private:
  bool set_ = false;
};

}  // namespace

void SimClock::advance_to(TimePoint time) {
  while (now_ < time || (!actions_.empty() && actions_.begin()->first <= time)) step(time);
}

void SimClock::step(TimePoint limit) {
  if (!actions_.empty() && actions_.begin()->first <= limit) {
    auto due = actions_.extract(actions_.begin());
    now_ = std::max(now_, due.key());
    due.mapped()();
    return;
  }
  if (limit == TimePoint::max()) throw std::logic_error("a wait that nothing can end");
  now_ = std::max(now_, limit);
}

std::unique_ptr<Event> SimEnv::make_event() { return std::make_unique<SimEvent>(); }

WaitResult SimEnv::wait(Event* event, TimePoint deadline, const std::stop_token& stop) {
  const Duration asked = deadline == TimePoint::max() ? Duration::max() : deadline - clock_.now();
  const WaitResult result = pass_time(event, deadline, stop);
  waits_.push_back({.asked = asked, .result = result});
  return result;
}

WaitResult SimEnv::pass_time(Event* event, TimePoint deadline, const std::stop_token& stop) {
  while (true) {
    if (event != nullptr && static_cast<SimEvent&>(*event).take()) return WaitResult::signalled;
    if (stop.stop_requested()) return WaitResult::stopped;
    if (clock_.now() >= deadline) return WaitResult::timed_out;
    clock_.step(deadline);
  }
}

CommandFate SimEnv::before_command(const CommandInfo& command) {
  commands_.push_back("before " + std::string(command.name));
  return CommandFate::proceed;
}

CommandFate SimEnv::after_command(const CommandInfo& command, CommandEnd end) {
  commands_.push_back((end == CommandEnd::answered ? "after " : "lost ") +
                      std::string(command.name));
  return CommandFate::proceed;
}

}  // namespace lockbench
