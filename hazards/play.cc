#include "hazards/play.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "hazards/verdicts.h"
#include "strategies/programs/program.h"
#include "strategies/words.h"

namespace lockbench::hazards {
namespace {

using namespace std::string_view_literals;

using Clock = std::chrono::steady_clock;

/// Enough for any request that does not wait for the lock.
constexpr std::chrono::seconds kReplyTimeout{10};
/// For the runtime of a client program to start.
constexpr std::chrono::seconds kProgramStart{25};

// How the timeline describes the client that made the request.

constexpr std::array kAcquired{"is granted the lock"sv,
                               "times out waiting for the lock"sv,
                               "finds the lock taken"sv,
                               "cannot request the lock"sv,
                               "does not know whether it was granted the lock"sv,
                               "stops waiting for the lock"sv};
constexpr std::array kReleased{"releases the lock"sv,
                               "tries to release, and learns that the lock is not its own"sv,
                               "does not know whether it released the lock"sv};
constexpr std::array kRenewed{
    "renews the lock"sv, "tries to renew, and learns that the lock is not its own"sv,
    "does not know whether it renewed the lock"sv, "has nothing to renew"sv};
constexpr std::array kWritten{"writes the counter"sv,
                              "is rejected by the counter: its fencing number is old"sv,
                              "could not write the counter"sv, "could not write the counter"sv};

/// Short, to keep plays short, but long enough that a busy machine does not cause a fault by
/// itself: a renewal timer must fire in time.
Duration usual_ttl(const Descriptor& strategy) {
  const Traits& traits = strategy.traits;
  if (traits.renews) return std::chrono::milliseconds(1500);
  // The time that the nodes take to answer is subtracted from the validity.
  if (traits.nodes > 1) return std::chrono::seconds(1);
  // A library in another process takes its time.
  if (traits.ttl_in_seconds || !strategy.program.empty()) return std::chrono::seconds(1);
  return std::chrono::milliseconds(500);
}

}  // namespace

ClientProcess::ClientProcess(const std::filesystem::path& program) {
  const auto ends = need(testbed::make_pair_of_sockets());
  const auto pid = testbed::spawn(program, "client", ends[1]);
  close(ends[1]);
  if (!pid) close(ends[0]);
  pid_ = need(pid);
  socket_ = ends[0];
}

ClientProcess::~ClientProcess() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(socket_);
}

std::optional<Answer> ClientProcess::receive(Duration within) {
  if (testbed::wire::await(socket_, POLLIN, Clock::now() + within) == 0) return std::nullopt;
  try {
    return hazards::receive<Answer>(socket_);
  } catch (const std::exception& error) {
    throw Failure(fmt::format("a client process sent no answer: {}", error.what()));
  }
}

void ClientProcess::kill() {
  signal(SIGKILL);
  await_death();
}

void ClientProcess::stop() {
  signal(SIGSTOP);
  await_stop();
}

void ClientProcess::resume() { signal(SIGCONT); }

void ClientProcess::await_stop() { await_change(WUNTRACED, "stop"); }

void ClientProcess::await_change(int options, const char* change) {
  constexpr std::chrono::seconds kWithin{10};
  int status = 0;
  pid_t changed = 0;
  testbed::comes_true(kWithin, [&] {
    changed = waitpid(pid_, &status, options | WNOHANG);
    return changed != 0;
  });
  const bool stopped = WIFSTOPPED(status);
  const bool in_time = changed == pid_ && stopped == (options == WUNTRACED);
  if (changed == pid_ && !stopped) pid_ = -1;
  if (!in_time) throw Failure(fmt::format("a client process did not {} in time", change));
}

void ClientProcess::signal(int number) {
  // A client program is in its group.
  if (pid_ <= 0 || ::kill(-pid_, number) != 0)
    throw Failure("a client process has died unexpectedly");
}

