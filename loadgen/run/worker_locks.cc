#include <algorithm>
#include <vector>

#include "loadgen/run/worker.h"

namespace lockbench::loadgen {
namespace {

// The reserve of validity beyond the hold when a section has all its locks, as a share of the TTL.
constexpr int kTtlPerReserve = 10;

std::uint64_t nanoseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
}

}  // namespace

// How a section takes its locks and gives them back, with the records of that.

AcquireOutcome Worker::take_all(TimePoint intended, TimePoint started) {
  // A rival waits for its partner's hold, which is not the lock's fault.
  const TimePoint free_at =
      is_rival() ? std::max(started, run_.meetings->held_until(transaction_.locks.front().key))
                 : started;
  const TimePoint deadline = free_at + run_.workload.acquire_timeout;
  AcquireOutcome outcome = try_all(intended, started, deadline);
  if (transaction_.locks.size() == 1) return outcome;
  for (std::uint32_t retries = 0; outcome != AcquireOutcome::acquired; ++retries) {
    give_back(false);
    if (outcome != AcquireOutcome::abandoned) ++counts_[Count::transaction_aborts];
    const bool contended =
        outcome == AcquireOutcome::timed_out || outcome == AcquireOutcome::refused;
    if (!contended) break;
    if (!pause(retries, deadline)) {
      if (!over()) break;
      failure_.reset();  // the end of the run cuts it off
      return AcquireOutcome::abandoned;
    }
    ++counts_[Count::transaction_retries];
    const TimePoint again = base_env_->now();
    outcome = try_all(again, again, deadline);
  }
  return outcome;
}

AcquireOutcome Worker::try_all(TimePoint intended, TimePoint started, TimePoint deadline) {
  for (const Wanted& wanted : transaction_.locks) {
    if (!held_.empty()) {
      // If the end of the run cuts off the section, further locks would count as cut off too.
      if (over()) return AcquireOutcome::abandoned;
      intended = started = base_env_->now();
    }
    const std::optional<TimePoint> last = limit(started, deadline);
    if (!last) {
      failure_ = FailureReason::taken;
      return AcquireOutcome::timed_out;
    }
    const AcquireOutcome outcome = updates() ? update(wanted, intended, started, *last)
                                             : take(wanted, intended, started, *last);
    if (outcome != AcquireOutcome::acquired) return outcome;
  }
  return AcquireOutcome::acquired;
}

std::optional<TimePoint> Worker::limit(TimePoint asked, TimePoint deadline) const {
  const Workload& workload = run_.workload;
  // No lock may expire before the section's work is done, unless the hold is longer than a TTL:
  // then they expire anyway.
  const Duration needed = transaction_.hold + workload.ttl / kTtlPerReserve;
  const bool can_expire = run_.strategy.traits.expiry == Expiry::ttl && needed < workload.ttl;
  TimePoint valid_until = TimePoint::max();
  for (const Held& held : held_) {
    if (!can_expire || held.lease.renewal) continue;
    valid_until = std::min(valid_until, held.lease.state->valid_until() - needed);
  }
  if (valid_until <= asked) return std::nullopt;
  if (workload.lock_order == LockOrder::all_or_nothing && transaction_.locks.size() > 1) {
    return asked;  // one attempt
  }
  if (workload.lock_order == LockOrder::drawn && !held_.empty()) {
    deadline = std::min(deadline, asked + workload.deadlock_timeout);
  }
  return std::min(deadline, valid_until);
}

