#include "strategies/zookeeper/client/session.h"

#include <bit>
#include <boost/scope_exit.hpp>
#include <utility>

// The keeper, and the calls of clients and of the keeper. For packets of the server see answers.cc.
namespace lockbench::zookeeper {
namespace {

/// Runs `work`; without the lock if it may wait.
template <class Work>
auto unlocked(std::unique_lock<std::mutex>& lock, Duration longest, Work work) {
  if (longest <= Duration::zero()) return work();
  lock.unlock();
  auto result = work();
  lock.lock();
  return result;
}

}  // namespace

/// Exists while the client itself talks to the server.
class Session::InCall {
 public:
  InCall(Session& session, Lock& lock) : session_(session), lock_(lock) {
    session_.in_call_ = true;
    if (std::exchange(session_.keeper_watches_, false)) {
      session_.keeper_->unwatch(session_.link_.descriptor());
    }
  }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall() {
    if (!lock_.owns_lock()) lock_.lock();
    session_.in_call_ = false;
  }

 private:
  Session& session_;
  Lock& lock_;
};

Session::Session(Endpoint endpoint, const Timeouts& timeouts, Env& env, SessionKeeper* keeper,
                 Connector connector)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeouts_(timeouts),
      env_(env),
      keeper_(keeper),
      link_(endpoint_, env, std::move(connector)) {}

void Session::close() {
  {
    Lock lock(mutex_);
    const InCall call(*this, lock);
    if (state_ == State::connected) end_at_server(lock);
    end(env_.now(), "it was closed");
  }
  // Without the mutex: the keeper may be waiting for it.
  if (keeper_ != nullptr) keeper_->remove(*this);
}

void Session::end_at_server(Lock& lock) {
  constexpr Duration kLongest = std::chrono::seconds(1);
  const auto batch = std::make_shared<Batch>(1, env_.now());
  const std::int32_t xid = next_xid_++;
  if (!link_.packets().send(end_session(xid))) return;
  // A removal, as its answer is empty too.
  pending_.push_back({.xid = xid, .request = {Request::Kind::remove, {}}, .batch = batch});
  const TimePoint give_up_at = env_.now() + std::min(timeouts_.answer, kLongest);
  while (!silent_ && state_ == State::connected && batch->left > 0 && env_.now() < give_up_at) {
    step_until(give_up_at, lock, {});
  }
}

bool Session::await(Lock& lock, const std::stop_token& stop, const std::function<bool()>& until) {
  TimePoint give_up_at = env_.now() + timeouts_.answer;
  bool stopped = false;
  while (!until()) {
    const TimePoint now = env_.now();
    if (!stopped && stop.stop_requested()) {
      stopped = true;
      give_up_at = std::min(give_up_at, now + timeouts_.after_stop * 2 / 5);
    }
    if (now >= give_up_at || link_.is_over()) {
      silent_ = true;
      return false;
    }
    // A stop already requested would end every wait immediately.
    step_until(give_up_at, lock, stopped ? std::stop_token() : stop);
  }
  return true;
}

void Session::step_until(TimePoint give_up_at, Lock& lock, const std::stop_token& stop) {
  const TimePoint now = env_.now();
  if (state_ != State::connected) {
    step(lock, env_, std::min(give_up_at - now, Packets::kPace));
    return;
  }
  const TimePoint silent_at = std::max(heard_ + timeout_ * 2 / 3, now + Packets::kPace);
  step(lock, env_, std::min(give_up_at, silent_at) - now, stop);
}

void Session::look(Lock& lock, Env& env) {
  // Bounded, as a server may send without end.
  constexpr int kMostSteps = 64;
  for (int i = 0; i < kMostSteps && step(lock, env, Duration::zero()); ++i) {
  }
}

bool Session::step(Lock& lock, Env& env, Duration longest, const std::stop_token& stop) {
  if (state_ == State::connecting) {
    // The server may have ended the session and been unable to report it.
    if (!bound_.empty() && env.now() >= contact_ + timeout_) {
      end(env.now(), "session expired");
      return false;
    }
    auto greeting =
        unlocked(lock, longest, [&] { return link_.advance(identity_, asked_ttl_, env, longest); });
    if (!greeting) return false;
    welcome(*std::move(greeting), env.now());
    return true;
  }
  if (state_ != State::connected) return false;
  const auto status =
      unlocked(lock, longest, [&] { return link_.packets().receive(longest, stop); });
  if (status == Transport::Status::ok) {
    take_packets(env.now());
    return true;
  }
  if (status == Transport::Status::closed) {
    lose(link_.packets().why_closed());
  } else if (env.now() - heard_ >= timeout_ * 2 / 3) {
    lose("the server was silent");
  }
  return false;
}

StoreResult<void> Session::connect(Duration ttl, const std::stop_token& stop) {
  {
    Lock lock(mutex_);
    const InCall call(*this, lock);
    // Without a keeper, only this notices that the server ended the session.
    if (keeper_ == nullptr) look(lock, env_);
    const bool goes_on = ttl == asked_ttl_ || !bound_.empty();
    if (goes_on && state_ == State::connected) return {};
    if (goes_on && state_ == State::connecting) {
      await(lock, stop, [this] { return state_ != State::connecting; });
      if (state_ == State::connected) return {};
      if (state_ == State::connecting) return not_connected(stop);
    }
  }
  auto opened = open(ttl, stop);
  if (!opened) close();
  return opened;
}

StoreResult<void> Session::open(Duration ttl, const std::stop_token& stop) {
  close();
  if (stop.stop_requested()) return fail(StoreError::Kind::not_sent, "stopped while connecting");
  {
    Lock lock(mutex_);
    const InCall call(*this, lock);
    state_ = State::connecting;
    ++number_;
    asked_ttl_ = ttl;
    identity_ = {};
    contact_ = {};
    silent_ = false;
    why_lost_.clear();
    // For each server's greeting; short, so that all servers are tried in time.
    constexpr Duration kLeastPatience = std::chrono::milliseconds(50);
    const Duration for_all = std::min(ttl * 2 / 3, timeouts_.answer);
    link_.begin(std::max(for_all / static_cast<int>(endpoint_.hosts.size()), kLeastPatience));
    await(lock, stop, [this] { return state_ != State::connecting || link_.is_hopeless(); });
    if (state_ != State::connected) {
      if (!link_.is_hopeless()) return not_connected(stop);
      return fail(StoreError::Kind::not_sent, "no ZooKeeper answers: " + link_.why());
    }
  }
  if (keeper_ != nullptr) {
    if (auto kept = keeper_->add(*this); !kept) {
      return fail(StoreError::Kind::not_sent, kept.error());
    }
  }
  if (endpoint_.path.empty()) return {};
  const Request root{Request::Kind::exists, "/"};
  auto replies = exchange({&root, 1}, stop, Refusal::fails);
  if (!replies) {
    replies.error().kind = StoreError::Kind::not_sent;
    return tl::unexpected(std::move(replies.error()));
  }
  if (replies->front().done()) return {};
  return fail(StoreError::Kind::not_sent, "there is no node " + endpoint_.path);
}

tl::unexpected<StoreError> Session::not_connected(const std::stop_token& stop) const {
  if (state_ != State::connecting) {
    return fail(StoreError::Kind::rejected, "the session has ended: " + why_over_);
  }
  if (stop.stop_requested()) return fail(StoreError::Kind::not_sent, "stopped while connecting");
  std::string why = "no connection within " + format_duration(timeouts_.answer);
  if (!link_.why().empty()) why += ": " + link_.why();
  return fail(StoreError::Kind::not_sent, why);
}

StoreResult<std::vector<Reply>> Session::exchange(std::span<const Request> requests,
                                                  const std::stop_token& stop, Refusal refusal) {
  Lock lock(mutex_);
  const InCall call(*this, lock);
  look(lock, env_);
  if (state_ == State::connected && is_stale(env_.now())) lose("no answer for too long");
  if (state_ == State::connecting) {
    await(lock, stop, [this] { return state_ != State::connecting; });
  }
  if (state_ != State::connected) return not_connected(stop);
  const auto batch = std::make_shared<Batch>(requests.size(), env_.now());
  send(requests, batch);
  if (!await(lock, stop, [&] { return batch->left == 0; })) {
    return fail(StoreError::Kind::unanswered,
                stop.stop_requested() ? "stopped while waiting for the answer"
                                      : "no answer within " + format_duration(timeouts_.answer));
  }
  return replies_of(*batch, refusal);
}

StoreResult<std::vector<Reply>> Session::replies_of(const Batch& batch, Refusal refusal) const {
  std::optional<StoreError> refused;
  for (const Reply& answer : batch.answers) {
    if (is_lost(answer.code)) {
      return fail(StoreError::Kind::unanswered, batch.why.empty()
                                                    ? describe(answer.code)
                                                    : "the connection was lost: " + batch.why);
    }
    if (is_usual(answer.code) || refused) continue;
    if (refusal == Refusal::is_an_answer && !ends_session(answer.code)) continue;
    // Earlier requests of the batch have taken effect.
    const bool first = &answer == &batch.answers.front();
    refused =
        fail(first ? StoreError::Kind::rejected : StoreError::Kind::unanswered,
             (ends_session(answer.code) ? "the session has ended: " : "") + describe(answer.code))
            .value();
  }
  if (refused) return tl::unexpected(*std::move(refused));
  return batch.answers;
}

StoreResult<std::vector<Reply>> Session::call(std::span<const Request> requests,
                                              std::string_view key, const std::stop_token& stop,
                                              Refusal refusal) {
  bool cut = false;
  for (const Request& request : requests) {
    cut |= env_.before_command(info_of(name_of(request.kind), key)) == CommandFate::drop;
  }
  StoreResult<std::vector<Reply>> answer =
      fail(StoreError::Kind::not_sent, "the connection was cut");
  if (!cut) answer = exchange(requests, stop, refusal);
  const bool answered = answer || answer.error().kind == StoreError::Kind::rejected;
  bool lost = false;
  for (const Request& request : requests) {
    const CommandFate fate = env_.after_command(info_of(name_of(request.kind), key),
                                                answered ? CommandEnd::answered : CommandEnd::lost);
    lost |= fate == CommandFate::drop;
  }
  if (answered && lost) return fail(StoreError::Kind::unanswered, "the answer was lost");
  return answer;
}

StoreResult<std::vector<std::string>> Session::events(Duration longest,
                                                      const std::stop_token& stop) {
  {
    Lock lock(mutex_);
    const InCall call(*this, lock);
    const TimePoint until = env_.now() + longest;
    for (TimePoint now = env_.now();
         changed_.empty() && state_ == State::connected && !stop.stop_requested() && now < until;
         now = env_.now()) {
      step(lock, env_, until - now, stop);
    }
  }
  keep(env_);
  const std::scoped_lock lock(mutex_);
  if (state_ == State::over) return fail(StoreError::Kind::unanswered, why_over_);
  if (!why_lost_.empty()) return fail(StoreError::Kind::unanswered, why_lost_);
  return std::exchange(changed_, {});
}

void Session::listen(std::string path) {
  std::shared_ptr<Event> event = env_.make_event();
  const std::scoped_lock lock(mutex_);
  listened_to_ = std::move(path);
  // Without a connection nothing would set it.
  if (state_ != State::connected) event->set();
  event_ = std::move(event);
}

WaitResult Session::wait(TimePoint deadline, const std::stop_token& stop) {
  std::shared_ptr<Event> event;
  {
    Lock lock(mutex_);
    look(lock, env_);
    event = event_;
    awaited_ = true;
    watch_for_events();
  }
  const WaitResult result = env_.wait(event.get(), deadline, stop);
  const std::scoped_lock lock(mutex_);
  awaited_ = false;
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
  watch_for_events();
  return lease;
}

Duration Session::keep(Env& env) {
  const CommandInfo info = info_of("ping", {});
  std::optional<CommandEnd> ended;
  bool due = false;
  Duration next{};
  {
    Lock lock(mutex_);
    if (!in_call_) look(lock, env);
    const TimePoint now = env.now();
    if (ping_ && ping_->end) ended = std::exchange(ping_, std::nullopt)->end;
    due = !ping_ && state_ == State::connected && now - contact_ >= timeout_ / 3 - tick();
    if (!in_call_) watch_for_events();
    next = tick();
  }
  if (ended) env.after_command(info, *ended);
  if (!due) return next;
  bool sent = false;
  if (env.before_command(info) == CommandFate::proceed) {
    const std::scoped_lock lock(mutex_);
    sent = send_ping(env.now());
  }
  if (!sent) env.after_command(info, CommandEnd::lost);
  return next;
}

Duration Session::tick() const {
  constexpr Duration kShortest = std::chrono::milliseconds(5);
  constexpr Duration kLongest = std::chrono::milliseconds(250);
  constexpr Duration kReconnecting = std::chrono::milliseconds(10);
  if (state_ == State::connecting) return kReconnecting;
  return state_ == State::connected ? std::clamp(timeout_ / 12, kShortest, kLongest) : kLongest;
}

tl::expected<void, std::string> SessionKeeper::add(Session& session) {
  const std::scoped_lock lock(mutex_);
  if (!poller_) {
    auto poller = dialer_.make_poller();
    if (!poller) return tl::unexpected(std::move(poller.error()));
    poller_ = *std::move(poller);
  }
  if (!task_) {
    auto started =
        Carrier::current().start([this](const std::stop_token& stop) { keep(stop); },
                                 [this](const std::string& why) {
                                   env_->report("ZooKeeper sessions are not kept: " + why);
                                 });
    if (!started) return tl::unexpected(std::move(started.error()));
    task_ = *std::move(started);
  }
  schedule(session, env_->now());
  poller_->wake();
  return {};
}

void SessionKeeper::remove(Session& session) {
  constexpr Duration kPause = std::chrono::milliseconds(1);
  std::unique_lock lock(mutex_);
  if (const auto due = due_.find(&session); due != due_.end()) {
    by_time_.erase(due->second);
    due_.erase(due);
  }
  // Bounded: only a fault in the hooks of its Env can stall the keeper there.
  while (attended_ == &session) {
    lock.unlock();
    Carrier::current().wait(nullptr, Carrier::current().now() + kPause, {});
    lock.lock();
  }
}

void SessionKeeper::watch(Session& session, int descriptor) {
  poller_->watch(descriptor, std::bit_cast<std::uintptr_t>(&session));
}

void SessionKeeper::schedule(Session& session, TimePoint at) {
  const auto place = by_time_.emplace(at, &session);
  const auto [due, added] = due_.try_emplace(&session, place);
  if (!added) by_time_.erase(std::exchange(due->second, place));
}

void SessionKeeper::keep(const std::stop_token& stop) {
  // Attends sessions in batches: of thousands, one is always about to be due.
  constexpr Duration kShortest = std::chrono::milliseconds(1);
  const std::stop_callback on_stop(stop, [this]() noexcept { poller_->wake(); });
  Duration longest{};
  while (!stop.stop_requested()) {
    const auto ready = poller_->wait(longest);
    std::unique_lock lock(mutex_);
    for (const std::uint64_t tag : ready) {
      attend(std::bit_cast<Session*>(static_cast<std::uintptr_t>(tag)), lock);
    }
    // Sessions come and go while one is attended. The loop ends, as an attended one is due later.
    const TimePoint now = env_->now();
    while (!by_time_.empty() && by_time_.begin()->first <= now) {
      attend(by_time_.begin()->second, lock);
    }
    longest = by_time_.empty() ? Duration::max()
                               : std::max(by_time_.begin()->first - env_->now(), kShortest);
  }
}

void SessionKeeper::attend(Session* session, std::unique_lock<std::mutex>& lock) {
  // It may have been removed meanwhile.
  if (!due_.contains(session)) return;
  Duration next{};
  {
    attended_ = session;
    lock.unlock();
    BOOST_SCOPE_EXIT_ALL(&) {
      lock.lock();
      attended_ = nullptr;
    };
    next = session->keep(*env_);
    // A busy keeper must let the clients on its thread run.
    Carrier::current().yield();
  }
  if (due_.contains(session)) schedule(*session, env_->now() + next);
}

}  // namespace lockbench::zookeeper
