#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hazards/play.h"
#include "hazards/words.h"

namespace lockbench::hazards {
namespace {

using Json = nlohmann::json;

/// For an answer that needs nothing but the store's.
constexpr std::chrono::seconds kSoon{10};
constexpr std::chrono::seconds kCommandTimeout{2};

std::int64_t nanoseconds(Duration duration) { return duration.count(); }
TimePoint time_of(const Json& value) { return TimePoint(Duration(value.get<std::int64_t>())); }
std::optional<TimePoint> time_if_any(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(time_of(value));
}

}  // namespace

Actor::Actor(Play& play, std::string name, const ActorSettings& settings)
    : play_(play), name_(std::move(name)), process_(play.house_.client_program()) {
  std::vector<std::uint16_t> ports;
  if (settings.behind_line) ports = play_.stage().ports();
  for (std::uint16_t& port : ports) {
    lines_.push_back(play_.house_.line_to(port));
    port = lines_.back()->port();
  }
  const Endpoints found =
      ports.empty() ? play_.stage().endpoints() : play_.stage().endpoints_through(ports);
  Json endpoints = Json::object();
  for (const auto& [backend, urls] : found) endpoints[backend] = urls;
  call({{"strategy", play_.strategy_.name},
        {"endpoints", endpoints},
        {"counter", play_.house_.counter_url()},
        {"checks_fencing", settings.checks_fencing},
        {"client", settings.number},
        {"renew", settings.renews},
        {"renew_cap_ns",
         settings.renew_cap ? Json(nanoseconds(*settings.renew_cap)) : Json(nullptr)},
        {"wait", settings.wait.empty() ? Json(nullptr) : Json(settings.wait)},
        {"node_timeout_ns",
         settings.node_timeout ? Json(nanoseconds(*settings.node_timeout)) : Json(nullptr)},
        {"wait_replicas", settings.wait_replicas ? Json(*settings.wait_replicas) : Json(nullptr)},
        {"command_timeout_ns", nanoseconds(kCommandTimeout)}});
}

std::optional<Json> Actor::hear(Duration within) {
  auto message = process_.receive(within);
  if (message && message->contains("error")) {
    throw StageFailure(name_ + ": " + message->at("error").get<std::string>());
  }
  return message;
}

Json Actor::receive(Duration within) {
  auto message = hear(within);
  if (!message) throw StageFailure(name_ + " does not answer");
  return *std::move(message);
}

Json Actor::call(const Json& request) {
  process_.send(request);
  Json answer = receive(kSoon);
  while (answer.contains("event")) answer = receive(kSoon);
  return answer;
}

void Actor::rehearse() {
  // The first time much is done that is done once.
  for (int round = 0; round < 2; ++round) {
    Json request = acquire_request(kSoon);
    request["key"] = play_.key() + ":rehearsal";
    const Json got = call(request);
    if (got.at("outcome") != static_cast<int>(AcquireOutcome::acquired)) {
      throw StageFailure(name_ + " cannot rehearse: " + got.at("reason").get<std::string>());
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

void Actor::ask(Duration wait) {
  wait_ = wait;
  play_.timeline().add_now(name_, "asks for the lock");
  process_.send(acquire_request(wait));
}

void Actor::ask_and_release(Duration wait, TimePoint at) {
  wait_ = wait;
  Json request = acquire_request(wait);
  request["at_ns"] = at.time_since_epoch().count();
  request["release_at_once"] = true;
  play_.timeline().add(at, name_, "asks for the lock");
  process_.send(request);
}

void Actor::await_waiting() {
  const Json event = receive(kSoon);
  if (!event.contains("event")) throw StageFailure(name_ + " was to wait, and need not");
  play_.timeline().add_now(name_, "finds the lock taken, and waits");
}

Grant Actor::answer() {
  Json answer = receive(wait_ + kSoon);
  if (answer.contains("event")) answer = receive(wait_ + kSoon);
  return to_grant(answer);
}

std::optional<Grant> Actor::answer_until(TimePoint deadline) {
  while (const auto message = hear(deadline - std::chrono::steady_clock::now())) {
    if (!message->contains("event")) return to_grant(*message);
  }
  return std::nullopt;
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
  std::string text(words(grant.outcome));
  if (grant.granted()) {
    grant.lease = answer.at("lease").get<int>();
    grant.valid_until = time_if_any(answer.at("valid_until_ns"));
    const Json& fencing = answer.at("fencing");
    if (!fencing.is_null()) grant.fencing = fencing.get<std::uint64_t>();
    if (grant.valid_until) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*grant.valid_until - grant.answered_at);
      text += fmt::format(", and believes in it for {} ms", left.count());
      // Some stores have a shortest lease of their own.
      if (left > play_.ttl_ * 3 / 2) play_.ttl_ = left;
    }
    if (grant.fencing) text += fmt::format(", with fencing number {}", *grant.fencing);
  } else if (!grant.reason.empty()) {
    text += ": " + grant.reason;
  }
  play_.timeline().add(grant.answered_at, name_, text);
  return grant;
}

Grant Actor::acquire(Duration wait) {
  ask(wait);
  return answer();
}

Grant Actor::hold() {
  Grant grant = acquire(std::chrono::seconds(5));
  if (!grant.granted()) {
    throw StageFailure(fmt::format("{} was to get the lock, and {}", name_, words(grant.outcome)));
  }
  return grant;
}

ReleaseOutcome Actor::to_release(const Json& answer) {
  const auto outcome = static_cast<ReleaseOutcome>(answer.at("outcome").get<int>());
  play_.timeline().add(time_of(answer.at("answered_ns")), name_, std::string(words(outcome)));
  return outcome;
}

void Actor::begin_release(const Grant& grant) {
  play_.timeline().add_now(name_, "begins to release");
  process_.send({{"do", "release"}, {"lease", grant.lease}});
}

ReleaseOutcome Actor::end_release() { return to_release(receive(kSoon)); }

ReleaseOutcome Actor::release(const Grant& grant) {
  return to_release(call({{"do", "release"}, {"lease", grant.lease}}));
}

RenewOutcome Actor::renew(const Grant& grant, Duration ttl) {
  const Json answer = call({{"do", "renew"}, {"lease", grant.lease}, {"ttl_ns", nanoseconds(ttl)}});
  const auto outcome = static_cast<RenewOutcome>(answer.at("outcome").get<int>());
  play_.timeline().add(time_of(answer.at("answered_ns")), name_, std::string(words(outcome)));
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
      belief.valid ? "believes that it holds the lock" : "knows that it no longer holds the lock");
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
  play_.timeline().add(time_of(answer.at("answered_ns")), name_, std::string(words(result)));
  if (result == loadgen::WriteResult::unknown || result == loadgen::WriteResult::failed) {
    throw StageFailure(name_ + " could not write the counter, which no fault touches");
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
  play_.tell(fmt::format("the clock of {} is now {} {}", name_,
                         format_duration(by < Duration::zero() ? -by : by),
                         by < Duration::zero() ? "behind" : "ahead"));
}

void Actor::kill() {
  process_.kill();
  play_.tell(name_ + " is killed");
}

void Actor::stop() {
  process_.stop();
  play_.tell(name_ + " is stopped");
}

void Actor::resume() {
  play_.tell(name_ + " goes on");
  process_.resume();
}

void Actor::await_death() {
  process_.await_death(kSoon);
  play_.tell(name_ + " dies");
}

void Actor::await_stop() {
  process_.await_stop(kSoon);
  play_.tell(name_ + " stands still");
}

}  // namespace lockbench::hazards
