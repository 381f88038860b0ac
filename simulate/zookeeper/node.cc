#include "simulate/zookeeper/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockbench::simulate {
namespace {

using zookeeper::Code;
using zookeeper::Reader;
using zookeeper::Writer;
using ZkRequest = ZookeeperRequest;

// As the private servers of runs are configured: the leader looks for ended sessions once in a
// tick.
constexpr Duration kSessionTick = std::chrono::milliseconds(100);
constexpr Duration kShortestTimeout = 2 * kSessionTick, kLongestTimeout = std::chrono::hours(1);
// syncLimit, as in private ensembles in which a member can be cut off.
constexpr Duration kSyncLimit = 20 * kSessionTick;
// Its default.
constexpr Duration kContainerCheck = std::chrono::minutes(1);
// With these, the medians of one client are those of results/reference/alone.json.
constexpr Duration kPerPacket = std::chrono::microseconds(20);
constexpr Duration kDiskSync = std::chrono::microseconds(200);

/// An answer to a greeting.
std::string welcome(std::int64_t id, Duration timeout, std::string_view password) {
  return Writer()
      .put(std::int32_t{0})
      .put(static_cast<std::int32_t>(ceil_milliseconds(timeout)))
      .put(id)
      .put(password)
      .put(false)
      .framed();
}

std::string refusal() { return welcome(0, {}, std::string(16, '\0')); }

}  // namespace

/// A connection's end at the server.
struct ZookeeperNode::Client : Wire::Session {
  std::string input;
  bool busy = false;         ///< it waits for its turn, or for what its request changes
  std::uint64_t number = 0;  ///< 0: it has not greeted yet
  std::int64_t session = 0;
  std::string greeting;  ///< the answer, once its session is agreed on

  /// The next complete packet; removed from the input.
  std::optional<std::string> next() {
    constexpr std::size_t kLength = sizeof(std::int32_t);
    if (input.size() < kLength) return std::nullopt;
    const std::int32_t length = Reader(input).int32();
    const auto size = static_cast<std::size_t>(std::max(length, 0));
    if (input.size() - kLength < size) return std::nullopt;
    std::string packet = input.substr(kLength, size);
    input.erase(0, kLength + size);
    return packet;
  }
};

ZookeeperNode::ZookeeperNode(World& world, Network& network, int its_number, int its_region,
                             ZookeeperSettings settings)
    : StoreServer(world, network, "zookeeper", its_number, its_region),
      settings_(std::move(settings)),
      members_(static_cast<std::size_t>(settings_.members)),
      // The upper byte is the number of a member.
      last_session_(std::int64_t{1} << 56) {
  remove_containers();
}

ZookeeperNode::Client* ZookeeperNode::client_of(const std::shared_ptr<Wire>& wire) {
  return static_cast<Client*>(wire->session.get());
}

std::unique_ptr<Wire::Session> ZookeeperNode::open_session() const {
  return std::make_unique<Client>();
}

bool ZookeeperNode::take(const std::shared_ptr<Wire>& wire, std::string_view bytes) {
  Client& client = *client_of(wire);
  client.input += bytes;
  return !std::exchange(client.busy, true);
}

void ZookeeperNode::leave(const std::shared_ptr<Wire>& wire) {
  Client& client = *client_of(wire);
  // What has arrived is carried out, though nobody waits for the answer.
  while (const auto packet = client.number == 0 ? std::nullopt : client.next()) {
    const auto request = ZookeeperRequest::read(*packet);
    if (!request || !request->is_agreed()) continue;
    later(world_.now(), [this, request = *request,
                         origin = Origin{client.number, client.member, client.session}] {
      submit(request, origin);
    });
  }
  connections_.erase(client.number);
  members_[client.member].tree.forget(client.number);
  Session* const session = find_session(client.session);
  if (session != nullptr && session->connection == client.number) session->connection = 0;
}

void ZookeeperNode::break_all() {
  StoreServer::break_all();
  connections_.clear();
  held_.clear();
}

void ZookeeperNode::work(const std::shared_ptr<Wire>& wire) {
  Client& client = *client_of(wire);
  // Bounded by what has arrived.
  while (const auto packet = client.next()) {
    spend(kPerPacket);
    const bool goes_on = client.number == 0 ? greet(wire, *packet) : answer(wire, *packet);
    if (!goes_on) return;
  }
  client.busy = false;
}

