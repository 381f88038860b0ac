#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "strategies/registry.h"
#include "tests/integration/run/watch.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

using Names = std::set<std::string>;

Names declared_by(const Descriptor& strategy) {
  Names names;
  for (const auto* commands :
       {&strategy.acquire_commands, &strategy.release_commands, &strategy.renew_commands}) {
    for (const std::string_view command : *commands) {
      names.emplace(command.substr(0, command.find(' ')));
    }
  }
  return names;
}

/// What was meant, as a run bounds the keys of commands that give them no TTL.
std::string name_of(const SeenCommand& command) {
  const auto& words = command.words;
  if (words.front() != "SET") return words.front();
  if (words.size() == 6 && words[3] == "NX" && words[4] == "EX") return "SETNX";
  return words.back() == "GET" ? "GETSET" : "SET";
}

/// What a run sends to the server, less what any run sends before and after its load, and less the
/// first EVAL of a script that the server does not know yet.
Names sent_in_run(const Descriptor& strategy, std::vector<std::string> load) {
  const Scratch scratch;
  CommandLog log(shared_redis().port());
  load.insert(load.begin(), {"run", std::string(strategy.name), "--redis", shared_redis().url(),
                             "--clients", "2", "--warmup", "0ms", "--out", "r.json"});
  if (!strategy.traits.waiting_choices.empty()) {
    load.insert(load.end(), {"--wait", "poll:1ms"});
  }
  // A twentieth of a TTL of 5 ms is no time on a busy machine.
  if (strategy.traits.nodes > 1) load.insert(load.end(), {"--node-timeout", "100ms"});
  lockbench(scratch, load);
  EXPECT_EQ(read_result(scratch / "r.json").at("runs").front().at("sections"), 20);
  Names names;
  for (const SeenCommand& command : log.take()) names.insert(name_of(command));
  for (const char* housekeeping : {"INFO", "UNLINK"}) {
    EXPECT_EQ(names.erase(housekeeping), strategy.backend == "redis" ? 1U : 0U) << housekeeping;
  }
  // With which a connection may begin.
  for (const char* greeting : {"PING", "AUTH"}) names.erase(greeting);
  if (names.contains("EVALSHA")) names.erase("EVAL");
  return names;
}

class Commands : public testing::TestWithParam<const Descriptor*> {};

TEST_P(Commands, AreTheDeclaredOnes) {
  const Descriptor& strategy = *GetParam();
  const Names declared = declared_by(strategy);
  // With contention, and then with locks that expire while they are held.
  Names sent = sent_in_run(strategy, {"--iterations", "20", "--hold", "2ms"});
  EXPECT_TRUE(std::includes(declared.begin(), declared.end(), sent.begin(), sent.end()))
      << testing::PrintToString(sent);
  sent.merge(sent_in_run(strategy, {"--iterations", "20", "--ttl", "5ms", "--hold", "10ms"}));
  // Sent a while after the last waiter has gone.
  if (declared.contains("UNSUBSCRIBE")) sent.insert("UNSUBSCRIBE");
  EXPECT_EQ(sent, declared);
}

/// Those whose server shows what it is sent.
std::vector<const Descriptor*> seen_strategies() {
  std::vector<const Descriptor*> strategies = all_strategies();
  std::erase_if(strategies, [](const Descriptor* strategy) {
    return (strategy->backend != "redis" && strategy->backend != "local") ||
           strategy->traits.needs_replicas;
  });
  return strategies;
}

INSTANTIATE_TEST_SUITE_P(Of, Commands, testing::ValuesIn(seen_strategies()),
                         [](const auto& test) { return test_name_of(test.param->name); });

}  // namespace
}  // namespace lockbench::test
