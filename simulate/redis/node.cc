#include "simulate/redis/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulate/redis/replies.h"
#include "strategies/number.h"

namespace lockbench::simulate {
namespace {

constexpr int kPort = 6379;
constexpr Duration kSync = std::chrono::seconds(1);  // appendfsync everysec

template <class T>
void forget(std::vector<T>& all, const T& one) {
  std::erase(all, one);
}

}  // namespace

// A connection's client end.

void Wire::deliver(std::vector<Reply> replies) {
  if (state == State::broken) return;
  for (Reply& reply : replies) arrived.push_back(std::move(reply));
  wake();
}

void Wire::opened() {
  if (state == State::connecting) state = State::open;
  wake();
}

void Wire::broke(std::string reason) {
  if (state == State::broken) return;
  state = State::broken;
  why = std::move(reason);
  wake();
}

void Wire::close() {
  if (state == State::broken) return;
  broke("closed");
  node.network().send(*this, Way::to_server, host.resumes(host.world().now()),
                      [self = shared_from_this()] { self->node.closed(self); });
}

// The server.

RedisNode::RedisNode(World& world, Network& network, int its_number, int its_region,
                     RedisSettings settings)
    : number(its_number),
      region(its_region),
      address(fmt::format("redis-{}:{}", its_number, kPort)),
      world_(world),
      network_(network),
      settings_(std::move(settings)),
      replicas_(static_cast<std::size_t>(settings_.replicas)) {
  begin_data();
}

void RedisNode::begin_data() {
  data_.publish = [this](std::string_view channel, std::string_view message) {
    return publish(channel, message);
  };
  const bool keeps_disk = settings_.may_die && settings_.persistence == Persistence::everysec;
  if (keeps_disk || !replicas_.empty()) {
    data_.on_write = [this](RedisModel::Write write) { record(std::move(write)); };
  }
  data_.limit_memory(settings_.memory, settings_.eviction, [this] { return world_.random()(); });
}

void RedisNode::accept(const std::shared_ptr<Wire>& wire) {
  if (!alive_) {
    network_.send(*wire, Way::to_client, world_.now(),
                  [wire] { wire->broke("connection refused"); });
    return;
  }
  // The kernel of a frozen server's machine accepts.
  wire->accepted = true;
  wires_.push_back(wire);
  network_.send(*wire, Way::to_client, world_.now(), [wire] { wire->opened(); });
}

void RedisNode::arrive(const std::shared_ptr<Wire>& wire, std::vector<CommandWords> commands) {
  if (!wire->accepted) {
    // Its process is gone.
    network_.send(*wire, Way::to_client, world_.now(),
                  [wire] { wire->broke("the connection was closed"); });
    return;
  }
  const bool idle = wire->inbox.empty() && wire->blocked == 0;
  for (CommandWords& command : commands) wire->inbox.push_back(std::move(command));
  if (idle) schedule(wire);
}

void RedisNode::closed(const std::shared_ptr<Wire>& wire) {
  if (!wire->accepted) return;
  wire->accepted = false;
  wire->blocked = 0;
  forget(wires_, wire);
  forget(waiting_, wire);
  leave_lists(wire);
  for (const std::string& channel : wire->channels) forget(subscribers_[channel], wire);
}

void RedisNode::schedule(const std::shared_ptr<Wire>& wire) {
  if (!frozen_ && busy_until_ <= world_.now() && ready_.empty()) return work(wire);
  ready_.push_back(wire);
  if (ready_.size() == 1) await_turn();
}

/// Of the next connection that is ready; thaw() calls it for a frozen server.
void RedisNode::await_turn() {
  if (frozen_ || ready_.empty()) return;
  world_.at(busy_until_, [this, life = life_] {
    if (life != life_ || frozen_ || ready_.empty()) return;
    const std::shared_ptr<Wire> wire = std::move(ready_.front());
    ready_.pop_front();
    work(wire);
    await_turn();
  });
}

/// Executes what the connection has sent, and answers when that is done.
void RedisNode::work(const std::shared_ptr<Wire>& wire) {
  if (!wire->accepted) return;
  std::vector<Reply> replies;
  busy_until_ = std::max(busy_until_, world_.now());
  while (!wire->inbox.empty() && wire->blocked == 0) {
    const CommandWords command = std::move(wire->inbox.front());
    wire->inbox.pop_front();
    command.read(words_);
    if (world_.traced()) {
      const bool has_key = words_.size() > 1 && !equal_words(words_[0], "EVAL");
      world_.trace(
          "redis", number,
          fmt::format(
              "executes {} {} of client-{}", words_[0],
              has_key ? words_[words_.size() > 3 && equal_words(words_[0], "EVALSHA") ? 3 : 1] : "",
              wire->host.number));
    }
    const std::int64_t before = offset_;
    busy_until_ += settings_.per_command * (equal_words(words_[0], "EVALSHA") ? 2 : 1);
    if (auto reply = execute(wire, words_)) replies.push_back(*std::move(reply));
    if (offset_ != before) wire->write_offset = offset_;
    serve_blocked();
  }
  replicate();
  if (!replies.empty()) send(wire, std::move(replies));
}

std::optional<Reply> RedisNode::execute(const std::shared_ptr<Wire>& wire, Words words) {
  const std::string_view name = words[0];
  const bool subscribes = equal_words(name, "SUBSCRIBE");
  if ((subscribes || equal_words(name, "UNSUBSCRIBE")) && words.size() == 2) {
    std::string channel(words[1]);
    auto& subscribers = subscribers_[channel];
    if (subscribes) {
      if (wire->channels.insert(channel).second) subscribers.push_back(wire);
    } else if (wire->channels.erase(channel) > 0) {
      forget(subscribers, wire);
    }
    return Reply{.type = Reply::Type::array,
                 .elements = {text(subscribes ? "subscribe" : "unsubscribe"), text(words[1]),
                              integer(static_cast<std::int64_t>(wire->channels.size()))}};
  }
  if (equal_words(name, "WAIT") && words.size() == 3 && !wire->session.in_transaction) {
    return wait_for_replicas(wire, words);
  }
  const bool may_wait = equal_words(name, "BLPOP") && !wire->session.in_transaction;
  Reply reply = data_.execute(wire->session, words, wall_now());
  if (!may_wait || !reply.is_nil()) return reply;
  for (const std::string_view key : words.subspan(1, words.size() - 2)) {
    ListName list(wire->session.database, key);
    blocked_[list].push_back(wire);
    wire->lists.push_back(std::move(list));
  }
  wire->inbox.emplace_front(words);  // to be executed again
  const double timeout = parse_number<double>(words.back()).value_or(0);
  block(wire, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout)));
  return std::nullopt;
}

