#include "strategies/redis/client/shared_link.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockbench::redis {
namespace {

// An idle connection is read again after this time; there is no other reason for a bound.
constexpr Duration kIdle = std::chrono::hours(1);

}  // namespace

SharedLink::SharedLink(Endpoint endpoint, const Timeouts& timeouts, Dial dial, std::stop_token over)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeouts_(timeouts),
      dial_(std::move(dial)),
      over_(std::move(over)),
      to_send_(Carrier::current().make_event()),
      to_read_(Carrier::current().make_event()) {
  start_fibers();
}

void SharedLink::start_fibers() {
  Carrier& carrier = Carrier::current();
  const auto failed = [this](const std::string& why) { fiber_failed(why); };
  // All links of a run are stopped at once, so that they end side by side.
  auto sender = carrier.start([this](const std::stop_token&) { send_queued(); }, failed);
  auto reader = carrier.start([this](const std::stop_token&) { read_answers(); }, failed);
  if (!sender || !reader) fiber_failed(!sender ? sender.error() : reader.error());
  if (sender) sender_ = *std::move(sender);
  if (reader) reader_ = *std::move(reader);
}

void SharedLink::fiber_failed(const std::string& why) {
  dead_ = why;
  break_connection(why);
  end_attempt();
}

void SharedLink::send(LinkUser& user, std::string_view bytes, std::size_t commands) {
  out_ += bytes;
  awaiting_.insert(awaiting_.end(), commands, &user);
  if (!dead_.empty()) return break_connection(dead_);
  to_send_->set();
}

std::uint64_t SharedLink::connect(LinkUser& user) {
  const std::uint64_t attempt = attempts_;
  if (!dead_.empty()) {
    ++attempts_;
    why_not_ = error(StoreError::Kind::not_sent, dead_);
    return attempt;
  }
  wanted_ = true;
  connecting_.push_back(&user);
  to_send_->set();
  return attempt;
}

void SharedLink::send_queued() {
  while (!over_.stop_requested()) {
    if (out_.empty() && !wanted_) {
      Carrier::current().wait(to_send_.get(), TimePoint::max(), over_);
      continue;
    }
    if (!live_) connect_now();
    wanted_ = false;
    if (!live_ || out_.empty()) continue;
    const std::shared_ptr<Live> live = live_;
    std::swap(out_, sending_);
    // From here on the server may have received the commands.
    sent_ = awaiting_.size();
    const Transport::Status status = live->transport->send(sending_, timeouts_);
    sending_.clear();
    if (status != Transport::Status::ok && live == live_) {
      break_connection(lockbench::describe(status, timeouts_));
    }
  }
}

void SharedLink::connect_now() {
  // Not what a stopped call has: this ends with the run.
  auto transport = dial_(endpoint_, timeouts_.answer, over_);
  ReplyReader reader;
  StoreResult<void> greeted;
  if (transport) {
    greeted = greet(endpoint_, **transport, reader, timeouts_, over_, nullptr);
  } else {
    greeted = tl::unexpected(error(StoreError::Kind::not_sent, transport.error()));
  }
  if (greeted) {
    live_ = std::make_shared<Live>(*std::move(transport), std::move(reader), over_);
    ++times_connected_;
    to_read_->set();
  } else {
    break_connection(greeted.error().message);
    why_not_ = greeted.error();
  }
  end_attempt();
}

void SharedLink::end_attempt() {
  ++attempts_;
  for (LinkUser* const user : std::exchange(connecting_, {})) user->attempt_over();
}

void SharedLink::read_answers() {
  std::array<char, 4096> buffer;
  while (!over_.stop_requested()) {
    const std::shared_ptr<Live> live = live_;
    if (!live) {
      Carrier::current().wait(to_read_.get(), TimePoint::max(), over_);
      continue;
    }
    hand_out(live);
    if (live != live_) continue;
    const auto [status, bytes] = live->transport->receive(buffer, kIdle, live->cut.get_token());
    if (live != live_ || status == Transport::Status::timed_out) continue;
    if (status != Transport::Status::ok) {
      break_connection(lockbench::describe(status, timeouts_, live->transport.get()));
      continue;
    }
    heard_at_ = Carrier::current().now();
    live->reader.feed({buffer.data(), bytes});
  }
  break_connection("the run is over");
}

void SharedLink::hand_out(const std::shared_ptr<Live>& live) {
  while (live == live_) {
    auto next = live->reader.next();
    if (!next) return break_connection(next.error());
    if (!*next) return;
    // It would be taken for the answer to the next command.
    if (sent_ == 0) return break_connection("an answer that nobody asked for");
    LinkUser* const user = awaiting_.front();
    awaiting_.pop_front();
    --sent_;
    StoreResult<Reply> reply = std::move(**next);
    if (reply->type == Reply::Type::error) {
      reply = tl::unexpected(error(StoreError::Kind::rejected, reply->text));
    }
    // A master that became a replica is not asked again; its sentinels are.
    const bool demoted = !reply && !endpoint_.sentinels.empty() && is_read_only(reply.error());
    const std::string why = demoted ? reply.error().message : std::string();
    if (user != nullptr) user->answered(std::move(reply), times_connected_);
    if (demoted) return break_connection(why);
  }
}

void SharedLink::break_connection(std::string_view why) {
  why_not_ = error(StoreError::Kind::not_sent, why);
  if (live_) {
    // After a stop alone, the reader would give answers under way time to arrive, and be deaf to
    // the next connection meanwhile.
    live_->transport->shut();
    live_->cut.request_stop();
  }
  live_.reset();
  out_.clear();
  const std::size_t sent = std::exchange(sent_, 0);
  const std::deque<LinkUser*> failed = std::exchange(awaiting_, {});
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i] == nullptr) continue;
    const auto kind = i < sent ? StoreError::Kind::unanswered : StoreError::Kind::not_sent;
    failed[i]->answered(tl::unexpected(error(kind, why)), times_connected_);
  }
}

void SharedLink::forget_oldest(const LinkUser& user) {
  const auto oldest = std::find(awaiting_.begin(), awaiting_.end(), &user);
  if (oldest != awaiting_.end()) *oldest = nullptr;
}

void SharedLink::leave(LinkUser& user) {
  LinkUser* const nobody = nullptr;
  std::replace(awaiting_.begin(), awaiting_.end(), &user, nobody);
  std::erase(connecting_, &user);
}

}  // namespace lockbench::redis
