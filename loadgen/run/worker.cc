#include "loadgen/run/worker.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace lockbench::loadgen {
namespace {

constexpr WaitPolicy kFailurePause = {.kind = WaitKind::backoff,
                                      .min = std::chrono::milliseconds(1),
                                      .max = std::chrono::milliseconds(100)};

// Random, so that sections that met in a deadlock do not meet again in the same step.
constexpr WaitPolicy kRetryPause = {.kind = WaitKind::backoff,
                                    .min = std::chrono::milliseconds(1),
                                    .max = std::chrono::milliseconds(100)};
// What a lock's validity is more than the hold when the section has all its locks: a share of its
// TTL.
constexpr int kTtlPerReserve = 10;
// The most sections in a row for which a store had all answers ready.
constexpr std::uint32_t kSectionsPerYield = 16;

std::uint64_t nanoseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
}

}  // namespace

void RunShared::write_key(int number, std::string& name) const {
  std::array<char, std::numeric_limits<int>::digits10 + 2> digits{};
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  name.assign(key_prefix)
      .append(digits.data(), static_cast<std::size_t>(end - digits.data()))
      .append(1, '}');
}

Worker::Worker(RunShared& run, int number)
    : run_(run),
      number_(number),
      over_(run.over.get_token()),
      base_env_(run.make_env(Random(run.nonce, static_cast<std::uint64_t>(number))())),
      env_(*base_env_, over_,
           [this](std::string_view command, Duration taken, TimePoint ended) {
             note_command(command, taken, ended);
           }),
      strategy_(make_strategy(run.strategy, Context{.endpoints = run.endpoints,
                                                    .options = run.workload.strategy,
                                                    .env = env_,
                                                    .services = run.services,
                                                    .client = number})),
      record_(run.recorder.client(number)),
      carrier_(Carrier::current()),
      has_store_(!urls_of(run.strategy, run.endpoints).empty()),
      random_(run.seed, static_cast<std::uint64_t>(number)),
      contention_(run.handoff, run.recorder) {
  request_.ttl = run.workload.ttl;
  request_.stop = run.abort.get_token();
  if (!run.meetings || number < run.workload.scheduled_clients()) return;
  call_ = base_env_->make_event();
  run.meetings->expect(own_key(), call_.get());
}

Worker::~Worker() {
  if (is_rival()) run_.meetings->expect(own_key(), nullptr);
}

StoreResult<void> Worker::connect() {
  counter_ = run_.counter->open(*base_env_);
  // Now, as connecting inside a section would be charged to the lock.
  if (auto reached = counter_->connect(); !reached) {
    return tl::unexpected(StoreError{StoreError::Kind::not_sent, "counter: " + reached.error()});
  }
  auto connected = strategy_->connect();
  // A lock without a server has no connection to use.
  if (connected && has_store_) use_once();
  return connected;
}

void Worker::note_command(std::string_view command, Duration taken, TimePoint ended) {
  if (!run_.started.load(std::memory_order_acquire)) return;
  if (ended < run_.measure_start.load() || ended > run_.load_end.load()) return;
  auto known = std::find_if(commands_.begin(), commands_.end(),
                            [&](const auto& one) { return one.first == command; });
  if (known == commands_.end()) {
    commands_.emplace_back(command, &run_.recorder.command(command));
    known = commands_.end() - 1;
  }
  known->second->record(taken);
}

void Worker::use_once() {
  const int own = run_.workload.key_count() + number_;
  run_.used.mark(own);
  run_.write_key(own, key_name_);
  request_.key = key_name_;
  request_.deadline = base_env_->now() + run_.workload.strategy.command_timeout;
  // A failure here shows soon enough in the load.
  const AcquireResult result = strategy_->acquire(request_);
  if (result.lease) strategy_->release(*result.lease);
  env_.leave_behind();
}

