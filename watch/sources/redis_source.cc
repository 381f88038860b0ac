#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "strategies/redis/client/connection.h"
#include "strategies/redis/client/protocol.h"
#include "watch/sources/keys.h"
#include "watch/sources/redis_book.h"
#include "watch/sources/redis_look.h"
#include "watch/sources/server_source.h"

namespace lockbench::watch {
namespace {

using redis::Command;
using redis::Reply;
using std::chrono::milliseconds;
using Way = RedisBook::Way;

constexpr std::string_view kInvalidations = "__redis__:invalidate";
/// Longest wait for a message, so that due work is noticed.
constexpr Duration kTick = milliseconds(50);
/// How often it looks at waiters, and checks the connection.
constexpr Duration kWaitersEvery = milliseconds(250), kPingEvery = milliseconds(500);

/// `no_notifications`: why there are none; empty: they are used.
SourceFacts facts_of(const std::string& endpoint, const std::string& no_notifications) {
  SourceFacts facts{.store = "redis",
                    .endpoint = endpoint,
                    .way = "keyspace notifications",
                    .accuracy = Accuracy::exact,
                    .waiters = "PUBSUB NUMSUB of Redisson's channels, LLEN and ZCARD of queues",
                    .unseen = {"attempts that were refused",
                               "locks named like a part of another watched lock, such as "
                               "lock:a:queue beside lock:a"}};
  if (no_notifications.empty()) {
    facts.unseen.emplace_back(
        "FLUSHDB and FLUSHALL: deleted keys count as held until their TTL ends");
    return facts;
  }
  facts.way = "CLIENT TRACKING";
  facts.accuracy = Accuracy::at_least;
  facts.unseen.insert(facts.unseen.end(),
                      {"single changes of a key within one turn of the server's loop: they are "
                       "reported as one, so figures of contended keys are lower bounds",
                       "overwritten locks (stolen), as " + no_notifications});
  return facts;
}

/// Scans the keys that match one of the patterns, over and over.
class KeyScan {
 public:
  /// Without patterns: scans all keys.
  KeyScan(redis::Connection& connection, const std::vector<std::string>& patterns)
      : connection_(connection) {
    for (const std::string& pattern : patterns) globs_.push_back(redis_glob(pattern));
    if (globs_.empty()) globs_.emplace_back("*");
  }

  /// Sends one SCAN. Keys may come twice.
  std::vector<std::string> step(const std::stop_token& stop) {
    const Reply reply =
        need(connection_.call({"SCAN", cursor_, "MATCH", globs_[pattern_], "COUNT", "250"}, stop));
    std::vector<std::string> keys;
    const auto& parts = reply.elements;
    const bool fits = reply.type == Reply::Type::array && parts.size() == 2 &&
                      parts[0].type == Reply::Type::string && parts[1].type == Reply::Type::array;
    if (!fits) throw Failure(connection_.display() + ": unexpected reply to SCAN");
    for (const Reply& key : parts[1].elements) {
      if (key.type == Reply::Type::string) keys.push_back(key.text);
    }
    cursor_ = parts[0].text;
    if (cursor_ == "0") pattern_ = (pattern_ + 1) % globs_.size();
    return keys;
  }
  /// Whether the next step starts a new pass.
  bool at_start() const { return pattern_ == 0 && cursor_ == "0"; }

 private:
  redis::Connection& connection_;
  std::vector<std::string> globs_;
  std::size_t pattern_ = 0;
  std::string cursor_ = "0";
};

/// Finds keys that look like locks, if the user named none.
class KeyProposals {
 public:
  /// Whether the key's pattern is new, so that it is worth a look.
  bool is_new(const std::string& key) {
    const auto named = companion_of(key);
    if (named && (named->lock.empty() || patterns_.contains(generalised(named->lock))))
      return false;
    const std::string pattern = generalised(key);
    if (patterns_.contains(pattern) || others_.contains(pattern)) return false;
    // With very many patterns, only look at keys whose name suggests a lock.
    const bool many = others_.size() >= kMostOthers;
    return patterns_.size() < kMostPatterns && (!many || sounds_like_lock(key));
  }
  /// The pattern of its name; nothing if it does not look like a lock.
  std::optional<std::string> judge(const std::string& key, const RedisLook::Answer& looked) {
    constexpr Duration kLongestTtl = std::chrono::minutes(10);
    const std::string pattern = generalised(key);
    const auto& state = looked.state;
    if (state && state->holders.empty()) return std::nullopt;
    if (state) {
      const std::string& owner = state->holders.front().owner;
      const bool is_hash = state->shape == Shape::redisson_hash;
      const bool is_brief = state->ttl_left && *state->ttl_left <= kLongestTtl;
      const bool names_owner =
          is_hash ? owner.find(':') != std::string::npos : is_brief && is_random(owner);
      if (names_owner || sounds_like_lock(key)) return *patterns_.insert(pattern).first;
    }
    if (others_.size() < kMostOthers) others_.insert(pattern);
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kMostPatterns = 1000, kMostOthers = 10'000;

  std::set<std::string> patterns_;  ///< proposed
  std::set<std::string> others_;    ///< looked at: no locks
};

/// A connection for push messages, after commands such as SUBSCRIBE. For one thread. A failure
/// other than an error reply throws Failure. Reports its commands to its Env.
class RedisFeed {
 public:
  RedisFeed(redis::Endpoint endpoint, Duration command_timeout, Env& env)
      : endpoint_(std::move(endpoint)),
        display_(endpoint_.display()),
        timeout_(command_timeout),
        env_(env) {}

