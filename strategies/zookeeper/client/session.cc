#include "strategies/zookeeper/client/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/zookeeper/client/keeper.h"

namespace lockbench::zookeeper {
namespace {

/// After a stop: what an answer that is on its way may still take, and what giving up may. Together
/// less than 100 ms.
constexpr Duration kGrace = std::chrono::milliseconds(40);

}  // namespace

Session::Session(Endpoint endpoint, Duration command_timeout, Env& env, std::unique_ptr<Env> clock,
                 SessionKeeper* keeper)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      command_timeout_(command_timeout),
      env_(env),
      clock_(std::move(clock)),
      keeper_(keeper) {}

void Session::close() {
  std::shared_ptr<Connection> ending;
  bool silent = false;
  {
    const std::scoped_lock lock(mutex_);
    ending = std::move(connection_);
    silent = silent_ && state_ == State::connected;
    end_locked(env_.now());
  }
  if (!ending) return;
  if (keeper_ != nullptr) keeper_->remove(*this);
  // The library waits for the server's answer for more than a second.
  if (silent && keeper_ != nullptr) {
    keeper_->bury(
        [self = shared_from_this(), ending = std::move(ending)]() mutable { ending.reset(); });
  }
  // Not under the mutex: what was not answered yet is called back now.
  ending.reset();
}

tl::unexpected<StoreError> Session::fail(StoreError::Kind kind, std::string_view why) const {
  return tl::unexpected(StoreError{kind, fmt::format("{}: {}", display_, why)});
}

bool Session::await(std::unique_lock<std::mutex>& lock, const std::stop_token& stop,
                    const std::function<bool()>& until) {
  const TimePoint give_up_at = env_.now() + command_timeout_;
  if (changed_.wait_until(lock, stop, give_up_at, until)) return true;
  if (stop.stop_requested() &&
      changed_.wait_until(lock, std::min(give_up_at, env_.now() + kGrace), until)) {
    return true;
  }
  silent_ = true;
  return false;
}

StoreResult<void> Session::connect(Duration ttl, const std::stop_token& stop) {
  bool goes_on = false;
  {
    const std::scoped_lock lock(mutex_);
    goes_on = ttl == asked_ttl_ || !bound_.empty();
    if (goes_on && state_ == State::connected) return {};
    goes_on = goes_on && state_ == State::connecting;
  }
  if (goes_on) {
    auto back = await_reconnection(stop);
    if (back || !is_over(number())) return back;
  }
  auto opened = open(ttl, stop);
  if (!opened) close();
  return opened;
}

StoreResult<void> Session::await_reconnection(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  await(lock, stop, [this] { return state_ != State::connecting; });
  if (state_ == State::connected) return {};
  if (state_ != State::connecting) return fail(StoreError::Kind::rejected, "the session has ended");
  return fail(StoreError::Kind::not_sent,
              stop.stop_requested() ? "stopped while connecting"
                                    : "no connection within " + format_duration(command_timeout_));
}

StoreResult<std::vector<Reply>> Session::call(std::span<const Request> requests,
                                              std::string_view key, const std::stop_token& stop) {
  bool cut = false;
  for (const Request& request : requests) {
    cut |= env_.before_command(told(request, key)) == CommandFate::drop;
  }
  StoreResult<std::vector<Reply>> answer =
      fail(StoreError::Kind::not_sent, "the connection was cut");
  if (!cut) answer = exchange(requests, stop);
  const bool answered = answer || answer.error().kind == StoreError::Kind::rejected;
  bool lost = false;
  for (const Request& request : requests) {
    const CommandFate fate =
        env_.after_command(told(request, key), answered ? CommandEnd::answered : CommandEnd::lost);
    lost |= fate == CommandFate::drop;
  }
  if (answered && lost) return fail(StoreError::Kind::unanswered, "the answer was lost");
  return answer;
}

CommandInfo Session::told(const Request& request, std::string_view key) const {
  return {.store = "zookeeper", .endpoint = display_, .name = name_of(request.kind), .key = key};
}

void Session::listen(std::string path) {
  std::shared_ptr<Event> event = env_.make_event();
  const std::scoped_lock lock(mutex_);
  listened_to_ = std::move(path);
  // Else nothing would set it any more.
  if (state_ != State::connected) event->set();
  event_ = std::move(event);
}

WaitResult Session::wait(TimePoint deadline, const std::stop_token& stop) {
  std::shared_ptr<Event> event;
  {
    const std::scoped_lock lock(mutex_);
    event = event_;
  }
  const WaitResult result = env_.wait(event.get(), deadline, stop);
  const std::scoped_lock lock(mutex_);
  event_.reset();
  listened_to_.clear();
  return result;
}

std::shared_ptr<LeaseState> Session::bind(std::string path) {
  const std::scoped_lock lock(mutex_);
  const bool alive = state_ == State::connected || state_ == State::connecting;
  if (!alive || env_.now() >= contact_ + timeout_) return nullptr;
  auto lease = std::make_shared<LeaseState>(contact_ + timeout_, contact_);
  bound_.push_back({std::move(path), lease});
  return lease;
}

bool Session::unbind(const std::shared_ptr<LeaseState>& lease) {
  const std::scoped_lock lock(mutex_);
  return std::erase_if(bound_, [&](const Bound& bound) { return bound.state == lease; }) > 0;
}

bool Session::is_bound(std::string_view path) const {
  const std::scoped_lock lock(mutex_);
  return std::any_of(bound_.begin(), bound_.end(),
                     [&](const Bound& bound) { return bound.path == path; });
}

bool Session::has_leases() const {
  const std::scoped_lock lock(mutex_);
  return !bound_.empty();
}

bool Session::connected() const {
  const std::scoped_lock lock(mutex_);
  return state_ == State::connected;
}

bool Session::is_over(std::uint64_t number) const {
  const std::scoped_lock lock(mutex_);
  return number != number_ || state_ == State::over || state_ == State::none;
}

std::uint64_t Session::number() const {
  const std::scoped_lock lock(mutex_);
  return number_;
}

std::int64_t Session::id() const {
  const std::scoped_lock lock(mutex_);
  return id_;
}

void Session::end_locked(TimePoint now) {
  if (state_ != State::none) state_ = State::over;
  for (const Bound& bound : bound_) bound.state->mark_lost(now);
  bound_.clear();
  wake_locked();
}

void Session::confirm_locked(TimePoint sent_at) {
  // The server counts from when a request reached it, which is later.
  if (sent_at <= contact_) return;
  contact_ = sent_at;
  silent_ = false;
  for (const Bound& bound : bound_) bound.state->extend(contact_ + timeout_, contact_);
}

void Session::wake_locked() {
  if (event_) event_->set();
}

}  // namespace lockbench::zookeeper
