
#include <limits>
#include <utility>

#include "strategies/zookeeper/client/session.h"

// A session's messages to and from the server. All under its mutex.
namespace lockbench::zookeeper {
namespace {

/// Bounds the changes that events() has not returned yet, as a server may send without end.
constexpr std::size_t kMostChanged = 100'000;

}  // namespace

void Session::welcome(Greeting greeting, TimePoint now) {
  const bool fresh = identity_.id == 0;
  const bool granted = greeting.timeout > Duration::zero();
  if (fresh && !granted) return link_.reject(now, "it refused to create a session");
  if (!fresh && (!granted || greeting.id != identity_.id)) return end(now, "session expired");
  identity_.id = greeting.id;
  identity_.password = std::move(greeting.password);
  timeout_ = greeting.timeout;
  next_xid_ = 1;
  heard_ = now;
  state_ = State::connected;
  confirm(link_.greeted_at());
  std::string first;
  if (!endpoint_.user.empty()) first = authenticate(endpoint_.user, endpoint_.password);
  // No watches for waiting clients: these have been woken.
  std::erase_if(watched_, [this](const std::string& path) {
    return std::ranges::none_of(bound_, [&](const Bound& bound) { return bound.path == path; });
  });
  if (!watched_.empty()) {
    first += set_watches(identity_.seen, endpoint_.path,
                         std::vector<std::string>(watched_.begin(), watched_.end()));
  }
  if (!first.empty() && !link_.packets().send(first)) return lose("the server closed it");
  take_packets(now);  // those after the greeting
}

void Session::take_packets(TimePoint now) {
  heard_ = now;
  while (state_ == State::connected) {
    const auto packet = link_.packets().next();
    if (!packet) return lose(packet.error());
    if (!*packet) return;
    if (const Wrong wrong = take(**packet, now)) return lose(*wrong);
  }
}

Session::Wrong Session::take(std::string_view packet, TimePoint now) {
  Reader from(packet);
  const auto header = read_header(from);
  if (!header) return header.error();
  identity_.seen = std::max(identity_.seen, header->transaction);
  switch (header->xid) {
    case Xid::kEvent: {
      const auto event = read_event(from, endpoint_.path);
      if (!event) return event.error();
      on_node(*event, now);
      if (changed_.size() > kMostChanged) return "events without end";
      return std::nullopt;
    }
    case Xid::kPing:
      if (!ping_ || ping_->end) return "it answered a ping that nobody sent";
      ping_->end = CommandEnd::answered;
      return confirm_in_time(ping_->sent_at, now);
    case Xid::kAuth:
      if (header->code != Code::ok) end(now, describe(header->code));
      return std::nullopt;
    case Xid::kSetWatches:
      if (header->code != Code::ok) return describe(header->code);
      return std::nullopt;
    default:
      return take_answer(*header, from, now);
  }
}

Session::Wrong Session::take_answer(const Header& header, Reader& from, TimePoint now) {
  if (pending_.empty() || pending_.front().xid != header.xid) {
    return "unexpected or out-of-order response";
  }
  const Pending pending = std::move(pending_.front());
  pending_.pop_front();
  Reply& answer = pending.batch->answers[pending.index];
  --pending.batch->left;
  answer.code = header.code;
  if (header.code == Code::ok) {
    auto reply = read_reply(pending.request, endpoint_.path, from);
    if (!reply) {
      answer.code = Code::connection_loss;
      pending.batch->why = reply.error();
      return reply.error();
    }
    answer = *std::move(reply);
    if (pending.request.kind == Request::Kind::look) watched_.insert(pending.request.path);
  }
  if (ends_session(header.code)) {
    end(now, describe(header.code));
    return std::nullopt;
  }
  if (header.code == Code::session_moved) return describe(header.code);
  return confirm_in_time(pending.batch->sent_at, now);
}

void Session::on_node(const NodeEvent& event, TimePoint now) {
  watched_.erase(event.path);
  if (reports_changes_) changed_.push_back(event.path);
  if (event.path == listened_to_) wake();
  if (!event.deleted) return;
  for (const Bound& bound : bound_) {
    if (bound.path == event.path) bound.state->mark_lost(now);
  }
  std::erase_if(bound_, [&](const Bound& bound) { return bound.path == event.path; });
}

void Session::send(std::span<const Request> requests, const std::shared_ptr<Batch>& batch) {
  // Reached by calls that were given up, on a server that answers only pings.
  constexpr std::size_t kMostPending = 100'000;
  std::string all;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::int32_t xid = next_xid_;
    next_xid_ = xid == std::numeric_limits<std::int32_t>::max() ? 1 : xid + 1;
    // Nobody takes them from a session with a keeper.
    reports_changes_ = reports_changes_ ||
                       (keeper_ == nullptr && (requests[i].kind == Request::Kind::watch_and_count ||
                                               requests[i].kind == Request::Kind::watch_exists));
    all += write(xid, requests[i], endpoint_.path, !endpoint_.user.empty());
    pending_.push_back({.xid = xid, .request = requests[i], .batch = batch, .index = i});
  }
  if (pending_.size() > kMostPending) return lose("the server does not answer requests");
  if (!link_.packets().send(all)) lose("the server closed it, or does not read");
}

bool Session::send_ping(TimePoint now) {
  if (state_ != State::connected || ping_) return false;
  ping_ = Ping{.sent_at = now};
  if (link_.packets().send(ping())) return true;
  // The next receive() will find the connection closed.
  ping_.reset();
  return false;
}

void Session::lose(std::string_view why) {
  link_.drop();
  state_ = State::connecting;
  why_lost_ = why;
  give_up_pending(why);
  wake();
}

void Session::give_up_pending(std::string_view why) {
  for (const Pending& pending : std::exchange(pending_, {})) {
    pending.batch->answers[pending.index].code = Code::connection_loss;
    pending.batch->why = why;
    --pending.batch->left;
  }
  if (ping_ && !ping_->end) ping_->end = CommandEnd::lost;
  keeper_watches_ = false;
}

void Session::end(TimePoint now, std::string_view why) {
  if (state_ != State::none) state_ = State::over;
  why_over_ = why;
  link_.drop();
  give_up_pending(why);
  for (const Bound& bound : bound_) bound.state->mark_lost(now);
  bound_.clear();
  watched_.clear();
  wake();
}

void Session::confirm(TimePoint sent_at) {
  // On the safe side: the server counts from the arrival of a request, which is later.
  if (sent_at <= contact_) return;
  contact_ = sent_at;
  silent_ = false;
  for (const Bound& bound : bound_) bound.state->extend(contact_ + timeout_, contact_);
}

Session::Wrong Session::confirm_in_time(TimePoint sent_at, TimePoint now) {
  if (is_stale(now)) return "its answer came too late to prove the session";
  confirm(sent_at);
  return std::nullopt;
}

bool Session::is_stale(TimePoint now) const { return now - contact_ >= timeout_ * 2 / 3; }

void Session::wake() {
  awaited_ = false;
  if (event_) event_->set();
}

void Session::watch_for_events() {
  const bool holds_watched = std::ranges::any_of(
      bound_, [this](const Bound& bound) { return watched_.contains(bound.path); });
  if (keeper_ == nullptr || !(awaited_ || holds_watched || state_ == State::connecting)) return;
  keeper_watches_ = link_.descriptor() >= 0;
  if (keeper_watches_) keeper_->watch(*this, link_.descriptor());
}

}  // namespace lockbench::zookeeper
