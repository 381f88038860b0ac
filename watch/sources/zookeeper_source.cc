#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_set>
#include <utility>

#include "strategies/zookeeper/client/session.h"
#include "watch/sources/keys.h"
#include "watch/sources/server_source.h"
#include "watch/sources/zookeeper_locks.h"

namespace lockbench::watch {
namespace {

using zookeeper::Code;
using ZkRequest = zookeeper::Request;

constexpr Duration kListenFor = std::chrono::milliseconds(20);
constexpr Duration kProposeAgain = std::chrono::seconds(30);
constexpr std::size_t kMostVisits = 64, kMostOwnersAsked = 256, kDeepest = 16;
/// Commands per visit: list the children, and ask for the session of a new one.
constexpr std::uint64_t kPerVisit = 2;

/// Long enough for a busy machine, short enough to notice a lost server soon.
constexpr Duration kSessionTimeout = std::chrono::seconds(6);
/// Patterns are paths, but the user may leave out the leading slash.
std::vector<std::string> as_paths(const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  paths.reserve(patterns.size());
  for (const std::string& pattern : patterns) {
    paths.push_back(pattern.starts_with('/') ? pattern : "/" + pattern);
  }
  return paths;
}

std::string child_of(const std::string& path, const std::string& name) {
  return path == "/" ? "/" + name : path + "/" + name;
}

class ZookeeperWatch : public Watching {
 public:
  ZookeeperWatch(const zookeeper::Endpoint& endpoint, const Watching& watching)
      : Watching(watching),
        display_(endpoint.display()),
        wanted_({.locks = as_paths(request_.locks), .exclude = as_paths(request_.exclude)}),
        session_(endpoint, request_.command_timeout, env_, nullptr),
        locks_(request_.most_locks) {
    for (const std::string& pattern : wanted_.locks) {
      const std::string prefix = prefix_of(pattern);
      const std::size_t slash = prefix.rfind('/');
      roots_.insert(slash == 0 ? "/" : prefix.substr(0, slash));
    }
  }
  /// Closes the session, so that the server drops its watches now rather than when it expires.
  ~ZookeeperWatch() { session_.close(); }

  void begin() {
    need(session_.connect(kSessionTimeout, stop_));
    std::vector<ZkRequest> requests;
    for (const std::string& root : roots_) requests.push_back({ZkRequest::Kind::children, root});
    const auto answers = ask(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Code code = answers[i].code;
      // The node may be created later.
      if (code == Code::ok || code == Code::no_node) continue;
      throw Failure(
          fmt::format("{}: {}: {}", display_, requests[i].path, zookeeper::describe(code)));
    }
  }

  void run() {
    reporter().facts(
        {.store = "zookeeper",
         .endpoint = display_,
         .way = "children watches",
         .accuracy = Accuracy::at_least,
         .waiters = "the sequence nodes behind the holder's; clients that wait for a single "
                    "node are not seen; the queue of Curator's semaphores",
         .unseen = {"contenders that come and go between two looks: the server tells their "
                    "number but not whether they held the lock",
                    "whether a node was deleted by its client or ended with its session"}});
    reporter().restored();
    const bool proposes = wanted_.locks.empty();
    const std::uint64_t cost = proposes ? 1 : kPerVisit;
    TimePoint propose_at = env_.now();
    bool initial = true;
    for (const std::string& root : roots_) visit(root);
    while (!stopped()) {
      if (proposes && env_.now() >= propose_at) {
        visit("/");
        propose_at = env_.now() + kProposeAgain;
      }
      proposes ? propose_some() : list_some(initial);
      if (to_visit_.empty()) initial = false;
      const TimePoint now = env_.now();
      const TimePoint until = to_visit_.empty() ? now + kListenFor : budget_.next(cost, now);
      const auto events = need(session_.events(std::min(until - now, kListenFor), stop_));
      for (const std::string& path : events) visit(path);
      reporter().missed(locks_.take_missed(), "contenders that came and went between two looks");
      reporter().missed(locks_.take_unfollowed(), "more locks than are followed at once");
    }
  }

 private:
  std::vector<zookeeper::Reply> ask(const std::vector<ZkRequest>& requests) {
    return need(session_.call(requests, {}, stop_, zookeeper::Session::Refusal::is_an_answer));
  }

  void visit(const std::string& path) {
    if (queued_.insert(path).second) to_visit_.push_back(path);
  }
  std::string next_visit() {
    std::string path = std::move(to_visit_.front());
    to_visit_.pop_front();
    queued_.erase(path);
    return path;
  }

  /// Whether this node or one below it may be a watched lock.
  bool concerns(const std::string& path) const {
    const auto depth = static_cast<std::size_t>(std::ranges::count(path, '/'));
    if (depth > kDeepest || path == "/zookeeper") return false;
    const std::vector<std::string>& patterns = wanted_.locks;
    return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
             const std::string prefix = prefix_of(pattern);
             return path.starts_with(prefix) || prefix.starts_with(path + "/") || prefix == path;
           });
  }

