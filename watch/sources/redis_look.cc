#include "watch/sources/redis_look.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "strategies/number.h"
#include "strategies/redis/client/protocol.h"
#include "watch/sources/patterns.h"

namespace lockbench::watch {
namespace {

using redis::Reply;
using redis::ReplyReader;

constexpr std::size_t kMostCompanions = 10'000;
constexpr std::size_t kMostAtOnce = 128;

/// Of a hash that is read as a whole: more than a lock's. Redis 7.0 counts fields and values.
constexpr std::string_view kMostOfHash = "2100";

/// What HSCAN answers, as the answer to HGETALL; nothing if there are more fields than it was asked
/// for.
Reply all_fields(Reply scanned) {
  if (scanned.type != Reply::Type::array) return scanned;
  const bool complete = scanned.elements.size() == 2 && scanned.elements[0].is_text("0");
  return complete ? std::move(scanned.elements[1]) : Reply();
}

std::optional<std::uint64_t> count_in(const Reply& reply) {
  if (reply.type != Reply::Type::integer || reply.integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(reply.integer);
}

/// Channel and number.
std::optional<std::uint64_t> subscribers_in(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
  return count_in(reply.elements[1]);
}

constexpr std::size_t kMostPatterns = 1000, kMostOthers = 10'000;

/// A random token: hexadecimal digits, a UUID, or base 64.
bool is_random(std::string_view owner) {
  constexpr std::size_t kLeastSize = 16, kMostSize = 128;
  if (owner.size() < kLeastSize || owner.size() > kMostSize) return false;
  const bool plain = std::ranges::all_of(owner, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '+' || c == '/' || c == '=' ||
           c == ':' || c == '.';
  });
  const bool digits =
      std::ranges::any_of(owner, [](unsigned char c) { return std::isdigit(c) != 0; });
  return plain && digits;
}

}  // namespace

void RedisLook::know(const Companion& companion) {
  auto& known = companion.what == Companion::What::queue ? queued_ : fenced_;
  if (companion.what == Companion::What::other || known.size() >= kMostCompanions) return;
  known.insert(companion.lock);
}

RedisLook::Question RedisLook::question_for(RedisBook::Turn turn) const {
  Question question{.turn = std::move(turn)};
  question.asked_as = question.turn.kind == KeyKind::unknown ? usual_ : question.turn.kind;
  question.redisson = question.asked_as == KeyKind::hash && may_count_subscribers_;
  const bool text = question.asked_as == KeyKind::text;
  question.queue = text && queued_.contains(question.turn.key);
  question.fence = text && !question.queue && fenced_.contains(question.turn.key);
  return question;
}

void RedisLook::ask(const Question& question) {
  const std::string& key = question.turn.key;
  connection_.queue({"PTTL", key});
  // As much as a lock may have: the server would send 512 MB, too.
  if (question.asked_as == KeyKind::hash) {
    connection_.queue({"HSCAN", key, "0", "COUNT", kMostOfHash});
  } else if (question.may_be_empty) {
    connection_.queue({"GET", key});
  } else {
    connection_.queue({"GETRANGE", key, "0", "255"});
  }
  if (question.redisson) {
    connection_.queue({"PUBSUB", "NUMSUB", redisson_channel(key)});
    connection_.queue({"LLEN", redisson_queue(key)});
  }
  if (question.queue) connection_.queue({"ZCARD", key + ":queue"});
  if (question.fence) connection_.queue({"GET", key + ":fencing"});
}

StoreResult<std::vector<RedisLook::Answer>> RedisLook::batch(RedisBook& book,
                                                             const std::stop_token& stop) {
  std::vector<Question> questions;
  while (questions.size() < kMostAtOnce) {
    auto turn = book.next();
    if (!turn) break;
    Question question = question_for(*turn);
    if (!budget_.spend(question.commands(), env_.now())) {
      book.put_back(*turn);
      break;
    }
    questions.push_back(std::move(question));
  }
  if (questions.empty()) return std::vector<Answer>();
  return exchange(std::move(questions), stop);
}

StoreResult<RedisLook::Answer> RedisLook::one(const std::string& key, const std::stop_token& stop) {
  auto answers = exchange({question_for({.key = key})}, stop);
  if (!answers) return tl::unexpected(std::move(answers.error()));
  return std::move(answers->front());
}

StoreResult<Reply> RedisLook::receive(const std::stop_token& stop) {
  auto reply = connection_.receive(stop);
  if (reply || reply.error().kind != StoreError::Kind::rejected) return reply;
  Reply refused;
  refused.type = Reply::Type::error;
  refused.text = reply.error().message;
  return refused;
}

StoreResult<std::vector<RedisLook::Answer>> RedisLook::exchange(std::vector<Question> questions,
                                                                const std::stop_token& stop) {
  std::vector<Answer> answers;
  // The second round is for those that turned out to be of another type, the third for those that
  // changed it meanwhile.
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds && !questions.empty(); ++round) {
    for (const Question& question : questions) ask(question);
    const TimePoint asked_at = env_.now();
    connection_.flush(stop);
    std::vector<Question> again;
    for (Question& question : questions) {
      auto answer = receive(question, asked_at, stop);
      if (!answer) return tl::unexpected(std::move(answer.error()));
      if (*answer) {
        answers.push_back(**std::move(answer));
      } else {
        again.push_back(std::move(question));
      }
    }
    const TimePoint now = env_.now();
    budget_.answered(now - asked_at, now);
    for (const Question& question : again) connection_.queue({"TYPE", question.turn.key});
    for (Question& question : again) {
      auto type = receive(stop);
      if (!type) return tl::unexpected(std::move(type.error()));
      const KeyKind kind = kind_of_type(type->text);
      budget_.owe(1);
      if (kind == KeyKind::text || kind == KeyKind::hash) {
        const bool same = question.asked_as == kind;
        question.turn.kind = usual_ = kind;
        question = question_for(std::move(question.turn));
        question.may_be_empty = same;
        budget_.owe(question.commands());
        continue;
      }
      // One that was deleted between two commands is free.
      const bool gone = kind == KeyKind::unknown;
      answers.push_back(
          {.key = question.turn.key,
           .kind = kind,
           .state = gone ? read_redis_lock(question.turn.key, kind, {}) : std::nullopt,
           .asked_at = asked_at,
           .answered_at = now});
      question.turn.key.clear();
    }
    std::erase_if(again, [](const Question& question) { return question.turn.key.empty(); });
    questions = std::move(again);
  }
  // One that is of another type each time is no lock.
  for (Question& question : questions) {
    answers.push_back({.key = std::move(question.turn.key),
                       .kind = KeyKind::other,
                       .state = std::nullopt,
                       .asked_at = env_.now(),
                       .answered_at = env_.now()});
  }
  return answers;
}