  /// Sends a command and reads one message, so only call it while no push messages can come. An
  /// error reply is of kind `rejected`.
  StoreResult<Reply> call(const std::vector<std::string_view>& command,
                          const std::stop_token& stop) {
    if (!transport_) connect(stop);
    const CommandInfo info{.store = "redis", .endpoint = display_, .name = command[0], .key = {}};
    env_.before_command(info);
    auto reply = redis::exchange_once(*transport_, reader_, command, timeout_, stop);
    env_.after_command(info, reply ? CommandEnd::answered : CommandEnd::lost);
    if (!reply) fail(StoreError::Kind::unanswered, reply.error());
    if (reply->type != Reply::Type::error) return *std::move(reply);
    return failure_at(display_, StoreError::Kind::rejected, reply->text);
  }
  /// After a command: the next message, which may be an error reply; nothing after `longest`. A
  /// stop ends the wait.
  std::optional<Reply> next(Duration longest, const std::stop_token& stop) {
    auto reply = redis::read_reply(*transport_, reader_, longest, stop);
    if (!reply) fail(StoreError::Kind::unanswered, reply.error());
    return *std::move(reply);
  }
  /// Sends PING and calls `take` for each message until its answer: for all that the server had to
  /// tell when it received the PING.
  template <class Take>
  void catch_up(const std::stop_token& stop, Take take) {
    const CommandInfo info{.store = "redis", .endpoint = display_, .name = "PING", .key = {}};
    env_.before_command(info);
    std::string bytes;
    redis::append_command(bytes, std::to_array<std::string_view>({"PING"}));
    const Transport::Status sent = transport_->send(bytes, timeout_);
    if (sent != Transport::Status::ok) {
      fail(StoreError::Kind::not_sent, describe(sent, timeout_, transport_.get()));
    }
    const TimePoint end = env_.now() + timeout_;
    while (!stop.stop_requested()) {
      const auto said = next(std::max(end - env_.now(), Duration::zero()), stop);
      if (!said && !stop.stop_requested()) {
        fail(StoreError::Kind::unanswered, "no answer to PING");
      }
      if (!said) break;
      if (!said->elements.empty() && said->elements[0].is_text("pong")) break;
      take(*said);
    }
    env_.after_command(info, CommandEnd::answered);
  }
  void close() noexcept {
    transport_.reset();
    reader_ = {};
  }

 private:
  void connect(const std::stop_token& stop) {
    auto transport = redis::connect_server(endpoint_, timeout_, stop);
    if (!transport) fail(StoreError::Kind::not_sent, transport.error());
    need(redis::greet(endpoint_, **transport, reader_, timeout_, stop, nullptr));
    transport_ = *std::move(transport);
  }

  [[noreturn]] void fail(StoreError::Kind kind, std::string_view why) const {
    throw Failure(failure_at(display_, kind, why).value().message);
  }

  const redis::Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  std::unique_ptr<Transport> transport_;
  redis::ReplyReader reader_;
};

class RedisWatch : public Watching {
 public:
  RedisWatch(const redis::Endpoint& endpoint, const Watching& watching)
      : Watching(watching),
        endpoint_(endpoint),
        connection_(
            redis::make_connection_factory()->make(endpoint, request_.command_timeout, env_)),
        feed_(endpoint, request_.command_timeout, env_),
        look_(*connection_, watching),
        scan_(*connection_, request_.locks) {}

  void begin() {
    need(connection_->connect(stop_));
    connected_times_ = connection_->times_connected();
    check_rights();
    if (request_.locks.empty()) return;
    if (notifies_of_all() && subscribe_to_keys()) {
      no_notifications_.clear();
    } else {
      way_ = Way::tracking;
      track();
    }
    book_ = std::make_unique<RedisBook>(request_.most_locks, way_);
  }