void RedisNode::block(const std::shared_ptr<Wire>& wire, Duration longest) {
  wire->blocked = ++waits_;
  if (longest <= Duration::zero()) return;  // for ever
  world_.at(world_.now() + longest, [this, wire, wait = wire->blocked] {
    if (wire->blocked != wait || !wire->accepted) return;
    const bool for_replicas = wire->wanted_replicas > 0;
    if (!for_replicas) wire->inbox.pop_front();
    answer(wire, for_replicas ? integer(acknowledged(wire->write_offset)) : Reply());
  });
}

/// The answer to a command that has waited.
void RedisNode::answer(const std::shared_ptr<Wire>& wire, Reply reply) {
  wire->blocked = 0;
  wire->wanted_replicas = 0;
  forget(waiting_, wire);
  leave_lists(wire);
  std::vector<Reply> replies;
  replies.push_back(std::move(reply));
  send(wire, std::move(replies));
  if (!wire->inbox.empty()) schedule(wire);
}

void RedisNode::send(const std::shared_ptr<Wire>& wire, std::vector<Reply> replies) {
  network_.send(
      *wire, Way::to_client, std::max(busy_until_, world_.now()),
      [wire, replies = std::move(replies)]() mutable { wire->deliver(std::move(replies)); });
}

/// Those that wait for a list that has grown, the longest first.
void RedisNode::serve_blocked() {
  for (const ListName& list : data_.take_grown()) {
    const auto found = blocked_.find(list);
    if (found == blocked_.end()) continue;
    const std::deque<std::shared_ptr<Wire>> waiting = found->second;
    for (const auto& wire : waiting) {
      const CommandWords command = wire->inbox.front();
      std::vector<std::string_view> words;
      command.read(words);
      Reply reply = data_.execute(wire->session, words, wall_now());
      if (reply.is_nil()) break;
      wire->inbox.pop_front();
      answer(wire, std::move(reply));
    }
  }
}

void RedisNode::leave_lists(const std::shared_ptr<Wire>& wire) {
  for (const ListName& list : std::exchange(wire->lists, {})) {
    const auto found = blocked_.find(list);
    if (found == blocked_.end()) continue;
    std::erase(found->second, wire);
    if (found->second.empty()) blocked_.erase(found);
  }
}

std::int64_t RedisNode::publish(std::string_view channel, std::string_view message) {
  const auto found = subscribers_.find(channel);
  if (found == subscribers_.end()) return 0;
  for (const auto& wire : found->second) {
    send(wire, {Reply{.type = Reply::Type::array,
                      .elements = {text("message"), text(channel), text(message)}}});
  }
  return static_cast<std::int64_t>(found->second.size());
}

// Replicas and the disk.

