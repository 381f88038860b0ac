#include "loadgen/run/worker.h"

#include <algorithm>

namespace lockbench::loadgen {
namespace {

constexpr WaitPolicy kFailurePause = {.kind = WaitKind::backoff,
                                      .min = std::chrono::milliseconds(1),
                                      .max = std::chrono::milliseconds(100)};

std::uint64_t nanoseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
}

std::mt19937_64 client_random(std::uint64_t seed, int client) {
  std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(client)};
  return std::mt19937_64(mixed);
}

}  // namespace

Worker::Worker(RunShared& run, int number)
    : run_(run),
      number_(number),
      over_(run.over.get_token()),
      base_env_(run.make_env(client_random(run.nonce, number)())),
      env_(*base_env_, over_,
           [this](std::string_view command, Duration taken) { note_command(command, taken); }),
      strategy_(make_strategy(run.strategy, Context{.endpoints = run.endpoints,
                                                    .options = run.workload.strategy,
                                                    .env = env_,
                                                    .services = run.services,
                                                    .client = number})),
      record_(run.recorder.client(number)),
      random_(client_random(run.seed, number)) {
  request_.ttl = run.workload.ttl;
  request_.stop = run.abort.get_token();
  if (!run.meetings || number < run.workload.scheduled_clients()) return;
  call_ = base_env_->make_event();
  run.meetings->expect(pick_key(), call_.get());
}

Worker::~Worker() {
  if (is_rival()) run_.meetings->expect(pick_key(), nullptr);
}

StoreResult<void> Worker::connect() {
  counter_ = run_.counter->open(*base_env_);
  // Now, as connecting inside a section would be charged to the lock.
  if (auto reached = counter_->connect(); !reached) {
    return tl::unexpected(StoreError{StoreError::Kind::not_sent, "counter: " + reached.error()});
  }
  auto connected = strategy_->connect();
  // A lock without a server has no connection to use.
  if (connected && !urls_of(run_.strategy, run_.endpoints).empty()) use_once();
  return connected;
}

void Worker::note_command(std::string_view command, Duration taken) {
  if (!run_.started.load(std::memory_order_acquire)) return;
  const TimePoint now = base_env_->now();
  if (now < run_.measure_start.load() || now > run_.load_end.load()) return;
  auto known = std::find_if(commands_.begin(), commands_.end(),
                            [&](const auto& one) { return one.first == command; });
  if (known == commands_.end()) {
    commands_.emplace_back(command, &run_.recorder.commands().of(command));
    known = commands_.end() - 1;
  }
  known->second->record(taken);
}

void Worker::use_once() {
  key_name_ = run_.key(run_.workload.key_count() + number_);
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
    if (!intended) break;
    section(*intended);
    if (!run_.workload.think.is_zero() && !over()) {
      const TimePoint until = base_env_->now() + run_.workload.think.draw(random_);
      base_env_->wait(nullptr, until, over_);
    }
  }
  record_.state.store(ClientState::idle, std::memory_order_relaxed);
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

Mode Worker::pick_mode() {
  const double share = run_.workload.shared_share;
  // Draws only if needed, so that a seed gives the same load as in earlier versions.
  if (share <= 0) return Mode::exclusive;
  return std::uniform_real_distribution<double>()(random_) < share ? Mode::shared : Mode::exclusive;
}

void Worker::shed(TimePoint intended, TimePoint now) {
  phase_ = now < run_.measure_start.load() ? Phase::unmeasured : Phase::measured;
  histograms()[Timing::abandoned].record(now - intended);
  histograms()[Timing::schedule_lag].record(now - intended);
  Counts shed;
  shed[count_of(failure_.value_or(FailureReason::slow))] = 1;
  record_.add(phase_, shed);
}

int Worker::pick_key() {
  if (run_.workload.key_per_client) return number_ % run_.workload.key_count();
  return run_.keys.pick(random_);
}

TimePoint Worker::deadline_of(int key, TimePoint started) const {
  // A rival waits for its partner's hold, which is no fault of the lock.
  const TimePoint free_at =
      is_rival() ? std::max(started, run_.meetings->held_until(key)) : started;
  return free_at + run_.workload.acquire_timeout;
}