  void run() {
    facts_ = facts_of(name_of_endpoint(endpoint_), no_notifications_);
    if (!request_.locks.empty()) facts_.progress = "looking for keys";
    reporter().facts(facts_);
    reporter().restored();
    if (request_.locks.empty()) return propose();
    while (!stopped()) {
      hear();
      book_->expire(env_.now());
      scan();
      look();
      keep_up();
      show_progress();
    }
  }

 private:
  void propose() {
    KeyProposals proposals;
    while (spend(1)) {
      for (const std::string& key : scan_.step(stop_)) {
        if (!proposals.is_new(key)) continue;
        if (!spend(RedisLook::kQuestions)) return;
        auto pattern = proposals.judge(key, look_.one(key));
        if (pattern) reporter().proposed(*std::move(pattern));
      }
    }
  }

  void check_rights() {
    // Test permissions on a key that does not exist.
    const std::vector<std::string> prefixes = merged_prefixes(request_.locks);
    for (const std::string& prefix : prefixes) {
      const std::string key = prefix + "lockbench-watch-looks";
      const std::vector<std::string_view> commands[] = {
          {"PTTL", key}, {"GET", key}, {"GETRANGE", key, "0", "0"}, {"HSCAN", key, "0"}};
      for (const auto& command : commands) need(connection_->call(command, stop_));
    }
  }

  /// Nothing if the server rejects the command, and why in `refusal`.
  static std::optional<Reply> allowed(StoreResult<Reply> reply, std::string* refusal = nullptr) {
    if (!reply && reply.error().kind == StoreError::Kind::rejected) {
      if (refusal != nullptr) *refusal = reply.error().message;
      return std::nullopt;
    }
    return need(std::move(reply));
  }

  /// Whether keyspace notifications cover all events of locks.
  bool notifies_of_all() {
    no_notifications_ = "notify-keyspace-events does not have K, g, $, h and x";
    std::string refusal;
    const auto flags =
        allowed(connection_->call({"CONFIG", "GET", "notify-keyspace-events"}, stop_), &refusal);
    if (!flags) no_notifications_ = "CONFIG GET notify-keyspace-events was refused: " + refusal;
    return flags && flags->elements.size() == 2 && notifies_of_locks(flags->elements[1].text);
  }

  bool subscribe_to_keys() {
    std::vector<std::string> words{"PSUBSCRIBE"};
    for (const std::string& pattern : request_.locks) {
      words.push_back(fmt::format("__keyspace@{}__:{}", endpoint_.database, redis_glob(pattern)));
    }
    const std::vector<std::string_view> views(words.begin(), words.end());
    std::string refusal;
    if (allowed(feed_.call(views, stop_), &refusal)) return true;
    no_notifications_ = "PSUBSCRIBE was refused: " + refusal;
    return false;
  }

  /// Without notifications, only tracking tells of changes.
  void track() {
    const Reply id = need(feed_.call({"CLIENT", "ID"}, stop_));
    need(feed_.call({"SUBSCRIBE", kInvalidations}, stop_));
    // If some notifications are enabled, they tell how holdings end.
    subscribe_to_keys();
    const std::string reader = std::to_string(id.integer);
    std::vector<std::string> words{"CLIENT", "TRACKING", "ON", "REDIRECT", reader, "BCAST"};
    for (const std::string& prefix : merged_prefixes(request_.locks)) {
      if (prefix.empty()) continue;
      words.emplace_back("PREFIX");
      words.push_back(prefix);
    }
    const std::vector<std::string_view> views(words.begin(), words.end());
    need(connection_->call(Command(views), stop_));
  }

  /// Handles messages; waits for one if nothing else is due.
  void hear() {
    constexpr int kMostMessages = 4096;
    const TimePoint now = env_.now();
    TimePoint until = std::min(now + kTick, book_->next_expiry());
    if (!book_->nothing_waits()) until = std::min(until, budget_.next(RedisLook::kQuestions, now));
    if (scan_is_due()) until = std::min(until, budget_.next(1, now));
    Duration longest = std::max(until - now, Duration::zero());
    for (int i = 0; i < kMostMessages && !stopped(); ++i) {
      const auto said = feed_.next(longest, stop_);
      if (!said) return;
      take(*said);
      longest = Duration::zero();
    }
  }

  void catch_up() {
    feed_.catch_up(stop_, [this](const Reply& said) { take(said); });
  }

  void take(const Reply& said) {
    const TimePoint now = env_.now();
    if (const auto changed = read_invalidation(said)) {
      if (changed->all) book_->all_changed(now);
      for (const std::string& key : changed->keys) {
        if (is_lock(key) && !book_->changed(key, now)) no_room();
      }
      return;
    }
    const auto message = read_message(said);
    if (!message) return;
    const std::size_t colon = message->channel.find(':');
    if (colon == std::string::npos) return;
    const std::string key = message->channel.substr(colon + 1);
    const KeyEvent event = key_event_of(message->payload);
    if (is_lock(key) && !book_->changed(key, event, now)) no_room();
  }

