#include "loadgen/run/worker.h"

#include <fmt/format.h>

#include <csignal>
#include <iterator>

#include "strategies/programs/program.h"

namespace lockbench::loadgen {
namespace {

// Random, so that deadlocked sections do not meet again in the same step.
constexpr WaitPolicy kPause = {.kind = WaitKind::backoff,
                               .min = std::chrono::milliseconds(1),
                               .max = std::chrono::milliseconds(100)};

/// Of random numbers: another one for each process in a client's place, as a dead client's token
/// must not be the next one's.
std::uint64_t stream_of(const RunShared& run, int number, int life) {
  const auto clients = static_cast<std::uint64_t>(run.share.clients);
  return static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(life) * clients;
}

// Streams of services count from the middle of the numbers, as those of clients count from 0.
constexpr std::uint64_t kServices = std::uint64_t{1} << 62;

// The most sections between two yields, for a store that always has its answers ready.
constexpr std::uint32_t kSectionsPerYield = 16;

}  // namespace

std::unique_ptr<Env> ClientHosts::make_env(const RunShared& run, int /*client*/,
                                           std::uint64_t seed) {
  return run.make_env(seed);
}

std::unique_ptr<Env> Victim::make_env(const RunShared& run, int client, std::uint64_t seed) {
  auto env = run.make_env(seed);
  if (client != kClient) return env;
  return std::make_unique<VictimEnv>(*this, std::move(env));
}

std::unique_ptr<Services> Victim::make_services(RunShared& run, int client,
                                                std::uint64_t /*seed*/) {
  if (client != kClient) return nullptr;
  auto services = std::make_unique<Services>();
  record_services(run, *services, this);
  return services;
}

void RunShared::write_key(int number, std::string& name) const {
  name.assign(key_prefix);
  fmt::format_to(std::back_inserter(name), "{}}}", number);
}

Worker::Worker(RunShared& run, int number, int life)
    : run_(run),
      number_(number),
      over_(run.over.get_token()),
      own_services_(run.hosts->make_services(
          run, number, Random(run.nonce, kServices + stream_of(run, number, life))())),
      base_env_(
          run.hosts->make_env(run, number, Random(run.nonce, stream_of(run, number, life))())),
      env_(*base_env_, over_,
           [this](std::size_t kind, std::string_view command, Duration taken, TimePoint ended) {
             note_command(kind, command, taken, ended);
           }),
      strategy_(make_strategy(run.strategy,
                              Context{.endpoints = run.endpoints,
                                      .options = run.workload.strategy,
                                      .env = env_,
                                      .services = own_services_ ? *own_services_ : run.services,
                                      .client = number,
                                      .ttl = run.workload.ttl})),
      program_(dynamic_cast<program::ProgramLock*>(strategy_.get())),
      record_(run.recorder.client(number)),
      carrier_(Carrier::current()),
      has_store_(!urls_of(run.strategy, run.endpoints).empty()),
      random_(run.seed, stream_of(run, number, life)) {
  request_.ttl = run.workload.ttl;
  request_.stop = run.abort.get_token();
  if (run.pool) connection_ = base_env_->make_event();
  if (!run.meetings || number < run.workload.scheduled_clients()) return;
  call_ = base_env_->make_event();
  run.meetings->expect(own_key(), call_.get());
}

Worker::~Worker() {
  if (is_rival()) run_.meetings->expect(own_key(), nullptr);
}

StoreResult<void> Worker::connect() {
  counter_ = run_.counter->open(*base_env_);
  // Connects now: inside a section it would be charged to the lock.
  if (auto reached = counter_->connect(); !reached) {
    return tl::unexpected(StoreError{StoreError::Kind::not_sent, "counter: " + reached.error()});
  }
  auto connected = strategy_->connect();
  // A lock without a server has no connection to use.
  if (connected && has_store_) use_once();
  return connected;
}

void Worker::note_command(std::size_t kind, std::string_view command, Duration taken,
                          TimePoint ended) {
  if (!run_.started.load(std::memory_order_acquire)) return;
  if (run_.phase_at(ended) != Phase::measured) return;
  if (kind >= command_times_.size()) command_times_.resize(kind + 1);
  if (command_times_[kind] == nullptr) command_times_[kind] = &run_.recorder.command(command);
  command_times_[kind]->record(taken);
}

void Worker::request(int key, Mode mode, TimePoint deadline) {
  run_.used.mark(key);
  run_.write_key(key, key_name_);
  request_.key = key_name_;
  request_.mode = mode;
  request_.deadline = deadline;
}

void Worker::use_once() {
  request(run_.workload.key_count() + number_, Mode::exclusive,
          base_env_->now() + run_.workload.strategy.command_timeout);
  // A failure here will show in the load.
  const AcquireResult result = strategy_->acquire(request_);
  if (result.lease) strategy_->release(*result.lease);
  env_.leave_behind();
}

void Worker::work() {
  const auto is_dead = [this] { return dead_ || run_.hosts->is_dead(number_); };
  while (!over() && !is_dead()) {
    const std::optional<TimePoint> intended = is_rival() ? next_call() : next_start();
    if (!intended || !next_transaction(*intended)) break;
    section(*intended);
    if (transaction_.think > Duration::zero() && !over()) {
      base_env_->wait(nullptr, base_env_->now() + transaction_.think, over_);
    }
    // Otherwise a client whose store answers immediately would keep the others from working. Not
    // every time: mostly a section waits for its store, and another turn would only delay the next
    // request.
    if (!has_store_ || ++sections_ % kSectionsPerYield == 0) carrier_.yield();
  }
  dead_ = is_dead();
  record_.state.store(ClientState::idle, std::memory_order_relaxed);
  end_wait();
}

bool Worker::next_transaction(TimePoint intended) {
  if (!run_.demand->next(number_, intended - run_.load_start, random_, transaction_)) {
    run_.demand_met.store(true);
    if (run_.workload.iterations && begun_ == Phase::measured) end_iteration(false);
    return false;
  }
  // A trace may ask for shared mode even if the lock has none.
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
  // Before the clock is read or a start is taken: the runner must not miss a wait that is about to
  // begin.
  record_.since.store(TimePoint::min(), std::memory_order_release);
  const TimePoint now = base_env_->now();
  TimePoint intended = now;
  if (run_.schedule) {
    intended = run_.schedule->next();
    // The schedule never stands still, so this ends.
    while (run_.workload.longest_lag && now - intended > *run_.workload.longest_lag) {
      abandon(intended, now);
      record_.add(phase_, count_of(failure_.value_or(FailureReason::slow)));
      intended = run_.schedule->next();
    }
  }
  record_.since.store(intended, std::memory_order_release);
  if (intended > now && base_env_->wait(nullptr, intended, over_) == WaitResult::stopped) {
    // It may have been due before the stop.
    const TimePoint cut = std::min(base_env_->now(), run_.load_end.load());
    if (intended < cut && !run_.nothing_left()) abandon(intended, cut);
    return std::nullopt;
  }
  begun_ = phase_ = run_.phase_at(intended);
  if (begun_ == Phase::measured && run_.workload.iterations && !take_iteration()) {
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
  const WaitResult called = base_env_->wait(call_.get(), TimePoint::max(), over_);
  if (called != WaitResult::signalled) return std::nullopt;
  record_.since.store(TimePoint::min(), std::memory_order_release);
  const TimePoint now = base_env_->now();
  record_.since.store(now, std::memory_order_release);
  begun_ = phase_ = run_.phase_at(now);
  return now;
}

bool Worker::take_iteration() {
  auto begun = run_.measured_sections.load(std::memory_order_relaxed);
  // The count must never exceed the limit, even for a moment: a client that saw this would leave,
  // and none might be left for a returned iteration.
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
    // Does not cut a measured section short: all other clients think, wait for a start, or are in a
    // section that began in the warm-up.
    run_.over.request_stop();
  }
}

void Worker::abandon(TimePoint intended, TimePoint now) {
  phase_ = run_.phase_at(intended);
  const Duration waited = now - intended;
  histograms()[Timing::abandoned].record(waited);
  if (run_.workload.has_transactions()) histograms()[Timing::transaction_cut].record(waited);
  histograms()[Timing::schedule_lag].record(waited);
  note_own(phase_, intended, now, true);
}

void Worker::section(TimePoint intended) {
  counts_ = {};
  // Not while a lock is stuck: the other clients must keep the schedule.
  meets_ = run_.meetings && !is_rival() && run_.handoff.stuck() == 0 &&
           run_.meetings->begin(transaction_.locks.front().key, intended);
  const Effort before = env_.effort();
  record_.state.store(ClientState::waiting, std::memory_order_relaxed);
  const TimePoint started = run_.schedule ? base_env_->now() : intended;
  const bool connected = take_connection(started + run_.workload.acquire_timeout);
  const AcquireOutcome outcome =
      connected ? take_all(intended, started) : without_connection(intended, started);
  end_wait();
  if (failure_) counts_[count_of(*failure_)] = 1;
  if (run_.workload.has_transactions()) note_transaction(outcome, intended, started);

  if (outcome == AcquireOutcome::acquired && updates()) {
    counts_[Count::sections] = 1;
  } else if (outcome == AcquireOutcome::acquired) {
    record_.state.store(ClientState::holding, std::memory_order_relaxed);
    const bool shared = std::all_of(held_.begin(), held_.end(), [](const Held& held) {
      return held.lease.mode == Mode::shared;
    });
    const bool done = hold(held_.back().granted_at) && !dead_;
    give_back(done);
    counts_[Count::sections] = done ? 1 : 0;
    counts_[Count::shared_sections] = done && shared ? 1 : 0;
  }
  if (run_.pool && connected) run_.pool->give_back();
  if (meets_) run_.meetings->end();
  const bool only_contended =
      outcome == AcquireOutcome::timed_out || outcome == AcquireOutcome::refused;
  record_.state.store(ClientState::idle, std::memory_order_relaxed);
  env_.leave_behind();
  counts_[Count::commands] = (env_.effort() - before).commands;
  record_.add(phase_, counts_);
  if (run_.workload.iterations && begun_ == Phase::measured) end_iteration(!only_contended);
  const auto& trace = run_.workload.trace;
  if (trace &&
      run_.ended_of_trace.fetch_add(1, std::memory_order_relaxed) + 1 == trace->transactions) {
    // Otherwise the run would last until each client has thought, or reaches its next start.
    run_.demand_met.store(true);
    run_.over.request_stop();
  }
  const bool failed = outcome == AcquireOutcome::failed || outcome == AcquireOutcome::unknown ||
                      counts_[Count::unprotected] > 0;
  failures_in_a_row_ = failed ? failures_in_a_row_ + 1 : 0;
  // Without a pause, clients would ask a failed store in a tight loop.
  if (failed) pause(failures_in_a_row_ - 1, TimePoint::max());
}

bool Worker::take_connection(TimePoint deadline) {
  if (!run_.pool) return true;
  const TimePoint asked_at = base_env_->now();
  const bool got =
      run_.pool->take(*base_env_, *connection_, deadline, over_) == WaitResult::signalled;
  const TimePoint now = base_env_->now();
  run_.recorder.histograms(run_.phase_at(now))[Timing::pool_wait].record(now - asked_at);
  if (!got && !over()) ++counts_[Count::pool_timeouts];
  return got;
}

AcquireOutcome Worker::without_connection(TimePoint intended, TimePoint started) {
  const TimePoint now = base_env_->now();
  phase_ = phase_of_end(now);
  request_.deadline = started + run_.workload.acquire_timeout;
  const AcquireResult none{.outcome =
                               over() ? AcquireOutcome::abandoned : AcquireOutcome::timed_out};
  note_wait(none, {}, intended, started, now);
  return none.outcome;
}

bool Worker::hold(TimePoint begun) {
  // Without a store, only this lets clients of one thread meet in a section.
  if (!has_store_) carrier_.yield();
  if (is_victim()) {
    const auto fault = run_.victim->strike(base_env_->now());
    dead_ = fault == FaultKind::client_kill;
    if (fault && program_ != nullptr) program_->signal(dead_ ? SIGKILL : SIGSTOP);
    if (dead_) return false;
    if (fault) base_env_->wait(nullptr, run_.victim->paused_until(), over_);
    if (fault && program_ != nullptr) program_->signal(SIGCONT);
  }
  const bool one_more = run_.workload.work_connection;
  if (one_more && !take_connection(base_env_->now() + run_.workload.acquire_timeout)) return false;
  if (transaction_.hold > Duration::zero() && (!run_.meetings || meets_)) {
    const TimePoint from = one_more ? base_env_->now() : begun;
    const TimePoint until = from + transaction_.hold;
    if (meets_) run_.meetings->call(held_.back().key, until);
    base_env_->wait(nullptr, until, over_);
  }
  if (one_more) run_.pool->give_back();
  dead_ = run_.hosts->is_dead(number_);
  return true;
}

bool Worker::pause(std::uint32_t failures, TimePoint deadline) {
  const TimePoint now = base_env_->now();
  if (over() || now >= deadline) return false;
  const TimePoint end = std::min(deadline, now + kPause.delay(failures, *base_env_));
  return base_env_->wait(nullptr, end, over_) != WaitResult::stopped;
}

}  // namespace lockbench::loadgen
