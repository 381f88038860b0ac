#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>

#include "strategies/zookeeper/client/link.h"
#include "strategies/zookeeper/client/messages.h"
#include "watch/sources/patterns.h"
#include "watch/sources/server_source.h"
#include "watch/sources/zookeeper_locks.h"

namespace lockbench::watch {
namespace {

using zookeeper::Code;
using zookeeper::Packets;
using zookeeper::Xid;
using ZkRequest = zookeeper::Request;

constexpr Duration kListenFor = std::chrono::milliseconds(20);
constexpr Duration kProposeAgain = std::chrono::seconds(30);
constexpr std::size_t kMostVisits = 64, kMostOwnersAsked = 256, kDeepest = 16;
/// A list of children, and whose a new one is.
constexpr std::uint64_t kPerVisit = 2;

/// Long enough for a busy machine, short enough to notice soon that the server is gone.
constexpr Duration kSessionTimeout = std::chrono::seconds(6);
/// Of a server that sends without end.
constexpr std::size_t kMostUnread = 100'000;

/// A session for reading and watching, which owns nothing that would end with it. For one thread,
/// which must call events() often, as that keeps it alive. After a failure it is closed, with all
/// watches, and of no use any more. Reports each request to its Env.
class ZookeeperObserver {
 public:
  ZookeeperObserver(zookeeper::Endpoint endpoint, Duration command_timeout, Env& env)
      : endpoint_(std::move(endpoint)),
        display_(endpoint_.display()),
        timeout_(command_timeout),
        env_(env),
        link_(endpoint_, env, {}) {}
  ZookeeperObserver(const ZookeeperObserver&) = delete;
  ZookeeperObserver& operator=(const ZookeeperObserver&) = delete;
  ~ZookeeperObserver() { close(); }

  StoreResult<void> connect(const std::stop_token& stop) {
    if (auto greeted = greet_server(stop); !greeted) return greeted;
    connected_ = true;
    heard_at_ = pinged_at_ = env_.now();
    if (endpoint_.user.empty()) return {};
    if (!link_.packets().send(zookeeper::authenticate(endpoint_.user, endpoint_.password))) {
      return broken("the server closed it");
    }
    return {};
  }

  /// Pipelines the requests, which must change nothing, and waits for the answers.
  StoreResult<std::vector<zookeeper::Reply>> call(std::span<const ZkRequest> requests,
                                                  const std::stop_token& stop) {
    const auto info = [&](const ZkRequest& request) {
      return CommandInfo{.store = "zookeeper",
                         .endpoint = display_,
                         .name = zookeeper::name_of(request.kind),
                         .key = request.path};
    };
    requests_ = requests;
    answers_.clear();
    std::string all;
    std::int32_t xid = next_answer_;
    for (const ZkRequest& request : requests) {
      env_.before_command(info(request));
      all += zookeeper::write(xid, request, endpoint_.path, false);
      xid = after(xid);
    }
    const TimePoint give_up_at = env_.now() + timeout_;
    StoreResult<void> heard;
    if (!link_.packets().send(all)) heard = broken("the server closed it, or does not read");
    while (heard && answers_.size() < requests.size()) {
      if (env_.now() >= give_up_at) heard = broken("no answer within " + format_duration(timeout_));
      if (heard && stop.stop_requested()) heard = broken("stopped while waiting for the answer");
      if (heard) heard = receive(Packets::kPace, stop);
    }
    requests_ = {};
    for (const ZkRequest& request : requests) {
      env_.after_command(info(request), heard ? CommandEnd::answered : CommandEnd::lost);
    }
    if (!heard) return tl::unexpected(std::move(heard.error()));
    return std::move(answers_);
  }

  /// The nodes of which something has changed; waits for at most `longest` for the first.
  StoreResult<std::vector<std::string>> events(Duration longest, const std::stop_token& stop) {
    const TimePoint until = env_.now() + longest;
    // At least one look; each further one waits.
    while (true) {
      const TimePoint now = env_.now();
      const Duration left = std::clamp(until - now, Duration::zero(), Packets::kPace);
      if (auto heard = receive(events_.empty() ? left : Duration::zero(), stop); !heard) {
        return tl::unexpected(std::move(heard.error()));
      }
      if (!events_.empty() || stop.stop_requested() || env_.now() >= until) break;
    }
    const TimePoint now = env_.now();
    if (now - heard_at_ >= granted_ * 2 / 3) return broken("the server was silent");
    if (now - pinged_at_ >= granted_ / 3) {
      pinged_at_ = now;
      if (!link_.packets().send(zookeeper::ping())) return broken("the server closed it");
    }
    return std::exchange(events_, {});
  }