bool ZookeeperNode::greet(const std::shared_ptr<Wire>& wire, std::string_view packet) {
  Reader from(packet);
  from.int32();  // version
  const std::int64_t seen = from.int64();
  const Duration timeout = std::chrono::milliseconds(from.int32());
  const std::int64_t id = from.int64();
  const std::string_view password = from.text();
  Client& client = *client_of(wire);
  const auto port = static_cast<std::size_t>(wire->port);
  if (port > 0 && port <= members_.size()) {
    client.member = port - 1;
  } else if (members_.size() > 1) {
    client.member = world_.random()() % members_.size();
  }
  if (is_apart(client.member) || seen > members_[client.member].tree.latest()) {
    hang_up(wire);  // this member cannot ask the leader, or is behind what the client has seen
    return false;
  }
  client.number = ++connections_made_;
  connections_.emplace(client.number, wire);
  if (id == 0) {
    client.session = begin_session(timeout, client);
    const Session& begun = sessions_.at(client.session);
    client.greeting = welcome(client.session, begun.timeout, begun.password);
    submit({.operation = ZkRequest::kBeginSession}, {client.number, client.member, client.session});
    return false;
  }
  Session* const session = find_session(id);
  if (session == nullptr || session->password != password) {
    wire->answer(refusal(), done_at());
    hang_up(wire);
    return false;
  }
  const auto earlier = connections_.find(session->connection);
  if (earlier != connections_.end()) {
    const std::shared_ptr<Wire> old = earlier->second;
    hang_up(old);
  }
  client.session = id;
  session->connection = client.number;
  session->member = client.member;
  // Each member asks the leader about a session that comes to it.
  touch(*session);
  wire->answer(welcome(id, session->timeout, session->password), done_at());
  return true;
}

bool ZookeeperNode::answer(const std::shared_ptr<Wire>& wire, std::string_view packet) {
  const Client& client = *client_of(wire);
  const auto request = ZookeeperRequest::read(packet);
  // The leader knows before it carries it out that a session has ended; the others do not.
  const bool ended = client.member == kLeader && find_session(client.session) == nullptr;
  if (!request || ended) {
    hang_up(wire);
    return false;
  }
  if (!is_apart(client.member)) hear(client.member, client.session);
  if (world_.traced()) {
    world_.trace(
        "zookeeper", number,
        fmt::format("executes {} {} of client-{}", zookeeper::name_of_operation(request->operation),
                    request->path, wire->host.number));
  }
  if (request->is_agreed()) {
    submit(*request, {client.number, client.member, client.session});
    return false;
  }
  wire->answer(members_[client.member].tree.read(*request, client.number), done_at());
  return true;
}

// Sessions.

std::int64_t ZookeeperNode::begin_session(Duration asked_timeout, const Client& client) {
  const std::int64_t id = ++last_session_;
  Session& session = sessions_[id];
  session = {.timeout = std::clamp(asked_timeout, kShortestTimeout, kLongestTimeout),
             .password = fmt::format("{:016x}", world_.random()()),
             .connection = client.number,
             .member = client.member};
  touch(session);
  await_end(id);
  return id;
}

ZookeeperNode::Session* ZookeeperNode::find_session(std::int64_t id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

void ZookeeperNode::touch(Session& session) {
  const auto ends = clock.now(world_.now()).time_since_epoch() + session.timeout;
  session.ends = TimePoint((ends / kSessionTick + 1) * kSessionTick);
}

void ZookeeperNode::hear(std::size_t member, std::int64_t id) {
  if (member == kLeader) {
    if (Session* const session = find_session(id)) touch(*session);
    return;
  }
  std::set<std::int64_t>& heard = members_[member].heard;
  const bool first = heard.empty();
  heard.insert(id);
  if (!first) return;
  // The answer to the leader's next ping.
  constexpr Duration kPingEvery = kSessionTick / 2;
  const Duration now = world_.now().time_since_epoch();
  later(TimePoint((now / kPingEvery + 1) * kPingEvery), [this, member] {
    later(world_.now() + network_.draw(region, region),
          [this, ids = std::exchange(members_[member].heard, {})] {
            for (const std::int64_t one : ids) hear(kLeader, one);
          });
  });
}

void ZookeeperNode::await_end(std::int64_t id) {
  later(clock.when(sessions_.at(id).ends), [this, id] {
    const Session* const session = find_session(id);
    if (session == nullptr) return;
    if (clock.now(world_.now()) < session->ends) return await_end(id);
    if (world_.traced()) world_.trace("zookeeper", number, fmt::format("ends session {:x}", id));
    agree({.operation = ZkRequest::kEndSession}, {session->connection, session->member, id, false});
  });
}

// Changes.

void ZookeeperNode::later(TimePoint when, std::function<void()> act) {
  world_.at(when, [this, act = std::move(act), began = life()]() mutable {
    if (began != life()) return;
    if (frozen()) {
      held_.push_back(std::move(act));
    } else {
      act();
    }
  });
}

void ZookeeperNode::submit(const ZookeeperRequest& request, const Origin& origin) {
  if (is_apart(origin.member)) return;
  if (origin.member == kLeader) return agree(request, origin);
  later(done_at() + network_.draw(region, region),
        [this, request, origin] { agree(request, origin); });
}

void ZookeeperNode::agree(const ZookeeperRequest& request, const Origin& origin) {
  if (leaderless_) return;
  ZookeeperChange change = agreed_.plan(request, origin.session);
  const Session* const session = find_session(origin.session);
  if (origin.connection != 0 && session == nullptr) {
    change = {.code = Code::session_expired};
  } else if (session != nullptr && session->member != origin.member) {
    // Its client has gone to another member since it sent this.
    change = {.code = Code::session_moved};
  }
  const bool syncs = request.operation == ZkRequest::kSync;
  if (!syncs) ++transactions_;
  change.transaction = transactions_;
  change.at_ms =
      std::chrono::floor<std::chrono::milliseconds>(wall_now().time_since_epoch()).count();
  agreed_.apply(change);
  if (change.kind == ZookeeperChange::Kind::end_session) sessions_.erase(origin.session);
  TimePoint agreed_at = done_at();
  if (!syncs) agreed_at += kDiskSync;
  if (!syncs && members_.size() > 1) agreed_at += 2 * network_.draw(region, region);
  // A sync waits for what is under way, and only goes to the member that asked.
  agreed_at = std::max(agreed_at, members_[kLeader].last_arrival);
  const auto agreed = std::make_shared<const Agreed>(Agreed{request, change, origin});
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (is_apart(i) || (syncs && i != origin.member)) continue;
    TimePoint arrival = agreed_at;
    if (i != kLeader)
      arrival += network_.draw(region, region) + settings_.lag.draw(world_.random());
    TimePoint& last = members_[i].last_arrival;
    last = std::max(last, arrival);
    later(last, [this, i, agreed] { carry_out(i, *agreed); });
  }
}

