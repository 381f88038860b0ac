#include "loadgen/cluster/link.h"

#include <sched.h>

#include <future>
#include <thread>

#include "loadgen/cluster/wire.h"

namespace lockbench::loadgen::cluster {
namespace {

// A burst of questions takes this long at most, so that it costs the load little.
constexpr Duration kBurst = std::chrono::milliseconds(4);
constexpr int kQuestions = 16;
constexpr Duration kBetweenBursts = std::chrono::seconds(1);
// At first, until the drift is known.
constexpr Duration kFirstBursts = std::chrono::milliseconds(50);
constexpr int kFirst = 20;
constexpr Duration kBetweenSigns = std::chrono::seconds(1);
// Each look costs the clients on the same cores some 30 microseconds.
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);
// A rank that asked will ask again at once.
constexpr Duration kAttention = std::chrono::microseconds(1500),
                   kPatience = std::chrono::microseconds(250);

struct Ping {
  std::int64_t question = 0;
};

struct Pong {
  std::int64_t question = 0;
  TimePoint root_time;  ///< as the answering rank knows it
  Duration bound{};
};

bool is_for_root(Kind kind) { return kind >= Kind::hello && kind <= Kind::record; }

}  // namespace

int parent_of(int rank) { return rank & (rank - 1); }

tl::expected<std::unique_ptr<Link>, std::string> Link::make(const Open& open, Now now) {
  std::unique_ptr<Link> link(new Link(std::move(now)));
  std::promise<std::string> opened;
  Link* const self = link.get();
  auto started = Thread::start(
      [self, &opened, open](const std::stop_token& stop) {
        auto peers = open();
        if (!peers) return opened.set_value(peers.error());
        self->peers_ = *std::move(peers);
        self->rank_ = self->peers_->rank();
        self->size_ = self->peers_->size();
        opened.set_value("");
        self->work(stop);
      },
      [](const std::string& /*why*/) {});
  if (!started) return tl::unexpected(started.error());
  link->thread_ = *std::move(started);
  if (const std::string why = opened.get_future().get(); !why.empty()) return tl::unexpected(why);
  return link;
}

Link::~Link() { close(false); }

void Link::close(bool together) {
  together_ = together;
  thread_ = Thread();
}

void Link::send(int to, Kind kind, std::string body) {
  if (to == rank_)
    return deliver(is_for_root(kind) ? root_ : member_, {rank_, kind, std::move(body)});
  {
    const std::scoped_lock lock(outgoing_mutex_);
    outgoing_.emplace_back(to, Message{rank_, kind, std::move(body)});
  }
  to_send_.notify_one();
}

void Link::send_to_all(Kind kind, const std::string& body) {
  for (int to = 0; to < size_; ++to) send(to, kind, body);
}

std::optional<Message> Link::for_root(TimePoint until, const std::stop_token& stop) {
  return next(root_, until, stop);
}

std::optional<Message> Link::for_member(TimePoint until, const std::stop_token& stop) {
  return next(member_, until, stop);
}

ClockModel Link::clock() const {
  const std::scoped_lock lock(clock_mutex_);
  return clock_;
}

void Link::deliver(Box& box, Message message) {
  {
    const std::scoped_lock lock(box.mutex);
    box.messages.push_back(std::move(message));
  }
  box.filled.notify_one();
}

std::optional<Message> Link::next(Box& box, TimePoint until, const std::stop_token& stop) {
  std::unique_lock lock(box.mutex);
  box.filled.wait_until(lock, stop, until, [&] { return !box.messages.empty(); });
  if (box.messages.empty()) return std::nullopt;
  Message message = std::move(box.messages.front());
  box.messages.pop_front();
  return message;
}

void Link::work(const std::stop_token& stop) {
  if (rank_ == 0) {
    const std::scoped_lock lock(clock_mutex_);
    clock_ = ClockModel::own();
  }
  // Not all at once: a parent answers one at a time.
  TimePoint next_burst = now_() + kFirstBursts * rank_ / size_;
  TimePoint next_sign = now_();
  root_heard_at_ = now_();
  for (int bursts = 0; !stop.stop_requested();) {
    flush();
    const bool busy = take_all();
    const TimePoint now = now_();
    if (rank_ == 0 && now >= next_sign) {
      root_heard_at_ = now;
      for (int to = 1; to < size_; ++to) peers_->post(to, Kind::alive, {});
      next_sign = now + kBetweenSigns;
    }
    if (rank_ > 0 && now >= next_burst) {
      ask_for_time();
      next_burst = now + (++bursts < kFirst ? kFirstBursts : kBetweenBursts);
    }
    if (now < attentive_until_) {
      sched_yield();
    } else if (!busy) {
      // MPI tells nobody that a message has come; what is to be sent does.
      std::unique_lock lock(outgoing_mutex_);
      to_send_.wait_for(lock, stop, kBetweenLooks, [this] { return !outgoing_.empty(); });
    }
  }
  flush();
  peers_->close(together_);
}

void Link::flush() {
  std::deque<std::pair<int, Message>> all;
  {
    const std::scoped_lock lock(outgoing_mutex_);
    all.swap(outgoing_);
  }
  for (auto& [to, message] : all) peers_->post(to, message.kind, std::move(message.body));
}

bool Link::take_all() {
  bool any = false;
  // Bounded, so that a flood does not keep what is to be sent.
  for (int i = 0; i < 256; ++i) {
    auto message = peers_->poll();
    if (!message) break;
    any = true;
    take(*std::move(message));
  }
  return any;
}

void Link::take(Message message) {
  if (message.from == 0) root_heard_at_ = now_();
  if (message.kind == Kind::alive) return;
  if (message.kind == Kind::ping) {
    Ping ping;
    if (!from_bytes(message.body, ping)) return;
    const TimePoint now = now_();
    const auto estimate = clock_.at(now);  // only this thread changes it
    peers_->post(message.from, Kind::pong,
                 to_bytes(Pong{ping.question, now + estimate.offset, estimate.bound}));
    attentive_until_ = now + kAttention;
    return;
  }
  if (message.kind == Kind::pong) {
    const TimePoint now = now_();
    Pong pong;
    if (!from_bytes(message.body, pong) || pong.question != question_) return;
    answer_ = pong.question;
    const std::scoped_lock lock(clock_mutex_);
    clock_.add(sample_of(asked_, pong.root_time, now, pong.bound));
    return;
  }
  deliver(is_for_root(message.kind) ? root_ : member_, std::move(message));
}

void Link::ask_for_time() {
  // The first question waits until the parent looks; then it is attentive.
  if (!ask_once(now_() + 3 * kBetweenLooks, true)) return;
  const TimePoint give_up_at = now_() + kBurst;
  for (int i = 0; i < kQuestions && now_() < give_up_at; ++i) {
    if (!ask_once(give_up_at, false)) return;
  }
}

bool Link::ask_once(TimePoint give_up_at, bool patient) {
  const std::string question = to_bytes(Ping{++question_});
  asked_ = now_();
  peers_->post(parent_of(rank_), Kind::ping, question);
  while (answer_ != question_) {
    if (now_() >= give_up_at) return false;
    if (auto message = peers_->poll()) {
      take(*std::move(message));
    } else if (patient) {
      std::this_thread::sleep_for(kPatience);
    } else {
      sched_yield();
    }
  }
  return true;
}

}  // namespace lockbench::loadgen::cluster
