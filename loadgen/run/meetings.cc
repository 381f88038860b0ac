#include "loadgen/run/meetings.h"

namespace lockbench::loadgen {

void Meetings::expect(int lock, Event* event) {
  const std::scoped_lock guard(mutex_);
  called_.at(static_cast<std::size_t>(lock)).rival = event;
}

bool Meetings::begin(int lock, TimePoint now) {
  const std::scoped_lock guard(mutex_);
  if (under_way_ || static_cast<std::size_t>(lock) != turn_ || now < next_) return false;
  under_way_ = true;
  turn_ = (turn_ + 1) % called_.size();
  next_ = now + every_;
  return true;
}

void Meetings::call(int lock, TimePoint until) {
  const std::scoped_lock guard(mutex_);
  Called& called = called_.at(static_cast<std::size_t>(lock));
  called.until = until;
  if (called.rival != nullptr) called.rival->set();
}

void Meetings::end() {
  const std::scoped_lock guard(mutex_);
  under_way_ = false;
}

TimePoint Meetings::held_until(int lock) const {
  const std::scoped_lock guard(mutex_);
  return called_.at(static_cast<std::size_t>(lock)).until;
}

}  // namespace lockbench::loadgen