  void close() {
    // So that its watches do not burden the server until the session would expire.
    if (std::exchange(connected_, false))
      link_.packets().send(zookeeper::end_session(next_answer_));
    link_.drop();
  }

 private:
  static std::int32_t after(std::int32_t xid) {
    return xid == std::numeric_limits<std::int32_t>::max() ? 1 : xid + 1;
  }

  StoreResult<void> greet_server(const std::stop_token& stop) {
    const TimePoint give_up_at = env_.now() + timeout_;
    const auto servers = static_cast<std::int64_t>(endpoint_.hosts.size());
    link_.begin(std::max<Duration>(timeout_ / servers, std::chrono::milliseconds(50)));
    while (env_.now() < give_up_at && !link_.is_hopeless()) {
      if (stop.stop_requested()) return broken("stopped while connecting");
      const auto greeting = link_.advance({}, kSessionTimeout, env_, Packets::kPace);
      if (!greeting) continue;
      granted_ = greeting->timeout;
      if (granted_ > Duration::zero()) return {};
      return broken("it grants no session");
    }
    return broken("no ZooKeeper answers: " + link_.why());
  }

  /// Takes what comes within `longest`.
  StoreResult<void> receive(Duration longest, const std::stop_token& stop) {
    const auto status = link_.packets().receive(longest, stop);
    if (status == Transport::Status::closed) return broken(link_.packets().why_closed());
    if (status != Transport::Status::ok) return {};
    heard_at_ = env_.now();
    while (true) {
      const auto packet = link_.packets().next();
      if (!packet) return broken(packet.error());
      if (!*packet) return {};
      if (const std::string wrong = take(**packet); !wrong.empty()) return broken(wrong);
    }
  }

  /// What is wrong with a packet; empty if it is right.
  std::string take(std::string_view packet) {
    zookeeper::Reader from(packet);
    const auto header = read_header(from);
    if (!header) return header.error();
    switch (header->xid) {
      case Xid::kEvent: {
        auto event = read_event(from, endpoint_.path);
        if (!event) return std::move(event.error());
        if (events_.size() >= kMostUnread) return "events without end";
        events_.push_back(std::move(event->path));
        return {};
      }
      case Xid::kPing:
        return {};
      case Xid::kAuth:
        return header->code == Code::ok ? std::string() : zookeeper::describe(header->code);
      default:
        break;
    }
    if (answers_.size() >= requests_.size() || header->xid != next_answer_) {
      return "unexpected or out-of-order answer";
    }
    const ZkRequest& request = requests_[answers_.size()];
    next_answer_ = after(next_answer_);
    zookeeper::Reply& answer = answers_.emplace_back();
    answer.code = header->code;
    if (zookeeper::ends_session(header->code)) return zookeeper::describe(header->code);
    if (header->code != Code::ok) return {};
    auto reply = read_reply(request, endpoint_.path, from);
    if (!reply) return std::move(reply.error());
    answer = *std::move(reply);
    return {};
  }

  tl::unexpected<StoreError> broken(std::string_view why) {
    link_.drop();
    connected_ = false;
    return tl::unexpected(
        StoreError{StoreError::Kind::unanswered, fmt::format("{}: {}", display_, printable(why))});
  }

  const zookeeper::Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  zookeeper::Link link_;
  bool connected_ = false;
  Duration granted_{};  ///< the session's timeout
  TimePoint heard_at_{}, pinged_at_{};
  std::span<const ZkRequest> requests_;    ///< of the call that waits; no others have answers
  std::vector<zookeeper::Reply> answers_;  ///< so far
  std::int32_t next_answer_ = 1;
  std::vector<std::string> events_;
};

/// Patterns are paths; a user may leave out the first slash.
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

/// One session's time of watching.
class ZookeeperWatch {
 public:
  ZookeeperWatch(const zookeeper::Endpoint& endpoint, const Request& request, Env& env,
                 Budget& budget)
      : display_(endpoint.display()),
        patterns_(as_paths(request.locks)),
        env_(env),
        budget_(budget),
        observer_(endpoint, request.command_timeout, env),
        locks_(request.most_locks) {
    for (const std::string& pattern : patterns_) {
      const std::string prefix = prefix_of(pattern);
      const std::size_t slash = prefix.rfind('/');
      roots_.insert(slash == 0 ? "/" : prefix.substr(0, slash));
    }
  }

