#include "simulate/redis/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulate/redis/replies.h"
#include "strategies/number.h"

namespace lockbench::simulate {
namespace {

constexpr Duration kSync = std::chrono::seconds(1);  // appendfsync everysec

template <class T>
void forget(std::vector<T>& all, const T& one) {
  std::erase(all, one);
}

/// Words of a command, which has the form of an answer with texts.
void read_words(const Reply& command, std::vector<std::string_view>& words) {
  words.clear();
  for (const Reply& word : command.elements) words.emplace_back(word.text);
}

}  // namespace

/// A connection's end at the server.
struct RedisNode::Client : Wire::Session {
  RedisModel::Session session;
  redis::ReplyReader reader;
  std::deque<Reply> inbox;        ///< commands, the oldest first
  std::uint64_t blocked = 0;      ///< number of its wait at the server; 0: none
  std::int64_t write_offset = 0;  ///< of its last write
  int wanted_replicas = 0;        ///< of its WAIT
  std::vector<ListName> lists;    ///< of its BLPOP
  std::set<std::string> channels;
};

RedisNode::RedisNode(World& world, Network& network, int its_number, int its_region,
                     RedisSettings settings)
    : StoreServer(world, network, "redis", its_number, its_region),
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

RedisNode::~RedisNode() = default;

RedisNode::Client* RedisNode::client_of(const std::shared_ptr<Wire>& wire) {
  return static_cast<Client*>(wire->session.get());
}

std::unique_ptr<Wire::Session> RedisNode::open_session() const {
  return std::make_unique<Client>();
}

bool RedisNode::take(const std::shared_ptr<Wire>& wire, std::string_view bytes) {
  Client& client = *client_of(wire);
  const bool idle = client.inbox.empty() && client.blocked == 0;
  client.reader.feed(bytes);
  // Bounded by what has arrived. Our own clients send nothing else.
  for (auto command = client.reader.next(); command && *command; command = client.reader.next()) {
    client.inbox.push_back(**std::move(command));
  }
  return idle && !client.inbox.empty();
}

void RedisNode::leave(const std::shared_ptr<Wire>& wire) {
  forget(waiting_, wire);
  leave_lists(wire);
  for (const std::string& channel : client_of(wire)->channels) forget(subscribers_[channel], wire);
}

void RedisNode::work(const std::shared_ptr<Wire>& wire) {
  Client* const client = client_of(wire);
  std::string answers;
  while (!client->inbox.empty() && client->blocked == 0) {
    const Reply command = std::move(client->inbox.front());
    client->inbox.pop_front();
    read_words(command, words_);
    if (words_.empty()) continue;
    if (world_.traced()) {
      world_.trace("redis", number,
                   fmt::format("executes {} {} of client-{}", words_[0], redis::key_of(words_),
                               wire->host.number));
    }
    const std::int64_t before = offset_;
    spend(settings_.per_command * (equal_words(words_[0], "EVALSHA") ? 2 : 1));
    if (const auto reply = execute(wire, command)) append_reply(answers, *reply);
    if (offset_ != before) client->write_offset = offset_;
    serve_blocked();
  }
  replicate();
  if (!answers.empty()) wire->answer(std::move(answers), done_at());
}

std::optional<Reply> RedisNode::execute(const std::shared_ptr<Wire>& wire, const Reply& command) {
  Client& client = *client_of(wire);
  const std::string_view name = words_[0];
  const bool subscribes = equal_words(name, "SUBSCRIBE");
  if ((subscribes || equal_words(name, "UNSUBSCRIBE")) && words_.size() == 2) {
    std::string channel(words_[1]);
    auto& subscribers = subscribers_[channel];
    if (subscribes) {
      if (client.channels.insert(channel).second) subscribers.push_back(wire);
    } else if (client.channels.erase(channel) > 0) {
      forget(subscribers, wire);
    }
    return Reply{.type = Reply::Type::array,
                 .elements = {text(subscribes ? "subscribe" : "unsubscribe"), text(channel),
                              integer(static_cast<std::int64_t>(client.channels.size()))}};
  }
  if (equal_words(name, "WAIT") && words_.size() == 3 && !client.session.in_transaction) {
    return wait_for_replicas(wire);
  }
  const bool may_wait = equal_words(name, "BLPOP") && !client.session.in_transaction;
  Reply reply = data_.execute(client.session, words_, wall_now());
  if (!may_wait || !reply.is_nil()) return reply;
  for (std::size_t i = 1; i + 1 < words_.size(); ++i) {
    ListName list(client.session.database, words_[i]);
    blocked_[list].push_back(wire);
    client.lists.push_back(std::move(list));
  }
  const double timeout = parse_number<double>(words_.back()).value_or(0);
  client.inbox.push_front(command);  // to be executed again
  block(wire, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout)));
  return std::nullopt;
}

