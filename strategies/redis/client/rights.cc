#include "strategies/redis/client/rights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/algorithm/string/case_conv.hpp>
#include <set>

#include "strategies/redis/scripts.h"
#include "strategies/url.h"

namespace lockbench::redis {
namespace {

using boost::algorithm::to_lower_copy;
using Commands = std::set<std::string>;

/// X of each redis.call('X', ...) and redis.pcall('X', ...).
void add_calls(std::string_view source, Commands& commands) {
  constexpr std::string_view kCall = "call('";
  while (true) {
    const std::size_t call = source.find(kCall);
    if (call == std::string_view::npos) return;
    source.remove_prefix(call + kCall.size());
    commands.insert(to_lower_copy(std::string(source.substr(0, source.find('\'')))));
  }
}

/// `command` as a descriptor has it: "SET key token NX PX ttl", "EVALSHA script key token".
void add(std::string_view command, Commands& commands) {
  std::string_view rest = cut_at(command, ' ');
  commands.insert(to_lower_copy(std::string(command)));
  if (command != "EVALSHA") return;
  commands.insert("eval");  // if the server does not know the script
  const std::string_view name = rest.substr(0, rest.find(' '));
  for (const Script* script : scripts::kAll) {
    if (script->name == name) add_calls(script->source, commands);
  }
}

void add_all(const Descriptor& strategy, Commands& commands) {
  for (const auto* list :
       {&strategy.acquire_commands, &strategy.release_commands, &strategy.renew_commands}) {
    for (const std::string_view command : *list) add(command, commands);
  }
}

}  // namespace

std::vector<std::string> commands_of(const Descriptor& strategy) {
  Commands commands;
  add_all(strategy, commands);
  return {commands.begin(), commands.end()};
}

std::string acl_command(std::span<const Descriptor* const> strategies) {
  // For a chosen database, sentinels, the checks of `doctor`, and the checks, notes and cleaning
  // round a run. AUTH needs no right.
  Commands commands{"select", "role",   "command|info", "ping",   "info",
                    "scan",   "unlink", "zadd",         "zrange", "zrem"};
  for (const Descriptor* strategy : strategies) {
    if (strategy->backend == "redis") add_all(*strategy, commands);
  }
  return fmt::format(
      "ACL SETUSER lockbench reset on >PASSWORD ~lockbench:* resetchannels &lockbench:* +{}",
      fmt::join(commands, " +"));
}

}  // namespace lockbench::redis