StoreResult<std::optional<RedisLook::Answer>> RedisLook::receive(const Question& question,
                                                                 TimePoint asked_at,
                                                                 const std::stop_token& stop) {
  RedisAnswers answers;
  Reply subscribers, queue;
  std::vector<Reply*> expected{&answers.time_left, &answers.value};
  if (question.redisson) expected.insert(expected.end(), {&subscribers, &queue});
  if (question.queue || question.fence) expected.push_back(&queue);
  for (Reply* const into : expected) {
    auto reply = receive(stop);
    if (!reply) return tl::unexpected(std::move(reply.error()));
    *into = *std::move(reply);
  }
  if (subscribers.type == Reply::Type::error || queue.type == Reply::Type::error) {
    may_count_subscribers_ = may_count_subscribers_ && !question.redisson;
  }
  const auto says = [&](std::string_view error) {
    return answers.value.type == Reply::Type::error &&
           answers.value.text.find(error) != std::string::npos;
  };
  // A long script, or a restart: what the key holds is not known.
  if (says("BUSY ") || says("LOADING ") || says("MASTERDOWN ")) {
    return tl::unexpected(StoreError{StoreError::Kind::rejected, answers.value.text});
  }
  if (says("WRONGTYPE")) return std::nullopt;
  if (question.asked_as == KeyKind::hash) answers.value = all_fields(std::move(answers.value));
  // GETRANGE does not tell an empty value from none.
  constexpr std::int64_t kNoKey = -2;
  if (answers.value.is_text("") && !question.may_be_empty) {
    if (!answers.time_left.is_integer(kNoKey)) return std::nullopt;
    answers.value = Reply();
  }
  Answer answer{.key = question.turn.key,
                .kind = question.asked_as,
                .state = read_redis_lock(question.turn.key, question.asked_as, answers),
                .asked_at = asked_at,
                .answered_at = env_.now()};
  if (!answer.state) return answer;
  if (question.redisson) {
    const auto queued = count_in(queue), subscribed = subscribers_in(subscribers);
    if (queued || subscribed) {
      answer.state->waiters = std::max(queued.value_or(0), subscribed.value_or(0));
    }
  }
  if (question.queue) answer.state->waiters = count_in(queue);
  if (question.fence && !answer.state->holders.empty()) {
    answer.state->shape = Shape::fenced_token;
    answer.state->fence = parse_number<std::uint64_t>(queue.text);
  }
  return answer;
}