void RedisNode::record(RedisModel::Write write) {
  ++offset_;
  if (settings_.may_die && settings_.persistence == Persistence::everysec) {
    sync_disk();
    unsynced_.emplace_back(world_.now(), write);
  }
  if (!replicas_.empty()) unsent_.push_back(std::move(write));
}

void RedisNode::replicate() {
  if (unsent_.empty()) return;
  const auto writes = std::make_shared<const std::vector<RedisModel::Write>>(std::move(unsent_));
  unsent_.clear();
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    TimePoint& last = replicas_[i].last_arrival;
    const Duration lag = settings_.lag.draw(world_.random());
    last = std::max(last, busy_until_ + network_.draw(region, region) + lag);
    world_.at(last, [this, writes, i, offset = offset_, life = life_] {
      if (life != life_) return;
      for (const RedisModel::Write& write : *writes) replicas_[i].data.apply(write);
      replicas_[i].received = offset;
      world_.at(world_.now() + network_.draw(region, region), [this, i, offset, life] {
        if (life == life_) acknowledge(i, offset);
      });
    });
  }
}

int RedisNode::acknowledged(std::int64_t offset) const {
  return static_cast<int>(std::ranges::count_if(
      replicas_, [&](const Replica& replica) { return replica.acknowledged >= offset; }));
}

void RedisNode::acknowledge(std::size_t replica, std::int64_t offset) {
  replicas_[replica].acknowledged = std::max(replicas_[replica].acknowledged, offset);
  const std::vector<std::shared_ptr<Wire>> waiting = waiting_;
  for (const auto& wire : waiting) {
    const int enough = acknowledged(wire->write_offset);
    if (enough >= wire->wanted_replicas) answer(wire, integer(enough));
  }
}

std::optional<Reply> RedisNode::wait_for_replicas(const std::shared_ptr<Wire>& wire, Words words) {
  const auto wanted = parse_number<int>(words[1]), timeout = parse_number<int>(words[2]);
  if (!wanted || !timeout || *timeout < 0) {
    return Reply{.type = Reply::Type::error, .text = "ERR value is not an integer or out of range"};
  }
  const int have = acknowledged(wire->write_offset);
  if (have >= *wanted) return integer(have);
  wire->wanted_replicas = *wanted;
  waiting_.push_back(wire);
  block(wire, std::chrono::milliseconds(*timeout));
  return std::nullopt;
}

void RedisNode::sync_disk() {
  const auto since = world_.now().time_since_epoch();
  const TimePoint synced(since - since % kSync);
  std::size_t on_disk = 0;
  for (; on_disk < unsynced_.size() && unsynced_[on_disk].first < synced; ++on_disk) {
    disk_.apply(unsynced_[on_disk].second);
  }
  unsynced_.erase(unsynced_.begin(), unsynced_.begin() + static_cast<std::ptrdiff_t>(on_disk));
}

// Faults.

void RedisNode::break_all(const std::string& why) {
  ++life_;
  for (const auto& wire : wires_) {
    wire->accepted = false;
    wire->blocked = 0;
    network_.send(*wire, Way::to_client, world_.now(), [wire, why] { wire->broke(why); });
  }
  wires_.clear();
  ready_.clear();
  blocked_.clear();
  waiting_.clear();
  subscribers_.clear();
  unsent_.clear();
}

void RedisNode::kill() {
  alive_ = false;
  frozen_ = false;
  break_all("the connection was closed");
}

void RedisNode::restart() {
  if (alive_) return;
  alive_ = true;
  if (settings_.persistence == Persistence::everysec) {
    sync_disk();
    unsynced_.clear();
    data_.copy_from(disk_);
  } else if (settings_.persistence == Persistence::none) {
    data_.copy_from(RedisModel());
  }
  data_.forget_scripts();
  // Its replicas take over what it has.
  for (Replica& replica : replicas_) {
    replica.data.copy_from(data_);
    replica.received = replica.acknowledged = offset_;
  }
}

void RedisNode::thaw() {
  if (!std::exchange(frozen_, false)) return;
  await_turn();
}

bool RedisNode::fail_over() {
  if (replicas_.empty()) return false;
  const auto best = std::ranges::max_element(replicas_, {}, &Replica::received);
  break_all("the connection was closed");
  alive_ = true;
  frozen_ = false;
  data_.copy_from(best->data);
  data_.forget_scripts();
  for (Replica& replica : replicas_) {
    replica.data.copy_from(data_);
    replica.received = replica.acknowledged = offset_;
  }
  disk_.copy_from(data_);
  unsynced_.clear();
  return true;
}

bool RedisNode::evict(bool only_volatile) {
  const bool evicted = data_.evict(only_volatile, wall_now());
  replicate();
  return evicted;
}

}  // namespace lockbench::simulate
