#include "simulate/etcd/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/etcd/lock.h"

namespace lockbench::simulate {
namespace {

// Together with a round trip, the median of a release in results/reference/alone.json.
constexpr Duration kPerCall = std::chrono::microseconds(60);
constexpr Duration kToDisk = std::chrono::microseconds(280);
// How often etcd's lessor looks for expired leases.
constexpr Duration kLookEvery = std::chrono::milliseconds(500);

}  // namespace

/// A connection's end at the server.
struct EtcdNode::Client : Wire::Session {
  std::string input;
  bool ready = false;  ///< it waits for its turn
  std::map<std::uint32_t, Watches::iterator> watches;
};

EtcdNode::EtcdNode(World& world, Network& network, int its_number, int its_region, int members,
                   bool durable)
    : StoreServer(world, network, "etcd", its_number, its_region),
      members_(members),
      durable_(durable) {}

std::unique_ptr<Wire::Session> EtcdNode::open_session() const { return std::make_unique<Client>(); }

std::vector<std::string> EtcdNode::keys() const {
  std::vector<std::string> locks;
  for (const std::string& name : data_.names()) {
    std::string lock = name.substr(0, name.find('/'));
    if (locks.empty() || locks.back() != lock) locks.push_back(std::move(lock));
  }
  return locks;
}

bool EtcdNode::take(const std::shared_ptr<Wire>& wire, std::string_view bytes) {
  auto& client = static_cast<Client&>(*wire->session);
  if (wire->port > 0) client.member = static_cast<std::size_t>(wire->port) - 1;
  // A member that is apart has no answer, be it the former leader.
  if (is_apart(client.member)) return false;
  client.input += bytes;
  return !std::exchange(client.ready, true);
}

void EtcdNode::work(const std::shared_ptr<Wire>& wire) {
  auto& client = static_cast<Client&>(*wire->session);
  client.ready = false;
  while (const auto frame = Frame::take(client.input)) {
    if (!frame->text.empty()) {
      execute(wire, *frame);
      continue;
    }
    std::erase_if(waiting_, [&](const auto& one) {
      return one.first == wire && one.second.call == frame->call;
    });
    if (const auto known = client.watches.find(frame->call); known != client.watches.end()) {
      watches_.erase(known->second);
      client.watches.erase(known);
    }
  }
}

void EtcdNode::execute(const std::shared_ptr<Wire>& wire, const Frame& frame) {
  spend(kPerCall);
  if (world_.traced()) {
    world_.trace("etcd", number,
                 fmt::format("executes {} of client-{}", frame.text, wire->host.number));
  }
  if (frame.text == etcd::kWatch.name) return watch(wire, frame);
  reply(wire, frame, false);
  tell_watchers();
  // Other calls make no lease end sooner.
  if (frame.text == etcd::kLeaseGrant.name) await_expiry();
}

void EtcdNode::reply(const std::shared_ptr<Wire>& wire, const Frame& frame, bool changed) {
  const bool behind = std::ranges::any_of(waiting_, [&](const auto& one) {
    return one.first == wire && one.second.call == frame.call;
  });
  EtcdModel::Answer answer{.waits = behind};
  if (!behind) answer = data_.execute(frame.text, frame.body, its_now());
  if (answer.waits) {
    waiting_.emplace_back(wire, frame);
    return;
  }
  const Frame response{.call = frame.call,
                       .code = static_cast<std::uint32_t>(answer.status.error_code()),
                       .text = answer.status.error_message(),
                       .body = answer.response};
  wire->answer(response.bytes(), ready_at(changed ? EtcdModel::Path::log : answer.path));
}

void EtcdNode::watch(const std::shared_ptr<Wire>& wire, const Frame& frame) {
  etcdserverpb::WatchRequest request;
  if (!request.ParseFromString(frame.body)) return;
  auto& client = static_cast<Client&>(*wire->session);
  client.watches[frame.call] =
      watches_.emplace(request.create_request().key(), Watch{wire, frame.call});
  etcdserverpb::WatchResponse begun;
  begun.mutable_header()->set_revision(data_.revision());
  wire->answer(Frame{.call = frame.call, .body = begun.SerializeAsString()}.bytes(), done_at());
}

void EtcdNode::tell_watchers() {
  for (const std::string& key : data_.take_deleted()) {
    const auto [first, last] = watches_.equal_range(key);
    if (first == last) continue;
    etcdserverpb::WatchResponse response;
    response.mutable_header()->set_revision(data_.revision());
    auto& event = *response.add_events();
    event.set_type(etcdserverpb::WatchResponse::Event::DELETE);
    event.mutable_kv()->set_key(key);
    for (auto at = first; at != last; ++at) {
      if (is_apart(at->second.wire->session->member)) continue;
      const Frame frame{.call = at->second.call, .body = response.SerializeAsString()};
      at->second.wire->answer(frame.bytes(), ready_at(EtcdModel::Path::log));
    }
  }
}

TimePoint EtcdNode::ready_at(EtcdModel::Path path) {
  if (path == EtcdModel::Path::here) return done_at();
  const Duration agreed = members_ > 1 ? network_.draw(region, region) * 2 : Duration::zero();
  return done_at() + agreed + (path == EtcdModel::Path::log ? kToDisk : Duration::zero());
}

void EtcdNode::leave(const std::shared_ptr<Wire>& wire) {
  for (const auto& [call, place] : static_cast<Client&>(*wire->session).watches) {
    watches_.erase(place);
  }
  std::erase_if(waiting_, [&](const auto& one) { return one.first == wire; });
}

void EtcdNode::break_all() {
  StoreServer::break_all();
  watches_.clear();
  waiting_.clear();
  looks_at_ = TimePoint::max();
}

// Leases and leaders.

void EtcdNode::await_expiry() {
  const auto next = data_.next_expiry();
  if (!next) return;
  const Duration since = next->time_since_epoch() + kLookEvery;
  look_at(TimePoint(since - since % kLookEvery));
}

void EtcdNode::look_at(TimePoint when) {
  if (when >= looks_at_) return;
  looks_at_ = when;
  world_.at(clock.when(when), [this, when, began = life()] {
    if (began != life() || when != looks_at_) return;
    looks_at_ = TimePoint::max();
    if (frozen()) return look_at(when + kLookEvery);
    data_.expire(when);
    tell_watchers();
    for (const auto& [wire, renewal] : std::exchange(waiting_, {})) {
      if (!is_apart(wire->session->member)) reply(wire, renewal, true);
    }
    await_expiry();
  });
}

void EtcdNode::lead() {
  come_back();
  data_.lead(its_now());
  await_expiry();
}

void EtcdNode::restart() {
  if (alive()) return;
  if (!durable_) data_.lose_all();
  lead();
}

bool EtcdNode::fail_over() {
  break_all();
  thaw();
  lead();
  return true;
}

void EtcdNode::depose_leader() {
  former_ends_ = data_.ends();
  kill();
}

void EtcdNode::resume_deposed() {
  for (const auto& [lease, end] : std::exchange(former_ends_, {})) {
    if (end <= its_now()) revoke(lease);
  }
}

// Other users.

template <class Request, class Response>
Response EtcdNode::ask(const etcd::Method<Request, Response>& method, const Request& request) {
  const auto answer = data_.execute(method.name, request.SerializeAsString(), its_now());
  tell_watchers();
  Response response;
  (void)response.ParseFromString(answer.response);
  return response;
}

void EtcdNode::revoke(etcd::LeaseId lease) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  ask(etcd::kLeaseRevoke, request);
}

bool EtcdNode::remove(const std::string& key) {
  etcdserverpb::DeleteRangeRequest request;
  request.set_key(key + "/");
  request.set_range_end(etcd::end_of_prefix(key + "/"));
  return ask(etcd::kDeleteRange, request).deleted() > 0;
}

/// That of the oldest key in the lock's queue.
bool EtcdNode::end_session(const std::string& key) {
  for (const std::string& place : {etcd::queue_of(key), key + "/"}) {
    etcdserverpb::RangeRequest request;
    request.set_key(place);
    request.set_range_end(etcd::end_of_prefix(place));
    request.set_limit(1);
    request.set_sort_target(etcdserverpb::RangeRequest::CREATE);
    request.set_keys_only(true);
    const auto found = ask(etcd::kRange, request);
    if (found.kvs_size() == 0) continue;
    revoke(found.kvs(0).lease());
    return true;
  }
  return false;
}

}  // namespace lockbench::simulate