AcquireOutcome Worker::take(const Wanted& wanted, TimePoint intended, TimePoint started,
                            TimePoint deadline) {
  const int key = wanted.key;
  request(key, wanted.mode, deadline);
  const Effort before = env_.effort();
  const WaitTicket wait = run_.handoff.begin_wait(key, wanted.mode);
  run_.hosts->asks(number_, key);
  history::Process& process = process_of(held_.size());
  if (run_.history != nullptr) {
    // The part of the name that differs between runs and keys: redis-queue:1:0.
    const std::size_t begin = key_name_.find('{') + 1;
    process.acquire(std::string_view(key_name_).substr(begin, key_name_.size() - begin - 1),
                    wanted.mode == Mode::shared, base_env_->now());
  }
  const AcquireMark mark = run_.audit.begin_acquire(key);
  AcquireResult result = strategy_->acquire(request_);
  const TimePoint ended = base_env_->now();
  env_.leave_behind();

  phase_ = phase_of_end(ended);
  note_wait(result, env_.effort() - before, intended, started, ended);
  if (result.outcome != AcquireOutcome::acquired) {
    run_.hosts->gave_up(number_, key);
    const bool unknown = result.outcome == AcquireOutcome::unknown;
    process.end(unknown ? history::Outcome::info : history::Outcome::fail, ended);
    // If a section takes several locks, this one may just have been on its way back.
    const bool taken = transaction_.locks.size() == 1 && failure_ == FailureReason::taken;
    if (taken) run_.handoff.found_taken(key, wait);
    std::vector<Duration> unserved;
    run_.handoff.gave_up(key, wait, ended, unserved);
    for (const Duration waited : unserved) {
      run_.recorder.histograms(run_.phase_at(ended - waited))[Timing::handoff_cut].record(waited);
    }
    const bool error = unknown || result.outcome == AcquireOutcome::failed;
    if (!error || !run_.workload.proceeds_on_error) return result.outcome;
    enter_unprotected(key, wanted.mode, mark, ended);
    return AcquireOutcome::acquired;
  }
  Held& held =
      held_.emplace_back(Held{.key = key, .lease = *std::move(result.lease), .granted_at = ended});
  const Lease& lease = held.lease;
  run_.audit.enter(key, number_, lease.mode, lease.fencing, mark, ended);
  run_.hosts->granted(number_, key, lease, ended - intended, transaction_.hold);
  process.end(history::Outcome::ok, ended, lease.fencing);
  note_grant(key, wait, intended, ended);
  read_counter(held);
  return result.outcome;
}

void Worker::enter_unprotected(int key, Mode mode, const AcquireMark& mark, TimePoint now) {
  ++counts_[Count::unprotected];
  Lease lease{
      .key = key_name_, .mode = mode, .state = std::make_shared<LeaseState>(TimePoint::max())};
  Held& held = held_.emplace_back(
      Held{.key = key, .lease = std::move(lease), .granted_at = now, .unprotected = true});
  run_.audit.enter(key, number_, mode, std::nullopt, mark, now);
  read_counter(held);
}

void Worker::read_counter(Held& held) {
  const Lease& lease = held.lease;
  // Holders of a shared lock arrive in any order, so their numbers must not reject one another.
  auto seen = counter_->read(held.key, lease.mode == Mode::shared ? std::nullopt : lease.fencing);
  if (seen) {
    held.seen = *seen;
    if (seen->stale) ++counts_[Count::stale_rejected];
  } else {
    ++counts_[Count::resource_failures];
    run_.recorder.failure("counter: " + seen.error());
  }
}

void Worker::give_back(bool written) {
  TimePoint now{};
  // All locks leave the audit before the first release: during many releases, a lock that still
  // waits for its own may expire.
  for (auto held = held_.rbegin(); held != held_.rend(); ++held) {
    if (written) write_counter(*held);
    now = base_env_->now();
    const auto place = static_cast<std::size_t>(held_.rend() - held) - 1;
    if (!held->unprotected) process_of(place).release(now);
    run_.audit.leave(held->key, held->lease.mode, now);
    run_.hosts->leaves(number_, held->key);
    // Omits holds cut short by the end of the run.
    if (written && !over()) histograms()[Timing::hold].record(now - held->granted_at);
  }
  while (!held_.empty()) {
    release(held_.back(), now);
    held_.pop_back();
    if (!held_.empty()) now = base_env_->now();
  }
}

history::Process& Worker::process_of(std::size_t place) {
  while (processes_.size() <= place) processes_.emplace_back(run_.history);
  return processes_[place];
}

void Worker::note_grant(int key, const WaitTicket& wait, TimePoint intended, TimePoint granted_at) {
  const GrantNote note = run_.handoff.granted(key, wait, granted_at, completed_);
  note_contention(note.contended, intended, granted_at);
  if (note.overtook) ++counts_[Count::overtakings];
  if (note.turnaround) histograms()[Timing::turnaround].record(*note.turnaround);
  note_handoffs();
}

void Worker::note_contention(bool contended, TimePoint intended, TimePoint granted_at) {
  if (contended) {
    ++counts_[Count::contended_grants];
  } else {
    run_.recorder.histograms(phase_of_wait(intended, granted_at))[Timing::uncontended].record(
        granted_at - intended);
  }
}