Actor::Actor(Play& play, std::string name, const ActorSettings& settings)
    : play_(play),
      name_(std::move(name)),
      process_(play.venue_.start_client()),
      history_(play.venue_.history()) {
  const PrivateStore& store = play_.store();
  const program::Client* const program = program::client_of(play_.strategy_);
  const bool other_renewal = play_.traits().renews && (!settings.renews || settings.renew_cap);
  if (program != nullptr && (other_renewal || settings.renewal_stalls)) {
    throw NotPlayable("the library renews as it likes");
  }
  std::vector<std::uint16_t> ports;
  for (const std::size_t member : settings.members) {
    ports.push_back(store.port_of(member));
  }
  if (settings.behind_line) ports = store.ports();
  for (std::size_t i = 0; settings.behind_line && i < ports.size(); ++i) {
    lines_.push_back(play_.venue_.line_to(ports[i]));
    ports[i] = lines_.back()->port();
  }
  ClientSetup setup{.strategy = std::string(play_.strategy_.name),
                    .program = program == nullptr ? "" : program->command,
                    .about = program == nullptr ? "" : program->about,
                    .ttl = play_.ttl(),
                    .endpoints = store.endpoints(ports),
                    .counter = play_.venue_.counter_url(),
                    .settings = settings};
  if (program != nullptr) {
    clock_ = play_.venue_.make_clock();
    setup.environment = clock_->environment();
  }
  if (!settings.wait_replicas) setup.settings.wait_replicas = store.replicas();
  process_->send(setup);
  answer(program == nullptr ? kReplyTimeout : kProgramStart);
}

Answer Actor::receive(Duration within) {
  auto message = process_->receive(within);
  if (!message) throw Failure(name_ + " did not answer in time");
  if (!message->error.empty()) throw Failure(name_ + ": " + message->error);
  if (!message->cannot.empty()) throw NotPlayable(message->cannot);
  return *std::move(message);
}

Answer Actor::answer(Duration within) {
  Answer answer = receive(within);
  while (answer.waiting) answer = receive(within);
  return answer;
}

Answer Actor::call(const Request& request) {
  process_->send(request);
  return answer(kReplyTimeout);
}

void Actor::require_commands() const {
  if (play_.of_program()) throw NotPlayable("the commands of a client program do not show");
}

void Actor::warm_up() {
  // The first round also connects and loads scripts; the second counts the usual commands.
  for (int round = 0; round < 2; ++round) {
    Request request = acquire_request(kReplyTimeout);
    request.key += ":warm-up";
    const Grant got = call(request).grant;
    if (!got.granted()) throw Failure(name_ + " cannot acquire the warm-up lock: " + got.reason);
    acquire_commands_ = got.commands;
    if (!play_.of_program() && play_.traits().renew_check) {
      renew_commands_ =
          call({.what = Request::What::renew, .lease = got.lease, .ttl = play_.ttl()}).commands;
    }
    release_commands_ = call({.what = Request::What::release, .lease = got.lease}).commands;
  }
}

Request Actor::acquire_request(Duration wait) const {
  return {.what = Request::What::acquire, .key = play_.key(), .ttl = play_.ttl(), .within = wait};
}

void Actor::start_acquire(Duration wait, std::optional<TimePoint> at) {
  wait_ = wait;
  asks_at_ = std::max(at.value_or(TimePoint::min()), PlayClock::now());
  play_.tell(asks_at_, name_, "asks for the lock");
  Request request = acquire_request(wait);
  request.at = at;
  request.release_at_once = releases_at_once_ = at.has_value();
  asked_for_ = play_.lock_name();
  history_.acquire(asked_for_, false, PlayClock::now());
  process_->send(request);
}

void Actor::await_waiting() {
  if (!receive(kReplyTimeout).waiting) throw Failure(name_ + " did not have to wait for the lock");
  play_.tell_now(name_, "finds the lock taken and waits");
}

Grant Actor::finish_acquire() {
  Grant grant = finish_any_acquire();
  require_answer(grant);
  return grant;
}

Grant Actor::finish_any_acquire() {
  Answer answer = receive(wait_ + kReplyTimeout);
  if (answer.waiting) answer = receive(wait_ + kReplyTimeout);
  Grant& grant = answer.grant;
  std::string text(word_of<AcquireOutcome::abandoned>(kAcquired, grant.outcome));
  if (grant.outcome == AcquireOutcome::refused && !grant.reason.empty()) {
    text = "is not granted the lock";
  }
  if (grant.granted()) {
    if (grant.valid_until) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*grant.valid_until - grant.answered_at);
      text += fmt::format(", valid for {} ms", left.count());
      // ZooKeeper and etcd have a minimum; they may grant more than was asked for.
      if (left > play_.ttl_ * 3 / 2) play_.ttl_ = left;
    }
    if (grant.fencing) text += fmt::format(", with fencing number {}", *grant.fencing);
  } else if (!grant.reason.empty()) {
    text += ": " + grant.reason;
  }
  play_.tell(grant.answered_at, name_, text);
  tell_history(grant);
  require_in_time(name_ + " asked for the lock", asks_at_, grant.asked_at, play_.tolerance());
  return std::move(grant);
}

