#include "tests/integration/run/watch.h"

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

namespace lockbench::test {

std::vector<std::string> keys_of(const SeenCommand& command) {
  const auto& words = command.words;
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), words.front()) != names.end();
  };
  if (is_one_of({"AUTH", "SELECT", "PING", "INFO", "MULTI", "EXEC"})) return {};
  if (is_one_of({"EVAL", "EVALSHA"})) return {words.at(3)};
  if (is_one_of({"DEL", "UNLINK"})) return {words.begin() + 1, words.end()};
  if (is_one_of({"SET", "SETNX", "GET", "GETSET", "EXPIRE", "BLPOP", "PUBLISH", "SUBSCRIBE",
                 "UNSUBSCRIBE"}))
    return {words.at(1)};
  throw std::runtime_error("nobody expects " + words.front() + " here");
}

}  // namespace lockbench::test