void Worker::work() {
  while (!over()) {
    const std::optional<TimePoint> intended = is_rival() ? next_call() : next_start();
    if (!intended || !next_transaction(*intended)) break;
    section(*intended);
    if (transaction_.think > Duration::zero() && !over()) {
      base_env_->wait(nullptr, base_env_->now() + transaction_.think, over_);
    }
    // A client whose store answers at once would otherwise keep the others from working. Mostly a
    // section waits for its store, and a turn more would only delay the next request.
    if (!has_store_ || ++sections_ % kSectionsPerYield == 0) carrier_.yield();
  }
  record_.state.store(ClientState::idle, std::memory_order_relaxed);
}

bool Worker::next_transaction(TimePoint intended) {
  if (!run_.demand->next(number_, intended - run_.load_start, random_, transaction_)) {
    run_.demand_met.store(true);
    if (run_.workload.iterations && phase_ == Phase::measured) end_iteration(false);
    return false;
  }
  // A trace asks for modes whatever the lock can do.
  if (run_.workload.trace && !run_.strategy.traits.shared) {
    for (Wanted& wanted : transaction_.locks) wanted.mode = Mode::exclusive;
  }
  if (run_.workload.lock_order == LockOrder::sorted) {
    std::sort(transaction_.locks.begin(), transaction_.locks.end(),
              [](const Wanted& one, const Wanted& other) { return one.key < other.key; });
  }
  return true;
}

std::optional<TimePoint> Worker::next_start() {
  const TimePoint now = base_env_->now();
  TimePoint intended = now;
  // Every client checks the time itself: with thousands of busy clients the runner's thread may be
  // late.
  if (now >= run_.load_end.load()) return std::nullopt;
  if (run_.schedule) {
    intended = run_.schedule->next();
    // The schedule never stands still, so this ends.
    while (run_.workload.longest_lag && now - intended > *run_.workload.longest_lag) {
      shed(intended, now);
      intended = run_.schedule->next();
    }
    if (intended >= run_.load_end.load()) return std::nullopt;
    if (intended > now) {
      if (base_env_->wait(nullptr, intended, over_) == WaitResult::stopped) return std::nullopt;
    }
  }
  phase_ = intended < run_.measure_start.load() ? Phase::unmeasured : Phase::measured;
  if (phase_ == Phase::measured && run_.workload.iterations && !take_iteration()) {
    return std::nullopt;
  }
  if (run_.schedule) {
    const TimePoint started = base_env_->now();
    histograms()[Timing::schedule_lag].record(started - intended);
    // A start that is late because every client was busy is not the generator's fault; a late
    // wake-up is.
    if (intended > now) histograms()[Timing::wake_lag].record(started - intended);
  }
  return intended;
}

std::optional<TimePoint> Worker::next_call() {
  const WaitResult called = base_env_->wait(call_.get(), run_.load_end.load(), over_);
  if (called != WaitResult::signalled) return std::nullopt;
  const TimePoint now = base_env_->now();
  phase_ = now < run_.measure_start.load() ? Phase::unmeasured : Phase::measured;
  return now;
}