void Actor::tell_history(const Grant& grant) {
  using history::Outcome;
  const TimePoint now = PlayClock::now();
  // One that was released at once was held at some time before now; where others hold the lock by
  // now, the history must not say that it is held.
  const bool past = grant.granted() && releases_at_once_;
  if (past || grant.outcome == AcquireOutcome::unknown) return history_.end(Outcome::info, now);
  history_.end(grant.granted() ? Outcome::ok : Outcome::fail, now, grant.fencing);
  if (grant.granted()) held_[grant.lease] = asked_for_;
}

void Actor::tell_death(const std::string& how) {
  play_.record_fault(name_ + how);
  for (const auto& [lease, lock] : held_) {
    if (history_.open()) break;
    history_.release(PlayClock::now(), lock);
    history_.end(history::Outcome::ok, PlayClock::now());
  }
}

Grant Actor::acquire(Duration wait) {
  Grant grant = try_acquire(wait);
  require_answer(grant);
  return grant;
}

Grant Actor::try_acquire(Duration wait) {
  start_acquire(wait);
  Grant grant = finish_any_acquire();
  require_in_time("the answer to " + name_ + " was read", grant.answered_at, PlayClock::now(),
                  play_.tolerance());
  return grant;
}

Grant Actor::must_acquire() {
  Grant grant = try_acquire(std::chrono::seconds(5));
  if (!grant.granted()) {
    throw Failure(fmt::format("{} did not get the lock: it {}", name_,
                              word_of<AcquireOutcome::abandoned>(kAcquired, grant.outcome)));
  }
  return grant;
}

void Actor::begin_release(const Grant& grant) {
  const auto held = held_.extract(grant.lease);
  if (!held.empty()) history_.release(PlayClock::now(), held.mapped());
}

ReleaseOutcome Actor::tell_release(const Answer& answer) {
  // Stays open if it failed, as it may be tried again.
  if (answer.released != ReleaseOutcome::failed) {
    history_.end(history::Outcome::ok, PlayClock::now());
  }
  play_.tell(answer.at, name_,
             std::string(word_of<ReleaseOutcome::failed>(kReleased, answer.released)));
  return answer.released;
}

void Actor::start_release(const Grant& grant) {
  play_.tell_now(name_, "starts to release");
  begin_release(grant);
  process_->send(Request{.what = Request::What::release, .lease = grant.lease});
}

ReleaseOutcome Actor::finish_release() { return tell_release(receive(kReplyTimeout)); }

ReleaseOutcome Actor::release(const Grant& grant) {
  begin_release(grant);
  return tell_release(call({.what = Request::What::release, .lease = grant.lease}));
}

ReleaseOutcome Actor::cancelled_release(const Grant& grant, Duration after) {
  play_.tell_now(name_, "starts to release, and will cancel that");
  begin_release(grant);
  return tell_release(
      call({.what = Request::What::cancelled_release, .lease = grant.lease, .within = after}));
}

void Actor::start_work(Duration busy) {
  play_.record_fault(
      fmt::format("the work of {} keeps its thread busy for {}", name_, milliseconds(busy)));
  wait_ = busy;
  process_->send(Request{.what = Request::What::work, .within = busy});
}

void Actor::finish_work() {
  const Answer answer = receive(wait_ + kReplyTimeout);
  play_.tell(answer.at, name_, "has done its work");
}

RenewOutcome Actor::renew(const Grant& grant, Duration ttl) {
  const Answer answer = call({.what = Request::What::renew, .lease = grant.lease, .ttl = ttl});
  if (play_.of_program() && answer.renewed == RenewOutcome::unsupported) {
    throw NotPlayable("the library cannot renew");
  }
  play_.tell(answer.at, name_,
             std::string(word_of<RenewOutcome::unsupported>(kRenewed, answer.renewed)));
  return answer.renewed;
}

void Actor::start_renew(const Grant& grant, Duration ttl) {
  play_.tell_now(name_, "starts to renew");
  process_->send(Request{.what = Request::What::renew, .lease = grant.lease, .ttl = ttl});
}

Belief Actor::belief(const Grant& grant, Duration within) {
  const Answer answer =
      call({.what = Request::What::belief, .lease = grant.lease, .within = within});
  play_.tell(
      answer.at, name_,
      answer.belief.valid ? "still treats the lock as its own" : "knows that it has lost the lock");
  return answer.belief;
}