void Worker::note_handoffs() {
  for (const Handoff& handoff : completed_) {
    const Phase phase = run_.phase_at(handoff.started);
    for (std::uint64_t i = 0; i < handoff.releases; ++i) {
      run_.recorder.histograms(phase)[Timing::handoff].record(handoff.taken);
    }
    if (handoff.direct) record_.add(phase, Count::direct_handoffs, handoff.releases);
  }
  completed_.clear();
}

Phase Worker::phase_of_wait(TimePoint intended, TimePoint ended) const {
  const Phase phase = run_.workload.iterations ? begun_ : run_.phase_at(intended);
  // Otherwise a client that never gets the lock would be in no figure.
  const bool spans = phase == Phase::unmeasured && run_.phase_at(ended) == Phase::ending;
  return spans ? Phase::measured : phase;
}

Phase Worker::phase_of_end(TimePoint ended) const {
  const Phase phase = run_.phase_at(ended);
  // Iterations are counted by their beginning.
  return run_.workload.iterations && phase != Phase::ending ? begun_ : phase;
}

TimePoint Worker::cut_off(TimePoint started, TimePoint ended) const {
  return std::max(started, std::min(ended, run_.load_end.load()));
}

void Worker::note_wait(const AcquireResult& result, const Effort& spent, TimePoint intended,
                       TimePoint started, TimePoint ended) {
  const Phase phase = phase_of_wait(intended, ended);
  const Timing timing = acquire_timing(result.outcome);
  if (timing == Timing::abandoned) ended = cut_off(started, ended);
  // A wait ends at its deadline: the time the store needs to cancel it is not counted.
  if (timing == Timing::timed_out) ended = std::max(started, std::min(ended, request_.deadline));
  Recorder::Histograms& waits = run_.recorder.histograms(phase);
  waits[timing].record(ended - intended);
  const bool cut = kTimings[static_cast<std::size_t>(timing)].censors == Timing::acquired;
  if (cut) waits[Timing::service_cut].record(ended - started);
  if (run_.workload.has_shared_sections() && (cut || timing == Timing::acquired)) {
    const bool shared = request_.mode == Mode::shared;
    const Timing complete = shared ? Timing::shared : Timing::exclusive;
    const Timing censored = shared ? Timing::shared_cut : Timing::exclusive_cut;
    waits[cut ? censored : complete].record(ended - intended);
  }
  // A transaction waits as a whole, including requests in vain.
  const bool alone = !run_.workload.has_transactions();
  if (alone && (cut || timing == Timing::acquired)) note_own(phase, intended, ended, cut);
  const bool may_deadlock = run_.workload.lock_order == LockOrder::drawn && !held_.empty();
  if (result.deadlock || (may_deadlock && result.outcome == AcquireOutcome::timed_out)) {
    ++counts_[Count::transaction_deadlocks];
  }
  counts_[Count::attempts] += result.attempts;
  counts_[Count::wakes] += spent.wakes;
  const bool refused = result.outcome == AcquireOutcome::refused && !result.reason.empty();
  if (refused) run_.recorder.refusal(result.reason);
  failure_ = note_failure(result, started);
  if (result.outcome != AcquireOutcome::acquired) return;
  ++counts_[Count::grants];
  waits[Timing::acquire_service].record(ended - started);
  // The parts of these waits, so of the same phase, which is mostly the section's own.
  const bool own_phase = alone && phase == phase_;
  const auto add = [&](Count what, std::uint64_t more) {
    if (own_phase) {
      counts_[what] += more;
    } else {
      record_.add(phase, what, more);
    }
  };
  add(Count::granted_attempts, result.attempts);
  add(Count::round_trip_ns, nanoseconds(spent.round_trip));
  add(Count::backoff_ns, nanoseconds(spent.backoff));
  add(Count::notified_ns, nanoseconds(spent.notified));
}

void Worker::note_own(Phase phase, TimePoint intended, TimePoint ended, bool cut) {
  const Duration waited = ended - intended;
  if (phase == Phase::measured) run_.recorder.waits().record(number_, waited, cut);
  if (phase == Phase::unmeasured && run_.phase_at(ended) == Phase::measured) {
    run_.recorder.histograms(Phase::measured)[Timing::carried].record(waited);
  }
}

