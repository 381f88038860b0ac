#include "simulate/zookeeper/tree.h"

#include <fmt/format.h>

#include <utility>

namespace lockbench::simulate {
namespace {

using namespace std::string_view_literals;
using zookeeper::Code;
using zookeeper::Reader;
using zookeeper::Writer;
using zookeeper::Xid;
using ChangeKind = ZookeeperChange::Kind;
using ZkRequest = ZookeeperRequest;

// Types of events.
constexpr std::int32_t kMade = 1, kDeleted = 2, kDataChanged = 3, kListChanged = 4;
// Modes of new nodes, and an error.
constexpr std::int32_t kEphemeral = 1, kSequential = 2, kEphemeralSequential = 3, kContainer = 4;
constexpr Code kUnimplemented{-6}, kBadVersion{-103}, kNoChildrenForEphemerals{-108};

std::string parent_path(std::string_view path) {
  const std::string_view above = zookeeper::parent_of(path);
  return std::string(above.empty() ? "/"sv : above);
}

std::string name_in(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string event_packet(std::int32_t type, std::string_view path) {
  constexpr std::int32_t kConnected = 3;
  return Writer()
      .put(Xid::kEvent)
      .put(std::int64_t{-1})
      .put(std::int32_t{0})
      .put(type)
      .put(kConnected)
      .put(path)
      .framed();
}

Writer begin_answer(const ZkRequest& request, std::int64_t transaction, Code code) {
  return Writer().put(request.xid).put(transaction).put(static_cast<std::int32_t>(code));
}

template <class Node>
void put_stat(Writer& to, const Node& node) {
  constexpr std::int32_t kNone = 0;
  const auto children = static_cast<std::int32_t>(node.children.size());
  to.put(node.made_by).put(node.made_by).put(node.made_at_ms).put(node.made_at_ms);
  // Versions: of the data, of the list (each child has been made, and those gone removed), of the
  // ACL.
  to.put(kNone).put(2 * node.children_made - children).put(kNone);
  to.put(node.owner).put(kNone).put(children).put(node.children_changed_by);
}

}  // namespace

std::optional<ZookeeperRequest> ZookeeperRequest::read(std::string_view packet) {
  Reader from(packet);
  ZookeeperRequest request{.xid = from.int32(), .operation = from.int32()};
  const bool has_path =
      request.operation > 0 && request.operation != kPing && request.operation != kSetWatches;
  if (has_path) request.path = from.text();
  switch (request.operation) {
    case kCreate:
    case kCreateContainer:
      from.text();   // its data
      from.int32();  // one right
      from.int32();
      from.text();
      from.text();
      request.mode = from.int32();
      break;
    case kDelete:
      request.version = from.int32();
      break;
    case kExists:
    case kGetData:
    case kGetChildren:
      request.watch = from.boolean();
      break;
    case kSetWatches:
      request.seen = from.int64();
      request.watched = from.texts();
      from.texts();  // none of absent nodes
      from.texts();  // and of lists
      break;
    default:
      break;
  }
  return from.done() ? std::optional(std::move(request)) : std::nullopt;
}

bool ZookeeperRequest::is_agreed() const {
  return operation == kCreate || operation == kCreateContainer || operation == kDelete ||
         operation == kSync || operation == kBeginSession || operation == kEndSession;
}

ZookeeperTree::ZookeeperTree() { nodes_["/"].children.insert("zookeeper"); }

const ZookeeperTree::Node* ZookeeperTree::find(std::string_view path) const {
  const auto found = nodes_.find(path);
  return found == nodes_.end() ? nullptr : &found->second;
}

ZookeeperChange ZookeeperTree::plan(const ZookeeperRequest& request, std::int64_t session) const {
  switch (request.operation) {
    case ZkRequest::kCreate:
    case ZkRequest::kCreateContainer:
      return plan_node(request, session);
    case ZkRequest::kEndSession:
      return {.kind = ChangeKind::end_session, .session = session};
    case ZkRequest::kDelete: {
      const Node* const node = find(request.path);
      if (node == nullptr) return {.code = Code::no_node};
      constexpr std::int32_t kAny = -1, kFirst = 0;  // data never changes
      const bool fits = request.version == kAny || request.version == kFirst;
      if (!fits) return {.code = kBadVersion};
      if (!node->children.empty()) return {.code = Code::not_empty};
      return {.kind = ChangeKind::remove, .path = request.path};
    }
    default:
      return {};
  }
}

ZookeeperChange ZookeeperTree::plan_node(const ZookeeperRequest& request,
                                         std::int64_t session) const {
  const Node* const above = find(parent_path(request.path));
  if (above == nullptr) return {.code = Code::no_node};
  std::string path = request.path;
  if (request.mode == kSequential || request.mode == kEphemeralSequential) {
    path += fmt::format("{:010}", above->children_made);
  }
  if (find(path) != nullptr) return {.code = Code::node_exists};
  if (above->owner != 0) return {.code = kNoChildrenForEphemerals};
  const bool ephemeral = request.mode == kEphemeral || request.mode == kEphemeralSequential;
  return {.kind = ChangeKind::make,
          .path = std::move(path),
          .session = ephemeral ? session : 0,
          .container = request.mode == kContainer};
}

std::vector<ZookeeperTree::Event> ZookeeperTree::apply(const ZookeeperChange& change) {
  latest_ = change.transaction;
  std::vector<Event> events;
  if (change.code != Code::ok) return events;
  switch (change.kind) {
    case ChangeKind::none:
      break;
    case ChangeKind::make:
      make(change, events);
      break;
    case ChangeKind::remove:
      remove(change.path, change.transaction, events);
      break;
    case ChangeKind::end_session: {
      const auto owned = ephemerals_.extract(change.session);
      if (owned.empty()) break;
      for (const std::string& path : owned.mapped()) remove(path, change.transaction, events);
      break;
    }
  }
  return events;
}

void ZookeeperTree::make(const ZookeeperChange& change, std::vector<Event>& events) {
  const std::string above = parent_path(change.path);
  Node& list = nodes_.at(above);
  ++list.children_made;
  list.children_changed_by = change.transaction;
  list.children.insert(name_in(change.path));
  nodes_[change.path] = {.made_by = change.transaction,
                         .made_at_ms = change.at_ms,
                         .owner = change.session,
                         .container = change.container,
                         .children_changed_by = change.transaction};
  if (change.session != 0) ephemerals_[change.session].insert(change.path);
  fire(node_watches_, change.path, kMade, events);
  fire(list_watches_, above, kListChanged, events);
}

void ZookeeperTree::remove(const std::string& path, std::int64_t transaction,
                           std::vector<Event>& events) {
  const std::string above = parent_path(path);
  Node& list = nodes_.at(above);
  list.children_changed_by = transaction;
  list.children.erase(name_in(path));
  const auto node = nodes_.find(path);
  const auto owned = ephemerals_.find(node->second.owner);
  if (owned != ephemerals_.end()) {
    owned->second.erase(path);
    if (owned->second.empty()) ephemerals_.erase(owned);
  }
  nodes_.erase(node);
  const std::set<Watcher> told = fire(node_watches_, path, kDeleted, events);
  fire(list_watches_, path, kDeleted, events, told);
  fire(list_watches_, above, kListChanged, events);
}

std::set<ZookeeperTree::Watcher> ZookeeperTree::fire(Watches& watches, std::string_view path,
                                                     std::int32_t type, std::vector<Event>& events,
                                                     const std::set<Watcher>& except) {
  const auto found = watches.find(path);
  if (found == watches.end()) return {};
  std::set<Watcher> told = std::move(found->second);
  watches.erase(found);
  for (const Watcher watcher : told) {
    if (!except.contains(watcher)) events.push_back({watcher, event_packet(type, path)});
  }
  return told;
}

std::string ZookeeperTree::answer(const ZookeeperRequest& request,
                                  const ZookeeperChange& change) const {
  Writer packet = begin_answer(request, change.transaction, change.code);
  if (change.kind == ChangeKind::make) {
    packet.put(std::string_view(change.path));
    put_stat(packet, nodes_.at(change.path));
  } else if (request.operation == ZkRequest::kSync && change.code == Code::ok) {
    packet.put(std::string_view(request.path));
  }
  return packet.framed();
}

std::string ZookeeperTree::read(const ZookeeperRequest& request, Watcher watcher) {
  const auto begin = [&](Code code = Code::ok) { return begin_answer(request, latest_, code); };
  const Node* const node = find(request.path);
  switch (request.operation) {
    case ZkRequest::kPing:
      return begin().framed();
    case ZkRequest::kSetWatches:
      return set_watches(request, watcher) + begin().framed();
    case ZkRequest::kExists:
      if (request.watch) node_watches_[request.path].insert(watcher);
      break;
    case ZkRequest::kGetData:
      if (request.watch && node != nullptr) node_watches_[request.path].insert(watcher);
      break;
    case ZkRequest::kGetChildren:
      if (request.watch && node != nullptr) list_watches_[request.path].insert(watcher);
      break;
    default:
      return begin(kUnimplemented).framed();
  }
  if (node == nullptr) return begin(Code::no_node).framed();
  Writer found = begin();
  if (request.operation == ZkRequest::kGetChildren) {
    found.put(static_cast<std::int32_t>(node->children.size()));
    for (const std::string& child : node->children) found.put(std::string_view(child));
    return found.framed();
  }
  if (request.operation == ZkRequest::kGetData) found.put(""sv);
  put_stat(found, *node);
  return found.framed();
}

std::string ZookeeperTree::set_watches(const ZookeeperRequest& request, Watcher watcher) {
  std::string missed;
  for (const std::string& path : request.watched) {
    const Node* const node = find(path);
    if (node != nullptr && node->made_by <= request.seen) {
      node_watches_[path].insert(watcher);
    } else {
      missed += event_packet(node == nullptr ? kDeleted : kDataChanged, path);
    }
  }
  return missed;
}

void ZookeeperTree::forget(Watcher watcher) {
  for (Watches* const watches : {&node_watches_, &list_watches_}) {
    for (auto& [path, watchers] : *watches) watchers.erase(watcher);
    std::erase_if(*watches, [](const auto& one) { return one.second.empty(); });
  }
}

std::vector<std::string> ZookeeperTree::emptied_containers() const {
  std::vector<std::string> paths;
  for (const auto& [path, node] : nodes_) {
    if (node.container && node.children_made > 0 && node.children.empty()) paths.push_back(path);
  }
  return paths;
}

std::vector<std::string> ZookeeperTree::with_children(const std::string& path) const {
  std::vector<std::string> paths;
  const Node* const node = find(path);
  if (node == nullptr) return paths;
  for (const std::string& child : node->children) paths.push_back(path + "/" + child);
  paths.push_back(path);
  return paths;
}

std::int64_t ZookeeperTree::holder_of(const std::string& lock) const {
  std::string holder = lock;
  std::optional<std::int64_t> first;
  for (const std::string& path : with_children(lock)) {
    const auto place = zookeeper::sequence_of(name_in(path));
    if (path == lock || !place || (first && *place > *first)) continue;
    first = place;
    holder = path;
  }
  const Node* const node = find(holder);
  return node == nullptr ? 0 : node->owner;
}

std::vector<std::string> ZookeeperTree::locked_keys() const {
  std::vector<std::string> keys;
  const std::string root = parent_path(zookeeper::run_path("-"));
  const Node* const runs = find(root);
  if (runs == nullptr) return keys;
  for (const std::string& run : runs->children) {
    for (const std::string& key : nodes_.at(root + "/" + run).children) {
      const Node& node = nodes_.at(fmt::format("{}/{}/{}", root, run, key));
      const bool locked = node.owner != 0 || !node.children.empty();
      if (locked) keys.push_back(fmt::format("lockbench:{}:{}", run, key));
    }
  }
  return keys;
}

}  // namespace lockbench::simulate