  void list_some(bool initial) {
    std::vector<ZkRequest> requests;
    while (!to_visit_.empty() && requests.size() < kMostVisits &&
           budget_.spend(kPerVisit, env_.now())) {
      requests.push_back({ZkRequest::Kind::watch_and_count, next_visit()});
    }
    if (requests.empty()) return;
    const TimePoint asked_at = env_.now();
    const auto answers = timed([&] { return ask(requests); });
    std::vector<ZkRequest> owners;
    std::vector<std::pair<std::string, std::string>>
        contenders;  // a node's path and child; "" for the node itself
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::string& path = requests[i].path;
      const auto& answer = answers[i];
      if (answer.code == Code::no_node) {
        if (auto seen = locks_.gone(path, asked_at)) reporter().seen(*std::move(seen));
        if (roots_.contains(path)) owners.push_back({ZkRequest::Kind::watch_exists, path});
        continue;
      }
      if (!answer.done()) {
        reporter().missed(
            1, fmt::format("nodes that may not be read: {}", zookeeper::describe(answer.code)));
        continue;
      }
      const auto listed = locks_.listed(path, answer.children, answer.children_made, initial);
      for (const std::string& name : listed.others) {
        if (concerns(child_of(path, name))) visit(child_of(path, name));
      }
      if (!is_wanted(wanted_, path)) continue;
      for (const std::string& name : listed.contenders) contenders.emplace_back(path, name);
      if (answer.children.empty() && locks_.may_be_single(path)) {
        contenders.emplace_back(path, "");
      }
    }
    ask_owners(contenders, std::move(owners), requests.size(), initial);
    for (const ZkRequest& request : requests) {
      if (!is_wanted(wanted_, request.path)) continue;
      reporter().seen(locks_.settle(request.path, asked_at, initial));
    }
  }

  /// Asks for the sessions of contenders and, in the same batch, `others`. Beyond kMostOwnersAsked,
  /// contenders keep the owner from their name.
  void ask_owners(const std::vector<std::pair<std::string, std::string>>& contenders,
                  std::vector<ZkRequest> others, std::size_t visits, bool initial) {
    std::vector<ZkRequest> requests;
    for (const auto& [path, name] : contenders) {
      if (requests.size() == kMostOwnersAsked) break;
      requests.push_back({ZkRequest::Kind::exists, name.empty() ? path : child_of(path, name)});
    }
    const std::size_t asked = requests.size();
    // Each visit has already paid for one.
    budget_.owe(others.size() + asked - std::min(asked, visits));
    requests.insert(requests.end(), others.begin(), others.end());
    if (requests.empty()) return;
    const auto answers = ask(requests);
    const WallTime wall = env_.wall_now();
    const TimePoint now = env_.now();
    for (std::size_t i = 0; i < asked; ++i) {
      const auto& answer = answers[i];
      if (!answer.done()) continue;  // gone; an event will report it
      const auto& [path, name] = contenders[i];
      std::optional<TimePoint> since;
      const Duration age = wall.time_since_epoch() - std::chrono::milliseconds(answer.made_at_ms);
      if (initial && age >= Duration::zero() && age < kLongestDuration) since = now - age;
      if (name.empty()) {
        reporter().seen(locks_.single(path, answer.owner, answer.created_by, since, now, initial));
        continue;
      }
      locks_.owned(path, name, answer.owner, since);
      if (answer.owner == 0 && concerns(child_of(path, name))) visit(child_of(path, name));
    }
    // Visit roots that exist by now: there was no event for their creation.
    for (std::size_t i = asked; i < requests.size(); ++i) {
      if (answers[i].done()) visit(requests[i].path);
    }
  }

  /// Visits nodes without setting watches, so all are visited again periodically.
  void propose_some() {
    constexpr std::size_t kMostNodes = 100'000;
    if (to_visit_.empty() || !budget_.spend(1, env_.now())) return;
    const std::string path = next_visit();
    const auto answer = ask({{ZkRequest::Kind::children, path}}).front();
    if (!answer.done()) return;
    // A fresh state: each listing is judged by itself here.
    ZookeeperLocks once(1);
    const auto listed = once.listed(path, answer.children, 0, true);
    if (!listed.contenders.empty()) reporter().proposed(generalised(path));
    for (const std::string& name : listed.others) {
      const std::string child = child_of(path, name);
      if (queued_.size() < kMostNodes && concerns(child)) visit(child);
    }
  }

  const std::string display_;
  const Request wanted_;  ///< its patterns, as paths
  zookeeper::Session session_;
  ZookeeperLocks locks_;
  std::set<std::string> roots_;
  std::deque<std::string> to_visit_;
  std::unordered_set<std::string> queued_;  ///< the same paths, for lookup
};

}  // namespace

Made make_zookeeper_source(const std::string& url, const Request& request) {
  return one_server<ZookeeperWatch>(url, request, zookeeper::parse_endpoint);
}

}  // namespace lockbench::watch