void Worker::section(TimePoint intended) {
  counts_ = {};
  const int key = pick_key();
  key_name_ = run_.key(key);
  request_.key = key_name_;
  request_.mode = pick_mode();
  // Not while a lock is stuck: the clients that are left have the schedule to keep.
  meets_ = run_.meetings && !is_rival() && run_.handoff.stuck() == 0 &&
           run_.meetings->begin(key, intended);

  const Effort before = env_.effort();
  wait_ = run_.handoff.begin_wait(key);
  const AcquireMark mark = run_.audit.begin_acquire(key);
  record_.state.store(ClientState::waiting, std::memory_order_relaxed);
  const TimePoint started = run_.schedule ? base_env_->now() : intended;
  request_.deadline = deadline_of(key, started);
  const AcquireResult result = strategy_->acquire(request_);
  const TimePoint ended = base_env_->now();
  env_.leave_behind();

  phase_ = phase_of(result.outcome, ended);
  note_wait(result, env_.effort() - before, intended, started, ended);

  const bool granted = result.outcome == AcquireOutcome::acquired;
  note_handoffs(key, granted, intended, ended);
  if (granted) {
    record_.state.store(ClientState::holding, std::memory_order_relaxed);
    const TimePoint left_at = critical_section(key, *result.lease, mark, ended);
    release(key, *result.lease, left_at);
    counts_[Count::sections] = 1;
    counts_[Count::shared_sections] = result.lease->mode == Mode::shared ? 1 : 0;
  }
  if (meets_) run_.meetings->end();
  const bool only_contended =
      result.outcome == AcquireOutcome::timed_out || result.outcome == AcquireOutcome::refused;
  record_.state.store(ClientState::idle, std::memory_order_relaxed);
  env_.leave_behind();
  counts_[Count::commands] = (env_.effort() - before).commands;
  record_.add(phase_, counts_);
  if (run_.workload.iterations && phase_ == Phase::measured) end_iteration(!only_contended);
  pause_after_failure(result.outcome == AcquireOutcome::failed ||
                      result.outcome == AcquireOutcome::unknown);
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
  if (cut || timing == Timing::acquired) {
    Counts longest;
    (cut ? longest.longest_cut : longest.longest_wait) = ended - intended;
    record_.add(phase, longest);
    if (phase == Phase::measured) record_.waits.record(ended - intended, cut);
  }
  counts_[Count::attempts] = result.attempts;
  counts_[Count::wakes] = spent.wakes;
  if (!result.reason.empty()) run_.recorder.failure(result.reason);
  failure_ = failure_of(result, started);
  if (failure_) counts_[count_of(*failure_)] = 1;
  if (result.outcome != AcquireOutcome::acquired) return;
  histograms()[Timing::acquire_service].record(ended - started);
  counts_[Count::granted_attempts] = result.attempts;
  counts_[Count::round_trip_ns] = nanoseconds(spent.round_trip);
  counts_[Count::backoff_ns] = nanoseconds(spent.backoff);
  counts_[Count::notified_ns] = nanoseconds(spent.notified);
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

void Worker::note_handoffs(int key, bool granted, TimePoint intended, TimePoint ended) {
  handoffs_.clear();
  if (!granted) {
    if (failure_ == FailureReason::taken) run_.handoff.found_taken(key, wait_);
    std::vector<Duration> unserved;
    run_.handoff.gave_up(key, wait_, ended, unserved);
    for (const Duration waited : unserved) histograms()[Timing::handoff_cut].record(waited);
    return;
  }
  const GrantNote note = run_.handoff.granted(key, wait_, ended, handoffs_);
  counts_[Count::contended_grants] = note.contended ? 1 : 0;
  if (!note.contended) histograms()[Timing::uncontended].record(ended - intended);
  counts_[Count::overtakings] = note.overtook ? 1 : 0;
  if (note.turnaround) histograms()[Timing::turnaround].record(*note.turnaround);
  record_handoffs();
}

void Worker::record_handoffs() {
  for (const Handoff& handoff : handoffs_) {
    for (std::uint64_t i = 0; i < handoff.releases; ++i) {
      histograms()[Timing::handoff].record(handoff.taken);
    }
    counts_[Count::direct_handoffs] += handoff.direct ? handoff.releases : 0;
  }
}

TimePoint Worker::critical_section(int key, const Lease& lease, AcquireMark mark,
                                   TimePoint granted_at) {
  const auto entry = run_.audit.enter(key, number_, lease.mode, lease.fencing, mark, granted_at);
  const bool shared = lease.mode == Mode::shared;
  // Holders of a shared lock arrive in any order: their numbers must not reject one another.
  const auto seen = counter_->read(key, shared ? std::nullopt : lease.fencing);
  if (!run_.workload.hold.is_zero() && (meets_ || !run_.meetings)) {
    const TimePoint until = granted_at + run_.workload.hold.draw(random_);
    if (meets_) run_.meetings->call(key, until);
    base_env_->wait(nullptr, until, over_);
  }
  WriteResult written = WriteResult::failed;
  if (seen && shared) {
    written = WriteResult::accepted;  // there is nothing to write
  } else if (seen && seen->stale) {
    written = WriteResult::rejected_stale;  // the read was refused, so there is no write
  } else if (seen) {
    written = counter_->write(key, *seen, lease.fencing);
  } else {
    run_.recorder.failure("counter: " + seen.error());
  }
  if (written == WriteResult::rejected_stale) ++counts_[Count::stale_rejected];
  if (written == WriteResult::failed || written == WriteResult::unknown) {
    ++counts_[Count::resource_failures];
    if (seen) run_.recorder.failure("counter: a write failed or got no answer");
  }
  const TimePoint left_at = base_env_->now();
  run_.audit.leave(key, entry, left_at);
  // Leaves out holds that the end of the run cut short.
  if (!over()) histograms()[Timing::hold].record(left_at - granted_at);
  return left_at;
}

void Worker::release(int key, const Lease& lease, TimePoint left_at) {
  if (lease.state->lost_at()) note_loss(lease, *lease.state->lost_at());
  // The release of a shared lock is no handoff: others may still hold it.
  const bool awaited = run_.handoff.release_started(key, lease.mode, left_at);
  const ReleaseResult result = strategy_->release(lease);
  const TimePoint done_at = base_env_->now();
  if (awaited) {
    const bool released = result.outcome == ReleaseOutcome::released;
    handoffs_.clear();
    run_.handoff.release_finished(key, left_at, released, handoffs_);
    counts_[Count::awaited_releases] = released ? 1 : 0;
    record_handoffs();
  }
  histograms()[Timing::release].record(done_at - left_at);
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