  void no_room() {
    reporter().missed(1, fmt::format("more than {} locks at once", request_.most_locks));
  }

  /// Whether the key is a watched lock. Notes companion keys.
  bool is_lock(const std::string& key) {
    if (!is_wanted(request_, key)) return false;
    const auto companion = companion_of(key);
    if (!companion) return true;
    look_.know(*companion);
    return !book_->is_companion(key, *companion);
  }

  /// Scans alternate with looks: with many keys, scans alone would use up the budget.
  bool scan_is_due() const { return !scanned_ && (!looks_turn_ || book_->nothing_waits()); }

  void scan() {
    if (!scan_is_due() || !budget_.spend(1, env_.now())) return;
    looks_turn_ = true;
    for (const std::string& key : scan_.step(stop_)) {
      if (is_lock(key)) book_->found(key, env_.now());
    }
    scanned_ = scan_.at_start();
    if (scanned_) book_->all_found();
  }

  void look() {
    reporter().seen(book_->take_ready());
    while (!stopped()) {
      auto answers = look_.batch(*book_);
      if (answers.empty()) break;
      looks_turn_ = false;
      if (way_ == Way::notifications) {
        // Events that came before an answer explain it, and must be taken first.
        budget_.owe(1);
        catch_up();
        reporter().seen(book_->take_ready());
      }
      for (RedisLook::Answer& answer : answers) {
        if (!answer.state && !companion_of(answer.key)) reporter().no_lock(answer.key);
        reporter().seen(book_->looked(answer.key, answer.kind, std::move(answer.state),
                                      answer.asked_at, answer.answered_at));
      }
    }
    reporter().missed(book_->take_missed(),
                      fmt::format("beyond {:.0f} commands a second", request_.budget));
    const TimePoint since = book_->waits_since();
    // Looks that are on time are no backlog.
    reporter().seen_until(env_.now() - since > kTick ? since : TimePoint::max());
  }

  /// Nothing is exact before each key from before the watch has been looked at.
  void show_progress() {
    if (facts_.progress.empty()) return;
    constexpr Duration kEvery = std::chrono::seconds(1);
    const std::uint64_t left = book_->first_looks_left();
    const bool done = scanned_ && left == 0;
    if (!done && env_.now() < progress_at_) return;
    progress_at_ = env_.now() + kEvery;
    facts_.progress = done       ? ""
                      : scanned_ ? fmt::format("{} keys left", left)
                                 : fmt::format("looking for keys, {} left so far", left);
    reporter().facts(facts_);
  }

  /// Counts the waiters of held locks, and checks the connection: tracking ends with it.
  void keep_up() {
    const TimePoint now = env_.now();
    if (now >= waiters_at_) {
      waiters_at_ = now + kWaitersEvery;
      reporter().seen(look_.waiters(*book_));
    }
    if (now >= ping_at_) {
      ping_at_ = now + kPingEvery;
      budget_.owe(1);
      timed([&] { return allowed(connection_->call({"PING"}, stop_)); });
      // Without this, a feed that silently died would look like locks that nobody takes.
      budget_.owe(1);
      catch_up();
    }
    if (connection_->times_connected() == connected_times_) return;
    throw Failure(connection_->display() + ": the connection was lost");
  }

  const redis::Endpoint& endpoint_;
  std::unique_ptr<redis::Connection> connection_;
  RedisFeed feed_;
  RedisLook look_;
  KeyScan scan_;
  Way way_ = Way::notifications;
  std::unique_ptr<RedisBook> book_;
  std::uint64_t connected_times_ = 0;
  SourceFacts facts_;
  std::string no_notifications_;  ///< why; empty: they are used
  bool scanned_ = false;          ///< all keys from before the watch have been found
  bool looks_turn_ = false;       ///< if a key waits, the next command is for a look
  TimePoint waiters_at_{}, ping_at_{}, progress_at_{};
};

}  // namespace

Made make_redis_source(const std::string& url, const Request& request) {
  const auto parse = [](const std::string& text) {
    auto endpoint = redis::parse_endpoint(text);
    if (!endpoint || endpoint->cluster.empty()) return endpoint;
    return decltype(endpoint)(tl::unexpect,
                              "a watch sees one server of a cluster: name it by a "
                              "URL redis://HOST:PORT");
  };
  return one_server<RedisWatch>(url, request, parse);
}

}  // namespace lockbench::watch
