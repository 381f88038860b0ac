#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hazards/play.h"
#include "strategies/words.h"

namespace lockbench::hazards {
namespace {

using namespace std::string_view_literals;

/// Enough for any request that does not wait for the lock.
constexpr std::chrono::seconds kReplyTimeout{10};

// What a timeline says about the client that made the request.

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

}  // namespace

Actor::Actor(Play& play, std::string name, const ActorSettings& settings)
    : play_(play), name_(std::move(name)), process_(play.servers_.client_program()) {
  std::vector<std::uint16_t> ports;
  if (settings.behind_line) ports = play_.store().ports();
  for (std::uint16_t& port : ports) {
    lines_.push_back(play_.servers_.line_to(port));
    port = lines_.back()->port();
  }
  ClientSetup setup{.strategy = std::string(play_.strategy_.name),
                    .endpoints = ports.empty() ? play_.store().endpoints()
                                               : play_.store().endpoints_through(ports),
                    .counter = play_.servers_.counter_url(),
                    .settings = settings};
  if (!settings.members.empty()) setup.endpoints = play_.store().endpoints_of(settings.members);
  if (!settings.wait_replicas) setup.settings.wait_replicas = play_.store().replicas();
  process_.send(setup);
  answer();
}

std::optional<Answer> Actor::try_receive(Duration within) {
  auto message = process_.receive(within);
  if (message && !message->error.empty()) throw Failure(name_ + ": " + message->error);
  return message;
}

Answer Actor::receive(Duration within) {
  auto message = try_receive(within);
  if (!message) throw Failure(name_ + " did not answer in time");
  return *std::move(message);
}

Answer Actor::answer() {
  Answer answer = receive(kReplyTimeout);
  while (answer.waiting) answer = receive(kReplyTimeout);
  return answer;
}

Answer Actor::call(const Request& request) {
  process_.send(request);
  return answer();
}

void Actor::warm_up() {
  // The first round also connects and loads scripts; the second one counts the usual commands.
  for (int round = 0; round < 2; ++round) {
    Request request = acquire_request(kReplyTimeout);
    request.key += ":warm-up";
    const Grant got = call(request).grant;
    if (!got.granted()) throw Failure(name_ + " cannot acquire the warm-up lock: " + got.reason);
    acquire_commands_ = got.commands;
    release_commands_ = call({.what = Request::What::release, .lease = got.lease}).release_commands;
  }
}

Request Actor::acquire_request(Duration wait) const {
  return {.what = Request::What::acquire, .key = play_.key(), .ttl = play_.ttl(), .within = wait};
}

void Actor::start_acquire(Duration wait) {
  wait_ = wait;
  asks_at_ = BootClock::now();
  play_.timeline().add(asks_at_, name_, "asks for the lock");
  process_.send(acquire_request(wait));
}

void Actor::start_acquire_and_release(Duration wait, TimePoint at) {
  wait_ = wait;
  asks_at_ = std::max(at, BootClock::now());
  Request request = acquire_request(wait);
  request.at = at;
  request.release_at_once = true;
  play_.timeline().add(at, name_, "asks for the lock");
  process_.send(request);
}

void Actor::await_waiting() {
  if (!receive(kReplyTimeout).waiting) throw Failure(name_ + " did not have to wait for the lock");
  play_.timeline().add_now(name_, "finds the lock taken and waits");
}

Grant Actor::finish_acquire() {
  Answer answer = receive(wait_ + kReplyTimeout);
  if (answer.waiting) answer = receive(wait_ + kReplyTimeout);
  return tell(std::move(answer.grant));
}

Grant Actor::tell(Grant grant) {
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
  play_.timeline().add(grant.answered_at, name_, text);
  require_in_time(name_ + " asked for the lock", asks_at_, grant.asked_at, play_.tolerance());
  return grant;
}

Grant Actor::acquire(Duration wait) {
  start_acquire(wait);
  Grant grant = finish_acquire();
  require_in_time("the answer to " + name_ + " was read", grant.answered_at, BootClock::now(),
                  play_.tolerance());
  return grant;
}

Grant Actor::must_acquire() {
  Grant grant = acquire(std::chrono::seconds(5));
  if (!grant.granted()) {
    throw Failure(fmt::format("{} did not get the lock: it {}", name_,
                              word_of<AcquireOutcome::abandoned>(kAcquired, grant.outcome)));
  }
  return grant;
}

ReleaseOutcome Actor::tell_release(const Answer& answer) {
  play_.timeline().add(answer.at, name_,
                       std::string(word_of<ReleaseOutcome::failed>(kReleased, answer.released)));
  return answer.released;
}

void Actor::start_release(const Grant& grant) {
  play_.timeline().add_now(name_, "starts to release");
  process_.send(Request{.what = Request::What::release, .lease = grant.lease});
}

ReleaseOutcome Actor::finish_release() { return tell_release(receive(kReplyTimeout)); }

ReleaseOutcome Actor::release(const Grant& grant) {
  return tell_release(call({.what = Request::What::release, .lease = grant.lease}));
}

RenewOutcome Actor::renew(const Grant& grant, Duration ttl) {
  const Answer answer = call({.what = Request::What::renew, .lease = grant.lease, .ttl = ttl});
  play_.timeline().add(answer.at, name_,
                       std::string(word_of<RenewOutcome::unsupported>(kRenewed, answer.renewed)));
  return answer.renewed;
}

Belief Actor::belief(const Grant& grant, Duration within) {
  const Answer answer =
      call({.what = Request::What::belief, .lease = grant.lease, .within = within});
  play_.timeline().add(
      answer.at, name_,
      answer.belief.valid ? "still treats the lock as its own" : "knows that it has lost the lock");
  return answer.belief;
}

void Actor::read(const Grant& grant) {
  const Answer answer =
      call({.what = Request::What::read, .lease = grant.lease, .key = play_.key()});
  play_.timeline().add(answer.at, name_, fmt::format("reads the counter: {}", answer.counter));
}

loadgen::WriteResult Actor::write(const Grant& grant) {
  const Answer answer =
      call({.what = Request::What::write, .lease = grant.lease, .key = play_.key()});
  const loadgen::WriteResult result = answer.written;
  if (result == loadgen::WriteResult::accepted) ++play_.accepted_writes_;
  play_.timeline().add(answer.at, name_,
                       std::string(word_of<loadgen::WriteResult::failed>(kWritten, result)));
  if (result == loadgen::WriteResult::unknown || result == loadgen::WriteResult::failed) {
    throw Failure(name_ +
                  " could not write the counter, although no fault affects the counter's server");
  }
  return result;
}

void Actor::arm(CommandFault::Action action, CommandFault::Place place, int command) {
  call({.what = Request::What::arm,
        .fault = {.action = action, .command = command, .place = place}});
}

void Actor::shift_clock(Duration by) {
  call({.what = Request::What::shift_clock, .by = by});
  play_.record_fault(fmt::format("the clock of {} is now {} {}", name_,
                                 format_duration(by < Duration::zero() ? -by : by),
                                 by < Duration::zero() ? "behind" : "ahead"));
}

void Actor::kill() {
  process_.kill();
  play_.record_fault(name_ + " is killed");
}

void Actor::stop() {
  process_.stop();
  play_.record_fault(name_ + " is stopped");
}

void Actor::resume() {
  play_.record_fault(name_ + " is resumed");
  process_.resume();
}

void Actor::await_death() {
  process_.await_death(kReplyTimeout);
  play_.record_fault(name_ + " dies");
}

void Actor::await_stop() {
  process_.await_stop(kReplyTimeout);
  play_.record_fault(name_ + " is stopped");
}

}  // namespace lockbench::hazards
