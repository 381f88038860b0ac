#include "tests/support/servers.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "tests/support/eventually.h"
#include "tests/support/must.h"

namespace lockbench::test {
namespace {

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using ReplyPtr = std::unique_ptr<redisReply, ReplyDeleter>;

/// Connects as the user that may do everything.
ContextPtr connect_to(std::uint16_t port) {
  const timeval limit{.tv_sec = kPatience.count(), .tv_usec = 0};
  ContextPtr context(redisConnectWithTimeout("127.0.0.1", port, limit));
  if (!context || context->err != 0) {
    throw std::runtime_error(fmt::format("cannot reach the Redis on port {}", port));
  }
  redisSetTimeout(context.get(), limit);
  const std::string user(testbed::kUser);
  const ReplyPtr reply(static_cast<redisReply*>(
      redisCommand(context.get(), "AUTH %s %s", user.c_str(), shared_testbed().secret().c_str())));
  if (!reply || reply->type != REDIS_REPLY_STATUS) throw std::runtime_error("AUTH was refused");
  return context;
}

std::string text_of(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
  if (reply.type == REDIS_REPLY_NIL) return {};
  if (reply.type != REDIS_REPLY_ARRAY) return {reply.str, reply.len};
  std::string lines;
  for (std::size_t i = 0; i < reply.elements; ++i) lines += text_of(*reply.element[i]) + "\n";
  return lines;
}

/// The headers and text of the first "[H]MSG subject sid [reply] [size] size" in these bytes; empty
/// until it is complete.
std::string_view first_message_of_nats(std::string_view bytes) {
  constexpr std::string_view kBegin = "MSG _INBOX.ask 1 ", kLineEnd = "\r\n";
  const std::size_t at = bytes.find(kBegin);
  if (at == std::string_view::npos) return {};
  bytes.remove_prefix(at);
  const std::size_t end = bytes.find(kLineEnd);
  if (end == std::string_view::npos) return {};
  const std::string line(bytes.substr(0, end));
  const std::size_t size = std::stoul(line.substr(line.rfind(' ') + 1));
  const std::string_view text = bytes.substr(end + kLineEnd.size());
  return text.size() < size + kLineEnd.size() ? std::string_view() : text.substr(0, size);
}

/// A word as MONITOR shows it: \n, \", \x0a and so on.
std::string unescaped(std::string_view shown) {
  constexpr std::string_view kLetters = "nrtab", kMeaning = "\n\r\t\a\b";
  std::string word;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (shown[i] != '\\' || i + 1 == shown.size()) {
      word += shown[i];
      continue;
    }
    const char letter = shown[++i];
    const std::size_t known = kLetters.find(letter);
    if (letter == 'x') {
      word += static_cast<char>(std::stoi(std::string(shown.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      word += known == std::string_view::npos ? letter : kMeaning[known];
    }
  }
  return word;
}

/// 1700000000.123456 [0 127.0.0.1:4242] "SET" "key" "1"
SeenCommand parse(const std::string& line) {
  SeenCommand command{.database = std::atoi(line.c_str() + line.find('[') + 1), .words = {}};
  std::size_t at = line.find("] \"");
  while (at != std::string::npos) {
    at = line.find('"', at);
    if (at == std::string::npos) break;
    std::size_t end = at + 1;
    while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
    command.words.push_back(unescaped(std::string_view(line).substr(at + 1, end - at - 1)));
    at = end + 1;
  }
  if (command.words.empty()) throw std::runtime_error("MONITOR said " + line);
  std::string& name = command.words.front();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return command;
}

}  // namespace

testbed::Testbed& shared_testbed() {
  static const std::unique_ptr<testbed::Testbed> testbed = must(testbed::Testbed::start());
  return *testbed;
}

testbed::Server& shared_redis() {
  static const std::unique_ptr<testbed::Server> server = [] {
    testbed::RedisOptions options;
    options.config = {
        "unixsocket socket", "unixsocketperm 700",
        fmt::format("user {} on >{} ~lockbench:* &lockbench:* -@all +@read +@write +@scripting "
                    "+@transaction +@connection "
                    "+@pubsub +time -@dangerous",
                    kPlainUser, kPlainPassword)};
    return own_redis(std::move(options));
  }();
  return *server;
}

std::unique_ptr<testbed::Server> own_redis(testbed::RedisOptions options) {
  options.durable = false;
  return must(testbed::start_redis(shared_testbed(), options));
}

bool says_of_replication(const testbed::Server& server, std::string_view line) {
  return testbed::ask_redis_text(server, "INFO replication").find(fmt::format("\n{}\r\n", line)) !=
         std::string::npos;
}

tl::expected<std::string, std::string> ask_nats(const testbed::Server& server,
                                                std::string_view subject,
                                                std::string_view payload) {
  const std::string request = fmt::format(
      "CONNECT {{\"verbose\":false,\"headers\":true,\"user\":\"{}\",\"pass\":\"{}\"}}\r\n"
      "SUB _INBOX.ask 1\r\nPUB {} _INBOX.ask {}\r\n{}\r\n",
      testbed::kUser, server.secret(), subject, payload.size(), payload);
  const auto whole = [](std::string_view bytes) {
    return !first_message_of_nats(bytes).empty() || bytes.find("-ERR") != bytes.npos;
  };
  return testbed::ask_until(server.port(), request, kPatience, whole)
      .map([](const std::string& bytes) {
        const std::string_view message = first_message_of_nats(bytes);
        return message.empty() ? bytes : std::string(message);
      });
}

std::uint16_t closed_port() { return must(testbed::free_loopback_port()); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void ContextDeleter::operator()(redisContext* context) const { redisFree(context); }

RedisProbe::RedisProbe(std::uint16_t port, int database) : context_(connect_to(port)) {
  if (database != 0) ask({"SELECT", std::to_string(database)});
}

std::string RedisProbe::ask(const std::vector<std::string>& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const std::string& word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  const ReplyPtr reply(static_cast<redisReply*>(redisCommandArgv(
      context_.get(), static_cast<int>(words.size()), words.data(), sizes.data())));
  if (!reply || reply->type == REDIS_REPLY_ERROR) {
    throw std::runtime_error(
        fmt::format("{}: {}", command.front(), reply ? reply->str : context_->errstr));
  }
  return text_of(*reply);
}

std::vector<std::string> RedisProbe::keys() { return lines_of(ask({"KEYS", "*"})); }

std::optional<std::chrono::milliseconds> RedisProbe::time_to_live(const std::string& key) {
  const long long left = std::stoll(ask({"PTTL", key}));
  return left < 0 ? std::nullopt : std::optional(std::chrono::milliseconds(left));
}

void RedisProbe::remove(const std::vector<std::string>& keys) {
  std::vector<std::string> command{"DEL"};
  command.insert(command.end(), keys.begin(), keys.end());
  ask(command);
}

long long RedisProbe::calls_of(std::string_view command) {
  const std::string stats = ask({"INFO", "commandstats"});
  const std::string line = fmt::format("cmdstat_{}:calls=", command);
  const std::size_t at = stats.find(line);
  return at == std::string::npos ? 0 : std::atoll(stats.c_str() + at + line.size());
}

int RedisProbe::other_connections() {
  return static_cast<int>(lines_of(ask({"CLIENT", "LIST"})).size()) - 1;
}

RedisMonitor::RedisMonitor(std::uint16_t port) : marker_(port), context_(connect_to(port)) {
  const ReplyPtr reply(static_cast<redisReply*>(redisCommand(context_.get(), "MONITOR")));
  if (!reply || reply->type != REDIS_REPLY_STATUS) throw std::runtime_error("MONITOR was refused");
}

std::vector<SeenCommand> RedisMonitor::read(bool with_scripts) {
  // Answered when everything that clients sent before has arrived, even from clients that do not
  // wait for answers.
  marker_.ask({"ECHO", "arrived"});
  const std::string mark = fmt::format("mark-{}", ++marks_);
  marker_.ask({"ECHO", mark});
  std::vector<SeenCommand> commands;
  // Bounded by the mark, which has been sent, and by the timeout of each read.
  while (true) {
    void* raw = nullptr;
    if (redisGetReply(context_.get(), &raw) != REDIS_OK) {
      throw std::runtime_error("MONITOR fell silent");
    }
    const ReplyPtr reply(static_cast<redisReply*>(raw));
    const std::string line = text_of(*reply);
    if (line.find(mark) != std::string::npos) return commands;
    if (line.ends_with(R"("ECHO" "arrived")")) continue;
    if (!with_scripts && line.find(" lua] ") != std::string::npos) continue;
    commands.push_back(parse(line));
  }
}

std::vector<std::string> RedisMonitor::names_of(const std::vector<SeenCommand>& commands) {
  std::vector<std::string> names;
  for (const SeenCommand& command : commands) {
    if (command.words.front() != "AUTH") names.push_back(command.words.front());
  }
  return names;
}

}  // namespace lockbench::test
