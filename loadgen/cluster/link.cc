#include "loadgen/cluster/link.h"

#include <cstdlib>
#include <future>

#include "strategies/number.h"

namespace lockbench::loadgen::cluster {
namespace {

constexpr Duration kBetweenSigns = std::chrono::seconds(1);
// Each look costs the clients on the same cores about 30 microseconds. While a rank awaits a
// message, its clients are idle.
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20),
                   kWhileAwaited = std::chrono::milliseconds(1);
// Bounds of messages not yet taken. Further ones are dropped; bodies that do not fit are left out.
constexpr std::size_t kMostArrived = 100'000, kMostArrivedBytes = 4 * kMostBytes;

std::optional<int> number_in(const char* name) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? std::nullopt : parse_number<int>(text);
}

}  // namespace

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
        self->heard_at_ =
            std::vector<std::atomic<TimePoint>>(static_cast<std::size_t>(self->size_));
        for (auto& heard_at : self->heard_at_) heard_at = self->now_();
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
  {
    const std::scoped_lock lock(mutex_);
    outgoing_.emplace_back(to, Message{rank_, kind, std::move(body)});
  }
  to_send_.notify_one();
}

void Link::send_to_others(Kind kind, const std::string& body) {
  for (int to = 0; to < size_; ++to) {
    if (to != rank_) send(to, kind, body);
  }
}

std::optional<Message> Link::next(TimePoint until, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  awaited_ = true;
  to_send_.notify_one();
  filled_.wait_until(lock, stop, until, [&] { return !arrived_.empty(); });
  awaited_ = false;
  if (arrived_.empty()) return std::nullopt;
  Message message = std::move(arrived_.front());
  arrived_.pop_front();
  arrived_bytes_ -= message.body.size();
  return message;
}

void Link::work(const std::stop_token& stop) {
  TimePoint next_sign = now_();
  while (!stop.stop_requested()) {
    flush();
    const bool more = take_all();
    if (const TimePoint now = now_(); now >= next_sign) {
      if (rank_ > 0) peers_->post(0, Kind::alive, {});
      for (int to = 1; rank_ == 0 && to < size_; ++to) peers_->post(to, Kind::alive, {});
      heard_at_[static_cast<std::size_t>(rank_)] = now;
      next_sign = now + kBetweenSigns;
    }
    if (more) continue;
    // Messages to send end this wait. Those that arrive do not, as MPI gives no signal.
    std::unique_lock lock(mutex_);
    const bool awaited = awaited_;
    to_send_.wait_for(lock, stop, awaited ? kWhileAwaited : kBetweenLooks,
                      [&] { return !outgoing_.empty() || awaited_ != awaited; });
  }
  flush();
  peers_->close(together_);
}

void Link::flush() {
  std::deque<std::pair<int, Message>> all;
  {
    const std::scoped_lock lock(mutex_);
    all.swap(outgoing_);
  }
  for (auto& [to, message] : all) peers_->post(to, message.kind, std::move(message.body));
}

bool Link::take_all() {
  // Bounded, so that a flood does not hold up sending.
  for (int i = 0; i < 256; ++i) {
    auto message = peers_->poll();
    if (!message) return false;
    take(*std::move(message));
  }
  return true;
}

void Link::take(Message message) {
  if (message.from < 0 || message.from >= size_) return;
  heard_at_[static_cast<std::size_t>(message.from)] = now_();
  if (message.kind == Kind::alive) return;
  if (message.kind == Kind::stop) {
    if (message.from == 0) stop_.request_stop();
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    if (arrived_.size() >= kMostArrived) return;
    if (arrived_bytes_ + message.body.size() > kMostArrivedBytes) message.body.clear();
    arrived_bytes_ += message.body.size();
    arrived_.push_back(std::move(message));
  }
  filled_.notify_one();
}

std::optional<Launched> launched() {
  // Slurm has the number of a step's tasks; only PMIx has the rank.
  for (const auto& [rank_name, size_name] :
       {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        std::pair("PMIX_RANK", "SLURM_STEP_NUM_TASKS")}) {
    const auto rank = number_in(rank_name), size = number_in(size_name);
    if (rank && size && *rank >= 0 && *rank < *size) return Launched{*rank, *size};
  }
  return std::nullopt;
}

}  // namespace lockbench::loadgen::cluster