void Actor::read(const Grant& grant) {
  const Answer answer =
      call({.what = Request::What::read, .lease = grant.lease, .key = play_.key()});
  play_.tell(answer.at, name_, fmt::format("reads the counter: {}", answer.counter));
}

loadgen::WriteResult Actor::write(const Grant& grant) {
  const Answer answer =
      call({.what = Request::What::write, .lease = grant.lease, .key = play_.key()});
  const loadgen::WriteResult result = answer.written;
  if (result == loadgen::WriteResult::accepted) ++play_.accepted_writes_;
  play_.tell(answer.at, name_,
             std::string(word_of<loadgen::WriteResult::failed>(kWritten, result)));
  if (result == loadgen::WriteResult::unknown || result == loadgen::WriteResult::failed) {
    throw Failure(name_ +
                  " could not write the counter, although no fault affects the counter's server");
  }
  return result;
}

void Actor::arm(CommandFault::Action action, CommandFault::Place place, int command) {
  require_commands();
  call({.what = Request::What::arm,
        .fault = {.action = action, .command = command, .place = place}});
}

void Actor::shift_clock(Duration by) {
  if (clock_ && clock_->loads() == 0) {
    throw NotPlayable("its runtime does not load the library that moves its clock");
  }
  if (clock_) {
    clock_->set(by);
  } else {
    call({.what = Request::What::shift_clock, .by = by});
  }
  play_.record_fault(fmt::format("the clock of {} is now {} {}", name_,
                                 format_duration(by < Duration::zero() ? -by : by),
                                 by < Duration::zero() ? "behind" : "ahead"));
}

void Actor::kill() {
  process_->kill();
  tell_death(" is killed");
}

void Actor::stop() {
  process_->stop();
  play_.record_fault(name_ + " is stopped");
}

void Actor::resume() {
  play_.record_fault(name_ + " is resumed");
  process_->resume();
}

void Actor::await_death() {
  process_->await_death();
  tell_death(" dies");
}

void Actor::await_stop() {
  process_->await_stop();
  play_.record_fault(name_ + " is stopped");
}

Play::Play(Venue& venue, std::shared_ptr<PrivateStore> store, const Descriptor& strategy)
    : venue_(venue),
      store_(std::move(store)),
      strategy_(strategy),
      first_key_(venue.fresh_key()),
      key_(first_key_ + "}"),
      ttl_(std::max(usual_ttl(strategy), store_->shortest_session())) {}

Actor& Play::client(std::string_view name, const ActorSettings& settings) {
  ActorSettings own = settings;
  if (own.number == 0) own.number = ++clients_;
  return actors_.emplace_back(*this, std::string(name), own);
}

Duration Play::tolerance() const {
  // A client process sleeps before each request, and a busy machine takes a while to wake it.
  constexpr std::chrono::milliseconds kWakeUp{100};
  return std::max<Duration>(ttl_ / 4, kWakeUp);
}

void Play::wait_until(TimePoint due) const {
  due = std::max(due, PlayClock::now());
  PlayClock::sleep_until(due);
  require_in_time("a pause ended", due, PlayClock::now(), tolerance());
}

std::string Play::lock_name() const {
  const std::size_t begin = key_.find('{') + 1;
  return fmt::format("{}:{}", name_, key_.substr(begin, key_.size() - begin - 1));
}

void Play::change_key() { key_ = fmt::format("{}-{}}}", first_key_, ++keys_); }

std::uint64_t Play::counter() { return venue_.counter(key_ + ":counter"); }

bool comes_true(Duration within, const std::function<bool()>& what) {
  constexpr std::chrono::milliseconds kPause{1};
  const TimePoint give_up_at = PlayClock::now() + within;
  while (!what()) {
    if (PlayClock::now() > give_up_at) return false;
    PlayClock::sleep_for(kPause);
  }
  return true;
}

void require_answer(const Grant& grant) {
  if (grant.unanswered()) {
    throw Failure("the store gave an acquisition no answer: " + grant.reason);
  }
}

void require_in_time(std::string_view step, TimePoint due, TimePoint happened_at,
                     Duration tolerance) {
  const Duration late = happened_at - due;
  if (late <= tolerance) return;
  throw Disturbed(fmt::format("disturbed: {} {} late, but at most {} are tolerated", step,
                              milliseconds(late), milliseconds(tolerance)));
}

}  // namespace lockbench::hazards
