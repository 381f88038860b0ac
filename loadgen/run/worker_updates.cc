#include <vector>

#include "loadgen/run/worker.h"

namespace lockbench::loadgen {

// The sections of controls that take no lock.

AcquireOutcome Worker::update(const Wanted& wanted, TimePoint intended, TimePoint started,
                              TimePoint deadline) {
  const int key = wanted.key;
  run_.used.mark(key);
  run_.write_key(key, key_name_);
  request_.key = key_name_;
  request_.mode = Mode::exclusive;
  request_.deadline = deadline;
  const Effort before = env_.effort();
  // Its clients meet while they update, and hand nothing on.
  const WaitTicket meeting = run_.handoff.begin_wait(key, request_.mode);
  Work latest;
  const AcquireResult result = try_to_update(key, latest);
  const TimePoint now = base_env_->now();
  env_.leave_behind();
  std::vector<Duration> unserved;
  run_.handoff.gave_up(key, meeting, now, unserved);

  const bool updated = result.outcome == AcquireOutcome::acquired;
  const TimePoint ended = updated ? latest.begun : now;
  const Effort until = updated ? latest.effort : env_.effort();
  phase_ = phase_of_end(ended);
  note_wait(result, until - before, intended, started, ended);
  if (!updated) return result.outcome;
  if (meeting.contended) {
    ++counts_[Count::contended_grants];
  } else {
    run_.recorder.histograms(phase_of_wait(intended, ended))[Timing::uncontended].record(ended -
                                                                                         intended);
  }
  return result.outcome;
}

AcquireResult Worker::try_to_update(int key, Work& work) {
  // Bounded by the deadline.
  for (std::uint32_t attempts = 1;; ++attempts) {
    AcquireResult result = strategy_->acquire(request_);
    result.attempts = attempts;
    work = {.begun = base_env_->now(), .effort = env_.effort()};
    if (!result.lease) return result;
    const auto without = [&](AcquireOutcome outcome, std::string reason = {}) {
      return AcquireResult{.outcome = outcome, .attempts = attempts, .reason = std::move(reason)};
    };
    if (!hold(work.begun)) return without(AcquireOutcome::timed_out);
    const TimePoint written_at = base_env_->now();
    ReleaseResult written = strategy_->release(*result.lease);
    const TimePoint now = base_env_->now();
    if (written.outcome == ReleaseOutcome::failed) {
      run_.counter->note(key, WriteResult::unknown);
      return without(AcquireOutcome::unknown, std::move(written.reason));
    }
    if (written.outcome == ReleaseOutcome::released) {
      run_.counter->note(key, WriteResult::accepted);
      phase_ = phase_of_end(work.begun);
      if (!over()) histograms()[Timing::hold].record(written_at - work.begun);
      histograms()[Timing::release].record(now - written_at);
      return result;
    }
    run_.counter->note(key, WriteResult::rejected_stale);
    if (over()) return without(AcquireOutcome::abandoned);
    if (now >= request_.deadline) return without(AcquireOutcome::timed_out);
  }
}

}  // namespace lockbench::loadgen