std::optional<FailureReason> Worker::note_failure(const AcquireResult& result, TimePoint started) {
  switch (result.outcome) {
    case AcquireOutcome::timed_out:
      return FailureReason::taken;
    case AcquireOutcome::refused:
      return request_.deadline <= started ? FailureReason::taken : FailureReason::refused;
    case AcquireOutcome::failed:
    case AcquireOutcome::unknown:
      return run_.recorder.failure(result.reason);
    case AcquireOutcome::acquired:
    case AcquireOutcome::abandoned:
      break;
  }
  return std::nullopt;
}

void Worker::note_transaction(AcquireOutcome outcome, TimePoint intended, TimePoint started) {
  const bool granted = outcome == AcquireOutcome::acquired;
  // Not now: after its last grant it has read the counter, which is part of its work.
  TimePoint ended = granted ? held_.back().granted_at : base_env_->now();
  // As with a single lock's wait, a failure of the store has no duration.
  if (outcome == AcquireOutcome::failed || outcome == AcquireOutcome::unknown) return;
  const Phase phase = phase_of_wait(intended, ended);
  if (outcome == AcquireOutcome::abandoned) ended = cut_off(started, ended);
  note_own(phase, intended, ended, !granted);
  Recorder::Histograms& to = run_.recorder.histograms(phase);
  to[granted ? Timing::transaction : Timing::transaction_cut].record(ended - intended);
  to[granted ? Timing::transaction_service : Timing::transaction_service_cut].record(ended -
                                                                                     started);
}

void Worker::write_counter(const Held& held) {
  // A shared section has nothing to write; after a failed or refused read, it must not write.
  if (held.lease.mode == Mode::shared || !held.seen || held.seen->stale) return;
  const WriteResult written = counter_->write(held.key, *held.seen, held.lease.fencing);
  if (written == WriteResult::rejected_stale) ++counts_[Count::stale_rejected];
  if (written == WriteResult::failed || written == WriteResult::unknown) {
    ++counts_[Count::resource_failures];
    run_.recorder.failure("counter: a write failed or got no answer");
  }
}

void Worker::release(const Held& held, TimePoint begun_at) {
  if (held.unprotected) return;
  const Lease& lease = held.lease;
  history::Process& process = process_of(held_.size() - 1);
  if (dead_) {
    process.end(history::Outcome::ok, begun_at);
    run_.handoff.release_started(held.key, lease.mode, begun_at);
    run_.handoff.release_finished(held.key, begun_at, false, completed_);
    return;
  }
  if (lease.state->lost_at()) note_loss(lease, *lease.state->lost_at());
  const bool awaited = run_.handoff.release_started(held.key, lease.mode, begun_at);
  const ReleaseResult result = strategy_->release(lease);
  const TimePoint done_at = base_env_->now();
  // A client that learns that the lock is no longer its own does not hold it either.
  const bool unknown = result.outcome == ReleaseOutcome::failed;
  process.end(unknown ? history::Outcome::info : history::Outcome::ok, done_at);
  if (awaited) {
    const bool released = result.outcome == ReleaseOutcome::released;
    run_.handoff.release_finished(held.key, begun_at, released, completed_);
    if (released) record_.add(run_.phase_at(begun_at), Count::awaited_releases);
    note_handoffs();
  }
  histograms()[Timing::release].record(done_at - begun_at);
  if (result.outcome == ReleaseOutcome::not_owner) {
    ++counts_[Count::releases_not_owner];
    if (!lease.state->lost_at()) note_loss(lease, done_at);
  } else if (result.outcome == ReleaseOutcome::failed) {
    ++counts_[Count::releases_failed];
    run_.recorder.failure(result.reason);
  }
}

void Worker::note_loss(const Lease& lease, TimePoint learned_at) {
  ++counts_[Count::leases_lost];
  // A loss noticed after the end of validity counts from that end. An earlier one happened at some
  // time since the store's last confirmation: counting from there gives an upper bound.
  const TimePoint ended_at = lease.state->valid_until();
  const TimePoint gone_at = learned_at > ended_at ? ended_at : lease.state->confirmed_at();
  if (gone_at != TimePoint::min()) {
    histograms()[Timing::loss_to_knowledge].record(learned_at - gone_at);
  }
}

// The sections of controls that take no lock.

AcquireOutcome Worker::update(const Wanted& wanted, TimePoint intended, TimePoint started,
                              TimePoint deadline) {
  const int key = wanted.key;
  request(key, Mode::exclusive, deadline);
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
  note_contention(meeting.contended, intended, ended);
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