  /// Connects, and checks that it may read.
  StoreResult<void> begin(const std::stop_token& stop) {
    if (auto connected = observer_.connect(stop); !connected) return connected;
    std::vector<ZkRequest> requests;
    for (const std::string& root : roots_) requests.push_back({ZkRequest::Kind::children, root});
    const auto answers = observer_.call(requests, stop);
    if (!answers) return tl::unexpected(answers.error());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto& answer = (*answers)[i];
      // A node that does not exist yet may be made later.
      if (answer.done() || answer.code == Code::no_node) continue;
      return tl::unexpected(StoreError{
          StoreError::Kind::rejected,
          fmt::format("{}: {}: {}", display_, requests[i].path, zookeeper::describe(answer.code))});
    }
    return {};
  }

  StoreResult<void> run(Reporter& reporter, const std::stop_token& stop) {
    reporter.facts(
        {.store = "zookeeper",
         .endpoint = display_,
         .way = "children watches",
         .accuracy = Accuracy::at_least,
         .waiters = "the sequence nodes behind the holder's; not those who wait for a lock "
                    "that is a single node",
         .unseen = {"contenders that come and go between two looks: their number is known "
                    "from the sequence, not whether they held the lock",
                    "whether a node was deleted by its client or ended with its session"}});
    reporter.restored();
    const bool proposes = patterns_.empty();
    const std::uint64_t cost = proposes ? 1 : kPerVisit;
    TimePoint propose_at = env_.now();
    bool initial = true;
    for (const std::string& root : roots_) visit(root);
    while (!stop.stop_requested()) {
      if (proposes && env_.now() >= propose_at) {
        visit("/");
        propose_at = env_.now() + kProposeAgain;
      }
      auto listed = proposes ? propose_some(reporter, stop) : list_some(reporter, initial, stop);
      if (!listed) return listed;
      if (to_visit_.empty()) initial = false;
      const TimePoint now = env_.now();
      const TimePoint until = to_visit_.empty() ? now + kListenFor : budget_.next(cost, now);
      auto events = observer_.events(std::min(until - now, kListenFor), stop);
      if (!events) return tl::unexpected(std::move(events.error()));
      for (const std::string& path : *events) visit(path);
      tell_missed(reporter);
    }
    observer_.close();
    return {};
  }

 private:
  void visit(const std::string& path) {
    if (queued_.insert(path).second) to_visit_.push_back(path);
  }
  std::string next_visit() {
    std::string path = std::move(to_visit_.front());
    to_visit_.pop_front();
    queued_.erase(path);
    return path;
  }

  /// Whether a lock may be this node, or below it.
  bool concerns(const std::string& path) const {
    const auto depth = static_cast<std::size_t>(std::ranges::count(path, '/'));
    return depth <= kDeepest && path != "/zookeeper" &&
           std::ranges::any_of(patterns_, [&](const std::string& pattern) {
             const std::string prefix = prefix_of(pattern);
             return path.starts_with(prefix) || prefix.starts_with(path + "/") || prefix == path;
           });
  }

  StoreResult<void> list_some(Reporter& reporter, bool initial, const std::stop_token& stop) {
    std::vector<ZkRequest> requests;
    while (!to_visit_.empty() && requests.size() < kMostVisits &&
           budget_.spend(kPerVisit, env_.now())) {
      requests.push_back({ZkRequest::Kind::watch_children, next_visit()});
    }
    if (requests.empty()) return {};
    const TimePoint asked_at = env_.now();
    auto answers = budget_.ask(env_, [&] { return observer_.call(requests, stop); });
    if (!answers) return tl::unexpected(std::move(answers.error()));
    std::vector<ZkRequest> owners;
    std::vector<std::pair<std::string, std::string>>
        contenders;  // a node's path and a child, or ""
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::string& path = requests[i].path;
      const auto& answer = (*answers)[i];
      if (answer.code == Code::no_node) {
        if (auto seen = locks_.gone(path, asked_at)) reporter.seen(*std::move(seen));
        if (roots_.contains(path)) owners.push_back({ZkRequest::Kind::watch_exists, path});
        continue;
      }
      if (!answer.done()) {
        reporter.missed(
            1, fmt::format("nodes that may not be read: {}", zookeeper::describe(answer.code)));
        continue;
      }
      const auto listed = locks_.listed(path, answer.children);
      for (const std::string& name : listed.others) {
        if (concerns(child_of(path, name))) visit(child_of(path, name));
      }
      if (!matches_any(patterns_, path)) continue;
      for (const std::string& name : listed.contenders) contenders.emplace_back(path, name);
      if (answer.children.empty() && locks_.may_be_single(path)) {
        contenders.emplace_back(path, "");
      }
    }
    if (auto asked =
            ask_owners(contenders, std::move(owners), requests.size(), initial, reporter, stop);
        !asked)
      return asked;
    for (const ZkRequest& request : requests) {
      if (!matches_any(patterns_, request.path)) continue;
      reporter.seen(locks_.settle(request.path, asked_at, initial));
    }
    return {};
  }