bool Worker::take_iteration() {
  auto begun = run_.measured_sections.load(std::memory_order_relaxed);
  // The count must never exceed the limit, not even for a moment: a client that saw that would
  // leave, and none might be left for an iteration that is returned.
  while (begun < *run_.workload.iterations) {
    if (run_.measured_sections.compare_exchange_weak(begun, begun + 1, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void Worker::end_iteration(bool used_up) {
  if (!used_up) {
    run_.measured_sections.fetch_sub(1, std::memory_order_relaxed);
  } else if (run_.ended_sections.fetch_add(1, std::memory_order_relaxed) + 1 ==
             *run_.workload.iterations) {
    // Cuts no measured section short: all other clients think, wait for a start, or are in a
    // section that began in the warm-up.
    run_.over.request_stop();
  }
}

void Worker::end_transaction() {
  const std::optional<Trace>& trace = run_.workload.trace;
  if (!trace || trace->repeats) return;
  if (run_.ended_of_trace.fetch_add(1, std::memory_order_relaxed) + 1 == trace->transactions) {
    // Otherwise the run would last until each client has thought, or its next start is due.
    run_.demand_met.store(true);
    run_.over.request_stop();
  }
}

void Worker::shed(TimePoint intended, TimePoint now) {
  phase_ = now < run_.measure_start.load() ? Phase::unmeasured : Phase::measured;
  const Duration waited = now - intended;
  histograms()[Timing::abandoned].record(waited);
  if (run_.workload.has_transactions()) histograms()[Timing::transaction_cut].record(waited);
  histograms()[Timing::schedule_lag].record(waited);
  note_longest(phase_, waited, true);
  record_.add(phase_, count_of(failure_.value_or(FailureReason::slow)));
}

TimePoint Worker::deadline_of(int key, TimePoint started) const {
  // A rival waits for its partner's hold, which is no fault of the lock.
  const TimePoint free_at =
      is_rival() ? std::max(started, run_.meetings->held_until(key)) : started;
  return free_at + run_.workload.acquire_timeout;
}

void Worker::section(TimePoint intended) {
  counts_ = {};
  // Not while a lock is stuck: the clients that are left have the schedule to keep.
  meets_ = run_.meetings && !is_rival() && run_.handoff.stuck() == 0 &&
           run_.meetings->begin(transaction_.locks.front().key, intended);
  const Effort before = env_.effort();
  record_.state.store(ClientState::waiting, std::memory_order_relaxed);
  const TimePoint started = run_.schedule ? base_env_->now() : intended;
  const AcquireOutcome outcome = take_all(intended, started);
  if (failure_) counts_[count_of(*failure_)] = 1;
  if (run_.workload.has_transactions()) note_transaction(outcome, intended, started);

  if (outcome == AcquireOutcome::acquired) {
    record_.state.store(ClientState::holding, std::memory_order_relaxed);
    const bool shared = std::all_of(held_.begin(), held_.end(), [](const Held& held) {
      return held.lease.mode == Mode::shared;
    });
    hold();
    give_back(true);
    counts_[Count::sections] = 1;
    counts_[Count::shared_sections] = shared ? 1 : 0;
  }
  if (meets_) run_.meetings->end();
  const bool only_contended =
      outcome == AcquireOutcome::timed_out || outcome == AcquireOutcome::refused;
  record_.state.store(ClientState::idle, std::memory_order_relaxed);
  env_.leave_behind();
  counts_[Count::commands] = (env_.effort() - before).commands;
  record_.add(phase_, counts_);
  if (run_.workload.iterations && phase_ == Phase::measured) end_iteration(!only_contended);
  end_transaction();
  pause_after_failure(outcome == AcquireOutcome::failed || outcome == AcquireOutcome::unknown);
}

AcquireOutcome Worker::take_all(TimePoint intended, TimePoint started) {
  const TimePoint deadline = deadline_of(transaction_.locks.front().key, started);
  if (run_.waits) run_.waits->begin(number_);
  AcquireOutcome outcome = try_all(intended, started, deadline);
  if (transaction_.locks.size() == 1) return outcome;
  for (std::uint32_t retries = 0; outcome != AcquireOutcome::acquired; ++retries) {
    give_back(false);
    if (outcome != AcquireOutcome::abandoned) ++counts_[Count::transaction_aborts];
    const bool contended =
        outcome == AcquireOutcome::timed_out || outcome == AcquireOutcome::refused;
    if (!contended) break;
    if (!pause_before_retry(retries, deadline)) {
      if (!over()) break;
      failure_.reset();  // it is the end of the run that cuts it off
      return AcquireOutcome::abandoned;
    }
    ++counts_[Count::transaction_retries];
    const TimePoint again = base_env_->now();
    outcome = try_all(again, again, deadline);
  }
  return outcome;
}

AcquireOutcome Worker::try_all(TimePoint intended, TimePoint started, TimePoint deadline) {
  WaitGraph* const waits = run_.waits.get();
  // A section of one lock has nothing to give back while it waits.
  const OnDeadlock on_deadlock =
      transaction_.locks.size() == 1 ? OnDeadlock::timeout : run_.workload.on_deadlock;
  for (const Wanted& wanted : transaction_.locks) {
    if (!held_.empty()) {
      // Of a section that the load's end cuts off, further locks would count as cut off, too.
      if (over() || phase_ == Phase::ending) return AcquireOutcome::abandoned;
      intended = started = base_env_->now();
    }
    const std::optional<TimePoint> last = limit(started, deadline);
    if (!last) {
      failure_ = FailureReason::taken;
      return AcquireOutcome::timed_out;
    }
    if (waits != nullptr && !waits->waits(number_, wanted, on_deadlock)) {
      failure_ = FailureReason::taken;
      return AcquireOutcome::refused;
    }
    const AcquireOutcome outcome = take(wanted, intended, started, *last);
    const bool granted = outcome == AcquireOutcome::acquired;
    if (waits != nullptr && granted) waits->granted(number_);
    if (waits != nullptr && !granted) {
      if (outcome == AcquireOutcome::timed_out && waits->in_cycle(number_)) {
        ++counts_[Count::transaction_deadlocks];
      }
      waits->gave_up(number_);
    }
    if (!granted) return outcome;
  }
  return AcquireOutcome::acquired;
}

std::optional<TimePoint> Worker::limit(TimePoint asked, TimePoint deadline) const {
  const Workload& workload = run_.workload;
  // No lock may expire before the section has done its work, unless its hold is longer than a TTL:
  // then they expire however quickly it gets them.
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

bool Worker::pause_before_retry(std::uint32_t retries, TimePoint deadline) {
  const TimePoint now = base_env_->now();
  if (over() || now >= deadline) return false;
  const Duration pause = kRetryPause.delay(retries, *base_env_);
  return base_env_->wait(nullptr, std::min(deadline, now + pause), over_) != WaitResult::stopped;
}

AcquireOutcome Worker::take(const Wanted& wanted, TimePoint intended, TimePoint started,
                            TimePoint deadline) {
  const int key = wanted.key;
  run_.used.mark(key);
  run_.write_key(key, key_name_);
  request_.key = key_name_;
  request_.mode = wanted.mode;
  request_.deadline = deadline;
  const Effort before = env_.effort();
  note({.at = started, .key = key, .kind = LockEvent::Kind::waits, .mode = wanted.mode});
  const AcquireMark mark = run_.audit.begin_acquire(key);
  AcquireResult result = strategy_->acquire(request_);
  const TimePoint ended = base_env_->now();
  env_.leave_behind();

  phase_ = phase_of(result.outcome, ended);
  note_wait(result, env_.effort() - before, intended, started, ended);
  LockEvent event{.at = ended,
                  .span = ended - intended,
                  .key = key,
                  .kind = LockEvent::Kind::gave_up,
                  .mode = wanted.mode};
  if (result.outcome != AcquireOutcome::acquired) {
    // One of several locks may only have been on its way back.
    event.flag = transaction_.locks.size() == 1 && failure_ == FailureReason::taken;
    note(event);
    return result.outcome;
  }
  Lease lease = *std::move(result.lease);
  const Entry entry = run_.audit.enter(key, number_, lease.mode, lease.fencing, mark, ended);
  event.kind = LockEvent::Kind::granted;
  event.fencing = lease.fencing;
  event.flag = entry.regressed;
  note(event);
  held_.push_back(enter(key, std::move(lease), entry, ended));
  return result.outcome;
}

void Worker::give_back(bool written) {
  TimePoint now{};
  // The section is over before the first release: while many are on their way, a lock may expire
  // that still waits for its own.
  for (auto held = held_.rbegin(); held != held_.rend(); ++held) {
    if (written) write_counter(*held);
    now = base_env_->now();
    run_.audit.leave(held->key, held->entry, now);
    held->over_at = now;
    // Leaves out holds that the end of the run cut short.
    if (written && !over()) histograms()[Timing::hold].record(now - held->granted_at);
  }
  while (!held_.empty()) {
    if (run_.waits) run_.waits->released(number_, held_.back().key);
    release(held_.back(), now);
    held_.pop_back();
    if (!held_.empty()) now = base_env_->now();
  }
}

void Worker::note(LockEvent event) {
  event.client = number_;
  event.phase = phase_;
  if (run_.log) return run_.log->add(event);
  contention_.follow(event, pending_,
                     [this](Count what, std::uint64_t more) { counts_[what] += more; });
}

Phase Worker::phase_of_wait(TimePoint ended) const {
  // With a limit on iterations, sections are assigned when they begin. Otherwise a section belongs
  // to the phase in which its wait ended: a client that began to wait in the warm-up takes its turn
  // among the measured ones.
  if (run_.workload.iterations) return phase_;
  return ended < run_.measure_start.load() ? Phase::unmeasured : Phase::measured;
}

Phase Worker::phase_of(AcquireOutcome outcome, TimePoint ended) const {
  // A grant after the load's end does not count.
  const bool too_late = over() || ended >= run_.load_end.load();
  const bool late_grant = outcome == AcquireOutcome::acquired && too_late;
  return late_grant && !run_.workload.iterations ? Phase::ending : phase_of_wait(ended);
}

void Worker::note_wait(const AcquireResult& result, const Effort& spent, TimePoint intended,
                       TimePoint started, TimePoint ended) {
  // The load's end cuts off a wait whose grant comes after it.
  const bool late = phase_ == Phase::ending;
  const Phase phase = late ? phase_of_wait(ended) : phase_;
  const Timing timing = acquire_timing(late ? AcquireOutcome::abandoned : result.outcome);
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
  // A transaction waits as a whole, with all that it asked for in vain.
  const bool alone = !run_.workload.has_transactions();
  if (alone && (cut || timing == Timing::acquired)) note_longest(phase, ended - intended, cut);
  counts_[Count::attempts] += result.attempts;
  counts_[Count::wakes] += spent.wakes;
  if (!result.reason.empty()) run_.recorder.failure(result.reason);
  failure_ = failure_of(result, started);
  if (result.outcome != AcquireOutcome::acquired) return;
  histograms()[Timing::acquire_service].record(ended - started);
  counts_[Count::granted_attempts] += result.attempts;
  counts_[Count::round_trip_ns] += nanoseconds(spent.round_trip);
  counts_[Count::backoff_ns] += nanoseconds(spent.backoff);
  counts_[Count::notified_ns] += nanoseconds(spent.notified);
}

void Worker::note_longest(Phase phase, Duration waited, bool cut) {
  record_.add_wait(phase, waited, cut);
  if (phase == Phase::measured) run_.recorder.waits().record(number_, waited, cut);
}

std::optional<FailureReason> Worker::failure_of(const AcquireResult& result,
                                                TimePoint started) const {
  switch (result.outcome) {
    case AcquireOutcome::timed_out:
      return FailureReason::taken;
    case AcquireOutcome::refused:
      return request_.deadline <= started ? FailureReason::taken : FailureReason::refused;
    case AcquireOutcome::failed:
    case AcquireOutcome::unknown:
      return reason_of(result.reason);
    case AcquireOutcome::acquired:
    case AcquireOutcome::abandoned:
      break;
  }
  return std::nullopt;
}

void Worker::note_transaction(AcquireOutcome outcome, TimePoint intended, TimePoint started) {
  const TimePoint ended = base_env_->now();
  const bool late = phase_ == Phase::ending;
  const bool granted = outcome == AcquireOutcome::acquired && !late;
  // As with a single lock's wait: failures of the store are no durations.
  if (outcome == AcquireOutcome::failed || outcome == AcquireOutcome::unknown) return;
  const Phase phase = late ? phase_of_wait(ended) : phase_;
  note_longest(phase, ended - intended, !granted);
  Recorder::Histograms& to = run_.recorder.histograms(phase);
  to[granted ? Timing::transaction : Timing::transaction_cut].record(ended - intended);
  to[granted ? Timing::transaction_service : Timing::transaction_service_cut].record(ended -
                                                                                     started);
}

Worker::Held Worker::enter(int key, Lease lease, Entry entry, TimePoint granted_at) {
  // Holders of a shared lock arrive in any order: their numbers must not reject one another.
  const bool shared = lease.mode == Mode::shared;
  auto seen = counter_->read(key, shared ? std::nullopt : lease.fencing);
  Held held{.key = key, .lease = std::move(lease), .granted_at = granted_at, .entry = entry};
  if (seen) {
    held.seen = *seen;
    if (seen->stale) ++counts_[Count::stale_rejected];
  } else {
    ++counts_[Count::resource_failures];
    run_.recorder.failure("counter: " + seen.error());
  }
  return held;
}

void Worker::hold() {
  // Without a store nothing else in a section lets clients on the same thread meet.
  if (!has_store_) carrier_.yield();
  if (transaction_.hold == Duration::zero() || (run_.meetings && !meets_)) return;
  const TimePoint until = held_.back().granted_at + transaction_.hold;
  if (meets_) run_.meetings->call(held_.back().key, until);
  base_env_->wait(nullptr, until, over_);
}

void Worker::write_counter(const Held& held) {
  // A shared section has nothing to write, and one whose read failed or was refused must not.
  if (held.lease.mode == Mode::shared || !held.seen || held.seen->stale) return;
  const WriteResult written = counter_->write(held.key, *held.seen, held.lease.fencing);
  if (written == WriteResult::rejected_stale) ++counts_[Count::stale_rejected];
  if (written == WriteResult::failed || written == WriteResult::unknown) {
    ++counts_[Count::resource_failures];
    run_.recorder.failure("counter: a write failed or got no answer");
  }
}

void Worker::release(const Held& held, TimePoint begun_at) {
  const Lease& lease = held.lease;
  if (lease.state->lost_at()) note_loss(lease, *lease.state->lost_at());
  LockEvent event{.at = begun_at,
                  .span = begun_at - held.over_at,
                  .key = held.key,
                  .kind = LockEvent::Kind::releases,
                  .mode = lease.mode};
  note(event);
  const ReleaseResult result = strategy_->release(lease);
  const TimePoint done_at = base_env_->now();
  event.at = done_at;
  event.span = done_at - begun_at;
  event.kind = LockEvent::Kind::released;
  event.flag = result.outcome == ReleaseOutcome::released;
  note(event);
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
  // A loss that is noticed after the end of validity counts from that end. One that is noticed
  // before happened at some time since the store's last confirmation: count from there, an upper
  // bound.
  const TimePoint ended_at = lease.state->valid_until();
  const TimePoint gone_at = learned_at > ended_at ? ended_at : lease.state->confirmed_at();
  if (gone_at != TimePoint::min()) {
    histograms()[Timing::loss_to_knowledge].record(learned_at - gone_at);
  }
}

void Worker::pause_after_failure(bool failed) {
  failures_in_a_row_ = failed ? failures_in_a_row_ + 1 : 0;
  if (failed) {
    const Duration pause = kFailurePause.delay(failures_in_a_row_ - 1, *base_env_);
    base_env_->wait(nullptr, base_env_->now() + pause, over_);
  }
}

}  // namespace lockbench::loadgen
