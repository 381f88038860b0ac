#include "tests/integration/run/watch.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace lockbench::test {
namespace {

/// The status reply to a command, or what the server sends next to a monitor.
std::string next_text(redisContext& context) {
  void* raw = nullptr;
  if (redisGetReply(&context, &raw) != REDIS_OK) throw std::runtime_error("MONITOR fell silent");
  auto* reply = static_cast<redisReply*>(raw);
  const bool status = reply->type == REDIS_REPLY_STATUS;
  std::string text(reply->str, reply->len);
  freeReplyObject(raw);
  if (!status) throw std::runtime_error("MONITOR: " + text);
  return text;
}

/// 1700000000.123456 [0 127.0.0.1:4242] "SET" "key" "1": quotes in words are escaped.
SeenCommand parse(const std::string& line) {
  SeenCommand command;
  std::size_t at = line.find('[');
  command.database = std::atoi(line.c_str() + at + 1);
  at = line.find("] \"");
  while (at != std::string::npos) {
    at = line.find('"', at);
    if (at == std::string::npos) break;
    std::size_t end = at + 1;
    while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
    command.words.push_back(line.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  if (command.words.empty()) throw std::runtime_error("MONITOR said " + line);
  std::string& name = command.words.front();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return command;
}

}  // namespace

std::vector<std::string> SeenCommand::keys() const {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), words.front()) != names.end();
  };
  if (is_one_of({"AUTH", "SELECT", "PING", "INFO", "MULTI", "EXEC"})) return {};
  if (is_one_of({"EVAL", "EVALSHA"})) return {words.at(3)};
  if (is_one_of({"DEL", "UNLINK"})) return {words.begin() + 1, words.end()};
  if (is_one_of({"SET", "SETNX", "GET", "GETSET", "EXPIRE", "BLPOP", "PUBLISH", "SUBSCRIBE",
                 "UNSUBSCRIBE"}))
    return {words.at(1)};
  throw std::runtime_error(fmt::format("nobody expects {} here", words.front()));
}

CommandLog::CommandLog(std::uint16_t port)
    : marker_(port), context_(redisConnect("127.0.0.1", port)) {
  if (!context_ || context_->err != 0) throw std::runtime_error("cannot connect to monitor");
  redisSetTimeout(context_.get(), timeval{.tv_sec = 5, .tv_usec = 0});
  log_in(*context_);
  redisAppendCommand(context_.get(), "MONITOR");
  next_text(*context_);
}

std::vector<SeenCommand> CommandLog::take() {
  const std::string mark = fmt::format("mark-{}", ++marks_);
  marker_.ask({"ECHO", mark});
  std::vector<SeenCommand> commands;
  // Bounded by the mark, which has been sent, and by the time-out of each read.
  while (true) {
    const std::string line = next_text(*context_);
    if (line.find(mark) != std::string::npos) return commands;
    if (line.find(" lua] ") == std::string::npos) commands.push_back(parse(line));
  }
}

long long calls_of(RedisProbe& probe, std::string_view command) {
  const std::string stats = probe.ask({"INFO", "commandstats"});
  const std::string line = fmt::format("cmdstat_{}:calls=", command);
  const std::size_t at = stats.find(line);
  return at == std::string::npos ? 0 : std::atoll(stats.c_str() + at + line.size());
}

}  // namespace lockbench::test
