#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "hazards/play.h"
#include "loadgen/run/client_threads.h"
#include "strategies/words.h"

namespace lockbench::hazards {
namespace {

using Json = nlohmann::json;
using namespace std::string_view_literals;

/// Enough for any request that does not wait for the lock.
constexpr std::chrono::seconds kReplyTimeout{10};
constexpr std::chrono::seconds kCommandTimeout{2};

std::int64_t nanoseconds(Duration duration) { return duration.count(); }
TimePoint time_of(const Json& value) { return TimePoint(Duration(value.get<std::int64_t>())); }
std::optional<TimePoint> time_if_any(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(time_of(value));
}

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

std::string_view describe(AcquireOutcome outcome) {
  return word_of<AcquireOutcome::abandoned>(kAcquired, outcome);
}
std::string_view describe(ReleaseOutcome outcome) {
  return word_of<ReleaseOutcome::failed>(kReleased, outcome);
}
std::string_view describe(RenewOutcome outcome) {
  return word_of<RenewOutcome::unsupported>(kRenewed, outcome);
}
std::string_view describe(loadgen::WriteResult result) {
  return word_of<loadgen::WriteResult::failed>(kWritten, result);
}

}  // namespace

Actor::Actor(Play& play, std::string name, const ActorSettings& settings)
    : play_(play), name_(std::move(name)), process_(play.servers_.client_program()) {
  std::vector<std::uint16_t> ports;
  if (settings.behind_line) ports = play_.store().ports();
  for (std::uint16_t& port : ports) {
    lines_.push_back(play_.servers_.line_to(port));
    port = lines_.back()->port();
  }
  Endpoints found =
      ports.empty() ? play_.store().endpoints() : play_.store().endpoints_through(ports);
  if (!settings.members.empty()) found = play_.store().endpoints_of(settings.members);
  Json endpoints = Json::object();
  for (const auto& [backend, urls] : found) endpoints[backend] = urls;
  call({{"strategy", play_.strategy_.name},
        {"endpoints", endpoints},
        {"counter", play_.servers_.counter_url()},
        {"checks_fencing", settings.checks_fencing},
        {"client", settings.number},
        {"clients_on", loadgen::to_string(play_.servers_.clients_on())},
        {"renew", settings.renews},
        {"renew_cap_ns",
         settings.renew_cap ? Json(nanoseconds(*settings.renew_cap)) : Json(nullptr)},
        {"wait", settings.wait.empty() ? Json(nullptr) : Json(settings.wait)},
        {"node_timeout_ns",
         settings.node_timeout ? Json(nanoseconds(*settings.node_timeout)) : Json(nullptr)},
        {"wait_replicas", settings.wait_replicas.value_or(play_.store().replicas())},
        {"command_timeout_ns", nanoseconds(kCommandTimeout)}});
}

std::optional<Json> Actor::try_receive(Duration within) {
  auto message = process_.receive(within);
  if (message && message->contains("error")) {
    throw Failure(name_ + ": " + message->at("error").get<std::string>());
  }
  return message;
}

Json Actor::receive(Duration within) {
  auto message = try_receive(within);
  if (!message) throw Failure(name_ + " did not answer in time");
  return *std::move(message);
}

Json Actor::call(const Json& request) {
  process_.send(request);
  Json answer = receive(kReplyTimeout);
  while (answer.contains("event")) answer = receive(kReplyTimeout);
  return answer;
}

void Actor::warm_up() {
  // The first round also connects and loads scripts; the second one counts the usual commands.
  for (int round = 0; round < 2; ++round) {
    Json request = acquire_request(kReplyTimeout);
    request["key"] = play_.key() + ":warm-up";
    const Json got = call(request);
    if (got.at("outcome") != static_cast<int>(AcquireOutcome::acquired)) {
      throw Failure(name_ +
                    " cannot acquire the warm-up lock: " + got.at("reason").get<std::string>());
    }
    const Json released = call({{"do", "release"}, {"lease", got.at("lease")}});
    acquire_commands_ = got.at("commands").get<int>();
    release_commands_ = released.at("commands").get<int>();
  }
}

Json Actor::acquire_request(Duration wait) const {
  return {{"do", "acquire"},
          {"key", play_.key()},
          {"ttl_ns", nanoseconds(play_.ttl())},
          {"wait_ns", nanoseconds(wait)}};
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
  Json request = acquire_request(wait);
  request["at_ns"] = at.time_since_epoch().count();
  request["release_at_once"] = true;
  play_.timeline().add(at, name_, "asks for the lock");
  process_.send(request);
}

void Actor::await_waiting() {
  const Json event = receive(kReplyTimeout);
  if (!event.contains("event")) throw Failure(name_ + " did not have to wait for the lock");
  play_.timeline().add_now(name_, "finds the lock taken and waits");
}

Grant Actor::finish_acquire() {
  Json answer = receive(wait_ + kReplyTimeout);
  if (answer.contains("event")) answer = receive(wait_ + kReplyTimeout);
  return to_grant(answer);
}

Grant Actor::to_grant(const Json& answer) {
  Grant grant;
  grant.outcome = static_cast<AcquireOutcome>(answer.at("outcome").get<int>());
  grant.asked_at = time_of(answer.at("asked_ns"));
  grant.answered_at = time_of(answer.at("answered_ns"));
  grant.commands = answer.at("commands").get<int>();
  grant.rounds = answer.at("rounds").get<int>();
  grant.split_votes = answer.at("split_votes").get<int>();
  grant.reason = answer.at("reason").get<std::string>();
  std::string text(describe(grant.outcome));
  if (grant.outcome == AcquireOutcome::refused && !grant.reason.empty()) {
    text = "is not granted the lock";
  }
  if (grant.granted()) {
    grant.lease = answer.at("lease").get<int>();
    grant.valid_until = time_if_any(answer.at("valid_until_ns"));
    const Json& fencing = answer.at("fencing");
    if (!fencing.is_null()) grant.fencing = fencing.get<std::uint64_t>();
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
    throw Failure(fmt::format("{} did not get the lock: it {}", name_, describe(grant.outcome)));
  }
  return grant;
}

ReleaseOutcome Actor::to_release(const Json& answer) {
  const auto outcome = static_cast<ReleaseOutcome>(answer.at("outcome").get<int>());
  play_.timeline().add(time_of(answer.at("answered_ns")), name_, std::string(describe(outcome)));
  return outcome;
}

void Actor::start_release(const Grant& grant) {
  play_.timeline().add_now(name_, "starts to release");
  process_.send({{"do", "release"}, {"lease", grant.lease}});
}

ReleaseOutcome Actor::finish_release() { return to_release(receive(kReplyTimeout)); }

ReleaseOutcome Actor::release(const Grant& grant) {
  return to_release(call({{"do", "release"}, {"lease", grant.lease}}));
}

RenewOutcome Actor::renew(const Grant& grant, Duration ttl) {
  const Json answer = call({{"do", "renew"}, {"lease", grant.lease}, {"ttl_ns", nanoseconds(ttl)}});
  const auto outcome = static_cast<RenewOutcome>(answer.at("outcome").get<int>());
  play_.timeline().add(time_of(answer.at("answered_ns")), name_, std::string(describe(outcome)));
  return outcome;
}

Belief Actor::belief(const Grant& grant, Duration within) {
  const Json answer =
      call({{"do", "belief"}, {"lease", grant.lease}, {"within_ns", nanoseconds(within)}});
  Belief belief{.valid = answer.at("valid").get<bool>(),
                .until = time_if_any(answer.at("valid_until_ns"))};
  const auto lost = time_if_any(answer.at("lost_at_ns"));
  if (lost && (!belief.until || *lost < *belief.until)) belief.until = lost;
  play_.timeline().add(
      time_of(answer.at("now_ns")), name_,
      belief.valid ? "still treats the lock as its own" : "knows that it has lost the lock");
  return belief;
}

void Actor::read(const Grant& grant) {
  const Json answer = call({{"do", "read"}, {"lease", grant.lease}, {"key", play_.key()}});
  play_.timeline().add_now(
      name_, fmt::format("reads the counter: {}", answer.at("value").get<std::uint64_t>()));
}

loadgen::WriteResult Actor::write(const Grant& grant) {
  const Json answer = call({{"do", "write"}, {"lease", grant.lease}, {"key", play_.key()}});
  const auto result = static_cast<loadgen::WriteResult>(answer.at("result").get<int>());
  if (result == loadgen::WriteResult::accepted) ++play_.accepted_writes_;
  play_.timeline().add(time_of(answer.at("answered_ns")), name_, std::string(describe(result)));
  if (result == loadgen::WriteResult::unknown || result == loadgen::WriteResult::failed) {
    throw Failure(name_ +
                  " could not write the counter, although no fault affects the counter's server");
  }
  return result;
}

void Actor::arm(CommandFault::Action action, CommandFault::Place place, int command) {
  call({{"do", "arm"},
        {"action", static_cast<int>(action)},
        {"place", static_cast<int>(place)},
        {"command", command}});
}

void Actor::shift_clock(Duration by) {
  call({{"do", "shift_clock"}, {"by_ns", nanoseconds(by)}});
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