KeyScan::KeyScan(redis::Connection& connection, std::vector<std::string> patterns)
    : connection_(connection) {
  for (const std::string& pattern : patterns) globs_.push_back(redis_glob(pattern));
  if (globs_.empty()) globs_.emplace_back("*");
}

StoreResult<std::vector<std::string>> KeyScan::step(const std::stop_token& stop) {
  auto reply = connection_.call({"SCAN", cursor_, "MATCH", globs_[pattern_], "COUNT", "250"}, stop);
  if (!reply) return tl::unexpected(std::move(reply.error()));
  std::vector<std::string> keys;
  const auto& parts = reply->elements;
  const bool fits = reply->type == Reply::Type::array && parts.size() == 2 &&
                    parts[0].type == Reply::Type::string && parts[1].type == Reply::Type::array;
  if (!fits) {
    connection_.close();
    return tl::unexpected(StoreError{StoreError::Kind::unanswered,
                                     connection_.display() + ": an answer to SCAN that is none"});
  }
  for (const Reply& key : parts[1].elements) {
    if (key.type == Reply::Type::string) keys.push_back(key.text);
  }
  cursor_ = parts[0].text;
  if (cursor_ == "0") pattern_ = (pattern_ + 1) % globs_.size();
  return keys;
}

bool KeyProposals::is_new(const std::string& key) {
  if (companion_of(key)) return false;
  const std::string pattern = generalised(key);
  if (patterns_.contains(pattern) || others_.contains(pattern)) return false;
  // Where keys are of so many kinds, only what is called a lock is looked at.
  const bool many = others_.size() >= kMostOthers;
  return patterns_.size() < kMostPatterns && (!many || sounds_like_lock(key));
}

std::optional<std::string> KeyProposals::judge(const std::string& key,
                                               const RedisLook::Answer& looked) {
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

RedisFeed::RedisFeed(redis::Endpoint endpoint, Duration command_timeout, Env& env)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeout_(command_timeout),
      env_(env) {}

StoreResult<void> RedisFeed::connect(const std::stop_token& stop) {
  if (transport_) return {};
  auto transport = redis::connect_server(endpoint_, timeout_, stop);
  if (!transport) {
    return tl::unexpected(redis::error_at(display_, StoreError::Kind::not_sent, transport.error()));
  }
  ReplyReader reader;
  auto greeted = redis::greet(endpoint_, **transport, reader, timeout_, stop, nullptr);
  if (!greeted) return greeted;
  reader_ = std::move(reader);
  transport_ = *std::move(transport);
  return {};
}

StoreResult<Reply> RedisFeed::call(redis::Command command, const std::stop_token& stop) {
  if (auto connected = connect(stop); !connected) {
    return tl::unexpected(std::move(connected.error()));
  }
  const CommandInfo info{.store = "redis", .endpoint = display_, .name = command[0], .key = {}};
  if (env_.before_command(info) == CommandFate::drop) {
    env_.after_command(info, CommandEnd::lost);
    return broken("the connection was cut");
  }
  auto reply = redis::exchange_once(*transport_, reader_, command, timeout_, stop);
  env_.after_command(info, reply ? CommandEnd::answered : CommandEnd::lost);
  if (!reply) return broken(reply.error());
  if (reply->type != Reply::Type::error) return *std::move(reply);
  return tl::unexpected(redis::error_at(display_, StoreError::Kind::rejected, reply->text));
}

StoreResult<std::optional<Reply>> RedisFeed::next(Duration longest, const std::stop_token& stop) {
  if (!transport_) return broken("not connected");
  auto reply = redis::read_reply(*transport_, reader_, longest, stop);
  if (!reply) return broken(reply.error());
  return *std::move(reply);
}

void RedisFeed::close() noexcept {
  transport_.reset();
  reader_ = {};
}

tl::unexpected<StoreError> RedisFeed::broken(std::string_view why) {
  close();
  return tl::unexpected(redis::error_at(display_, StoreError::Kind::unanswered, why));
}

}  // namespace lockbench::watch