  /// `others` are asked with them. Of a queue that is very long, those at the end go by their
  /// names.
  StoreResult<void> ask_owners(const std::vector<std::pair<std::string, std::string>>& contenders,
                               std::vector<ZkRequest> others, std::size_t visits, bool initial,
                               Reporter& reporter, const std::stop_token& stop) {
    std::vector<ZkRequest> requests;
    for (const auto& [path, name] : contenders) {
      if (requests.size() == kMostOwnersAsked) break;
      requests.push_back({ZkRequest::Kind::exists, name.empty() ? path : child_of(path, name)});
    }
    const std::size_t asked = requests.size();
    // One of each visit was paid for.
    budget_.owe(others.size() + asked - std::min(asked, visits));
    requests.insert(requests.end(), others.begin(), others.end());
    if (requests.empty()) return {};
    auto answers = observer_.call(requests, stop);
    if (!answers) return tl::unexpected(std::move(answers.error()));
    const WallTime wall = env_.wall_now();
    const TimePoint now = env_.now();
    for (std::size_t i = 0; i < asked; ++i) {
      const auto& answer = (*answers)[i];
      if (!answer.done()) continue;  // it is gone already, of which an event will tell
      const auto& [path, name] = contenders[i];
      std::optional<TimePoint> since;
      const Duration age = wall.time_since_epoch() - std::chrono::milliseconds(answer.made_at_ms);
      if (initial && age >= Duration::zero() && age < kLongestDuration) since = now - age;
      if (name.empty()) {
        reporter.seen(locks_.single(path, answer.owner, answer.created_by, since, now, initial));
        continue;
      }
      locks_.owned(path, name, answer.owner, since);
      if (answer.owner == 0 && concerns(child_of(path, name))) visit(child_of(path, name));
    }
    // A root that was made meanwhile tells no event.
    for (std::size_t i = asked; i < requests.size(); ++i) {
      if ((*answers)[i].done()) visit(requests[i].path);
    }
    return {};
  }

  /// Without watches: all nodes are gone through again from time to time.
  StoreResult<void> propose_some(Reporter& reporter, const std::stop_token& stop) {
    constexpr std::size_t kMostNodes = 100'000;
    if (to_visit_.empty() || !budget_.spend(1, env_.now())) return {};
    const std::string path = next_visit();
    const ZkRequest request{ZkRequest::Kind::children, path};
    auto answers = observer_.call({&request, 1}, stop);
    if (!answers) return tl::unexpected(std::move(answers.error()));
    const auto& answer = answers->front();
    if (!answer.done()) return {};
    // Each list stands for itself here.
    ZookeeperLocks once(1);
    const auto listed = once.listed(path, answer.children);
    if (!listed.contenders.empty()) reporter.proposed(generalised(path));
    for (const std::string& name : listed.others) {
      const std::string child = child_of(path, name);
      const auto depth = static_cast<std::size_t>(std::ranges::count(child, '/'));
      if (child != "/zookeeper" && depth <= kDeepest && queued_.size() < kMostNodes) visit(child);
    }
    return {};
  }

  void tell_missed(Reporter& reporter) {
    reporter.missed(locks_.take_missed(), "contenders that came and went between two looks");
    reporter.missed(locks_.take_unfollowed(), "more locks than are followed at once");
  }

  const std::string display_;
  const std::vector<std::string> patterns_;
  Env& env_;
  Budget& budget_;
  ZookeeperObserver observer_;
  ZookeeperLocks locks_;
  std::set<std::string> roots_;
  std::deque<std::string> to_visit_;
  std::unordered_set<std::string> queued_;  ///< the same
};

}  // namespace

Made make_zookeeper_source(const std::string& url, const Request& request) {
  return one_server<ZookeeperWatch>(url, request, zookeeper::parse_endpoint);
}

}  // namespace lockbench::watch