void ZookeeperNode::carry_out(std::size_t member, const Agreed& agreed) {
  for (ZookeeperTree::Event& event : members_[member].tree.apply(agreed.change)) {
    const auto found = connections_.find(event.watcher);
    if (found != connections_.end()) found->second->answer(std::move(event.packet), done_at());
  }
  if (member == agreed.origin.member) finish(agreed);
}

void ZookeeperNode::finish(const Agreed& agreed) {
  const Origin& origin = agreed.origin;
  const auto found = connections_.find(origin.connection);
  if (found == connections_.end()) return;
  const std::shared_ptr<Wire> wire = found->second;
  Client& client = *client_of(wire);
  const bool begins = agreed.request.operation == ZkRequest::kBeginSession;
  if (origin.asked) {
    wire->answer(begins ? std::exchange(client.greeting, {})
                        : members_[origin.member].tree.answer(agreed.request, agreed.change),
                 done_at());
  }
  const bool ended = agreed.request.operation == ZkRequest::kEndSession ||
                     agreed.change.code == Code::session_expired;
  if (ended) return hang_up(wire);
  if (client.input.empty()) {
    client.busy = false;
  } else {
    schedule(wire);
  }
}

void ZookeeperNode::remove_containers() {
  world_.at(world_.now() + kContainerCheck, [this] {
    if (alive() && !frozen()) {
      for (const std::string& path : agreed_.emptied_containers()) {
        agree({.operation = ZkRequest::kDelete, .path = path, .version = -1}, {});
      }
    }
    remove_containers();
  });
}

// Faults.

void ZookeeperNode::restart() {
  if (alive()) return;
  come_back();
  if (settings_.durable) return begin_term();
  agreed_ = {};
  sessions_.clear();  // new ones have other numbers, as real ones are made of the time
  transactions_ = 0;
  for (Member& member : members_) member = {};
}

void ZookeeperNode::thaw() {
  if (!frozen()) return;
  StoreServer::thaw();
  // Before what has arrived from clients: the thread that ends sessions has only to wake.
  for (const auto& act : std::exchange(held_, {})) act();
}

bool ZookeeperNode::fail_over() {
  if (members_.size() == 1) return false;
  restart();
  return true;
}

void ZookeeperNode::isolate(std::size_t member) {
  cut_off(member, kSyncLimit);
  leaderless_ = member == kLeader;
  later(world_.now() + kSyncLimit, [this, member] {
    if (is_apart(member)) restart_follower(member);
  });
}

void ZookeeperNode::reunite() {
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (!is_apart(member)) continue;
    restart_follower(member);
    members_[member].tree = agreed_;
  }
  StoreServer::reunite();
}

bool ZookeeperNode::remove(const std::string& key) {
  const std::vector<std::string> paths = agreed_.with_children(zookeeper::node_of_key(key));
  for (const std::string& path : paths) {
    agree({.operation = ZkRequest::kDelete, .path = path, .version = -1}, {});
  }
  return !paths.empty();
}

bool ZookeeperNode::end_session(const std::string& key) {
  const std::int64_t id = agreed_.holder_of(zookeeper::node_of_key(key));
  const Session* const session = find_session(id);
  if (session == nullptr) return false;
  agree({.operation = ZkRequest::kEndSession}, {session->connection, session->member, id, false});
  return true;
}

void ZookeeperNode::begin_term() {
  // The upper half of a transaction's number is that of the leader's term.
  constexpr int kBits = 32;
  leaderless_ = false;
  transactions_ = ((transactions_ >> kBits) + 1) << kBits;
  for (Member& member : members_) member = {.tree = agreed_};
  for (auto& [id, session] : sessions_) {
    session.connection = 0;
    touch(session);
    await_end(id);
  }
}

}  // namespace lockbench::simulate