void RedisNode::block(const std::shared_ptr<Wire>& wire, Duration longest) {
  const std::uint64_t wait = client_of(wire)->blocked = ++waits_;
  if (longest <= Duration::zero()) return;  // for ever
  world_.at(world_.now() + longest, [this, wire, wait] {
    Client* const client = client_of(wire);
    if (client == nullptr || client->blocked != wait) return;
    const bool for_replicas = client->wanted_replicas > 0;
    if (!for_replicas) client->inbox.pop_front();
    answer(wire, for_replicas ? integer(acknowledged(client->write_offset)) : Reply());
  });
}

/// The answer to a command that has waited.
void RedisNode::answer(const std::shared_ptr<Wire>& wire, const Reply& reply) {
  Client& client = *client_of(wire);
  client.blocked = 0;
  client.wanted_replicas = 0;
  forget(waiting_, wire);
  leave_lists(wire);
  send(wire, reply);
  if (!client.inbox.empty()) schedule(wire);
}

void RedisNode::send(const std::shared_ptr<Wire>& wire, const Reply& reply) {
  std::string bytes;
  append_reply(bytes, reply);
  wire->answer(std::move(bytes), done_at());
}

/// Those that wait for a list that has grown, the longest first.
void RedisNode::serve_blocked() {
  for (const ListName& list : data_.take_grown()) {
    const auto found = blocked_.find(list);
    if (found == blocked_.end()) continue;
    const std::deque<std::shared_ptr<Wire>> waiting = found->second;
    for (const auto& wire : waiting) {
      Client& client = *client_of(wire);
      std::vector<std::string_view> words;
      read_words(client.inbox.front(), words);
      const Reply reply = data_.execute(client.session, words, wall_now());
      if (reply.is_nil()) break;
      client.inbox.pop_front();
      answer(wire, reply);
    }
  }
}

void RedisNode::leave_lists(const std::shared_ptr<Wire>& wire) {
  for (const ListName& list : std::exchange(client_of(wire)->lists, {})) {
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
    send(wire,
         {.type = Reply::Type::array, .elements = {text("message"), text(channel), text(message)}});
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
    if (replicas_[i].cut_off) continue;
    TimePoint& last = replicas_[i].last_arrival;
    const Duration lag = settings_.lag.draw(world_.random());
    last = std::max(last, done_at() + network_.draw(region, region) + lag);
    world_.at(last, [this, writes, i, offset = offset_, began = life()] {
      if (began != life()) return;
      for (const RedisModel::Write& write : *writes) replicas_[i].data.apply(write);
      replicas_[i].received = offset;
      world_.at(world_.now() + network_.draw(region, region), [this, i, offset, began] {
        if (began == life()) acknowledge(i, offset);
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
    const Client& client = *client_of(wire);
    const int enough = acknowledged(client.write_offset);
    if (enough >= client.wanted_replicas) answer(wire, integer(enough));
  }
}

std::optional<Reply> RedisNode::wait_for_replicas(const std::shared_ptr<Wire>& wire) {
  Client& client = *client_of(wire);
  const auto wanted = parse_number<int>(words_[1]), timeout = parse_number<int>(words_[2]);
  if (!wanted || !timeout || *timeout < 0) {
    return error("ERR value is not an integer or out of range");
  }
  const int have = acknowledged(client.write_offset);
  if (have >= *wanted) return integer(have);
  client.wanted_replicas = *wanted;
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

void RedisNode::break_all() {
  StoreServer::break_all();
  blocked_.clear();
  waiting_.clear();
  subscribers_.clear();
  unsent_.clear();
}

void RedisNode::restart() {
  if (alive()) return;
  come_back();
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

bool RedisNode::fail_over() {
  if (replicas_.empty()) return false;
  const auto best = std::ranges::max_element(replicas_, {}, &Replica::received);
  promote(static_cast<std::size_t>(best - replicas_.begin()));
  return true;
}

void RedisNode::promote(std::size_t successor) {
  break_all();
  come_back();
  thaw();
  data_.copy_from(replicas_.at(successor).data);
  data_.forget_scripts();
  for (Replica& replica : replicas_) {
    replica.data.copy_from(data_);
    replica.received = replica.acknowledged = offset_;
    replica.cut_off = false;
  }
  disk_.copy_from(data_);
  unsynced_.clear();
}

std::size_t RedisNode::unsynced() {
  sync_disk();
  return unsynced_.size();
}

Reply RedisNode::ask(std::initializer_list<std::string_view> command) {
  RedisModel::Session session;
  const std::vector<std::string_view> words(command);
  spend(Duration::zero());
  Reply reply = data_.execute(session, words, wall_now());
  serve_blocked();
  replicate();
  return reply;
}

bool RedisNode::evict(bool only_volatile) {
  const bool evicted = data_.evict(only_volatile, wall_now());
  replicate();
  return evicted;
}

}  // namespace lockbench::simulate
