#include "strategies/programs/client/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>

#include "strategies/programs/program.h"
#include "tests/support/eventually.h"

namespace lockbench::program {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::seconds kPatience{30};

TimePoint patience() { return Carrier::current().now() + kPatience; }

std::unique_ptr<Process> start(const std::string& command, Json hello = {{"do", "hello"}}) {
  auto process = Process::start({.command = command, .hello = std::move(hello)});
  EXPECT_TRUE(process) << process.error();
  return *std::move(process);
}

/// What it says when it has failed.
std::string failure_of(Process& process) {
  Call call(process, {{"do", "echo"}});
  call.await(patience());
  return call.failure();
}

TEST(ProgramProcess, GivesEachAnswerToItsRequestInAnyOrder) {
  // Answers the hello, reads two requests, and answers the later one first.
  const auto process = start(
      R"(read a; echo '{"id":0,"name":"x"}'; read b; read c; echo '{"id":2,"n":2}'; echo '{"id":1,"n":1}'; read d)");
  EXPECT_EQ(process->about(kPatience).value()["name"], "x");
  Call first(*process, {{"do", "echo"}}), second(*process, {{"do", "echo"}});
  ASSERT_TRUE(first.await(patience()) && second.await(patience()));
  EXPECT_EQ((*first.answer())["n"], 1);
  EXPECT_EQ((*second.answer())["n"], 2);
}

TEST(ProgramProcess, IgnoresTheLateAnswerToARequestThatWasGivenUp) {
  const auto process = start(
      R"(read a; echo '{"id":0}'; read b; read c; echo '{"id":1}'; echo '{"id":2,"n":2}'; read d)");
  { const Call given_up(*process, {{"do", "echo"}}); }
  Call next(*process, {{"do", "echo"}});
  ASSERT_TRUE(next.await(patience()));
  ASSERT_NE(next.answer(), nullptr) << next.failure();
  EXPECT_EQ((*next.answer())["n"], 2);
}

TEST(ProgramProcess, ThatEndsIsAFailureWithItsLastWords) {
  const auto process = start(R"(read a; echo 'no module named redis' >&2; exit 3)");
  EXPECT_THAT(failure_of(*process),
              AllOf(HasSubstr("exit code 3"), HasSubstr("no module named redis")));
  Call later(*process, {{"do", "echo"}});
  EXPECT_TRUE(later.done());
  EXPECT_FALSE(later.sent());
}

TEST(ProgramProcess, ThatDoesNotExistIsAFailure) {
  const auto process = start("/no/such/program");
  EXPECT_THAT(failure_of(*process), AllOf(HasSubstr("127"), HasSubstr("/no/such/program")));
}

TEST(ProgramProcess, ThatWritesRubbishIsKilled) {
  const std::string rubbish[] = {R"(Connecting ...)", R"({"id":"one"})", R"({"id":77})", R"([1])"};
  for (const std::string& line : rubbish) {
    const auto process = start("read a; echo '" + line + "'; sleep 1000");
    EXPECT_THAT(failure_of(*process), HasSubstr(line));
    EXPECT_TRUE(test::eventually([&] { return process->ended(); }));
  }
}

TEST(ProgramProcess, ThatAnswersTwiceIsKilled) {
  const auto process = start(R"(read a; echo '{"id":0}'; while echo '{"id":0}'; do :; done)");
  EXPECT_THAT(failure_of(*process), HasSubstr("twice"));
}

TEST(ProgramProcess, ThatWritesAnEndlessLineIsKilled) {
  const auto process = start("cat /dev/zero");
  EXPECT_THAT(failure_of(*process), HasSubstr("64 KiB"));
}

TEST(ProgramProcess, IsServedAlthoughItFloodsItsStderr) {
  const auto process =
      start(R"(yes flood >&2 & read a; echo '{"id":0}'; read b; echo '{"id":1}'; read c; kill $!)");
  Call call(*process, {{"do", "echo"}});
  ASSERT_TRUE(call.await(patience()));
  EXPECT_NE(call.answer(), nullptr) << call.failure();
}

TEST(ProgramProcess, ThatStallsGivesNoAnswerInTime) {
  const auto process = start("sleep 1000");
  Call call(*process, {{"do", "echo"}});
  EXPECT_FALSE(call.await(Carrier::current().now() + std::chrono::milliseconds(50)));
  EXPECT_THAT(process->about(std::chrono::milliseconds(1)).error(), HasSubstr("hello"));
}

TEST(ProgramProcess, ThatDoesNotReadItsRequestsFails) {
  const auto process = start("sleep 1000");
  const Json large = {{"do", "echo"}, {"more", std::string(1 << 20, 'x')}};
  for (int i = 0; i < 8; ++i) const Call call(*process, large);
  EXPECT_THAT(failure_of(*process), HasSubstr("does not read"));
}

TEST(ProgramProcess, LeavesNoProcessBehind) {
  const std::string note = testing::TempDir() + "/pids";
  auto process = start("sleep 1000 & echo $! $$ > " + note + "; echo '{\"id\":0}'; wait");
  ASSERT_TRUE(process->about(kPatience));
  pid_t child = 0, leader = 0;
  std::ifstream(note) >> child >> leader;
  ASSERT_GT(child, 0);
  process.reset();
  // A zombie, which init has yet to reap, does nothing any more.
  const auto gone = [](pid_t pid) {
    std::string line;
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::getline(stat, line);
    return line.empty() || line.find(") Z") != std::string::npos;
  };
  EXPECT_TRUE(test::eventually([&] { return gone(child) && gone(leader); }));
}

TEST(ProgramProcess, GetsNoSecretButByItsStdinAndItsWordsShowNone) {
  setenv("LOCKBENCH_REDIS", "redis://:sesame@host", 1);
  const Json hello = {{"do", "hello"},
                      {"stores", {{"redis", "redis://me:open%20sesame@host:1/0"}}}};
  const auto process =
      start(R"(read a; echo "$a" "open sesame" "[$LOCKBENCH_REDIS]" >&2; exit 1)", hello);
  const std::string said = failure_of(*process);
  unsetenv("LOCKBENCH_REDIS");
  EXPECT_THAT(said, AllOf(Not(HasSubstr("sesame")), HasSubstr("***"), HasSubstr("[]")));
}

TEST(Client, IsNamedByTheUserOrAfterItsFile) {
  const auto name = [](const std::string& text) { return parse_client(text).value().name; };
  EXPECT_EQ(name("mine=node x.mjs"), "mine");
  EXPECT_EQ(name("node my_lock.mjs --fast"), "my_lock");
  EXPECT_EQ(name("python3 clients/python/redis_py.py redis"), "redis_py");
  EXPECT_EQ(name("NODE_ENV=production ./Lock"), "node_env-production");
  EXPECT_EQ(name("./build/lock"), "lock");
  EXPECT_FALSE(parse_client("mine="));
  EXPECT_FALSE(parse_client("  "));
}

Client told(const std::string& about, const std::string& name) {
  return {.name = name, .command = "true", .about = about};
}

TEST(Client, IsAStrategyWithTheTraitsThatItTells) {
  const auto added = add(told(
      R"({"store":"redis","name":"L","version":"1","traits":{"expiry":true,"renews":true,"fencing":true,"waiting":"queue"}})",
      "told-traits"));
  ASSERT_TRUE(added) << added.error();
  const Traits& traits = (*added)->traits;
  EXPECT_TRUE(traits.expiry == Expiry::ttl && traits.renews && traits.fencing && traits.fair);
  EXPECT_EQ((*added)->backend, "redis");
  EXPECT_EQ(client_of(**added)->library, "L");
}

TEST(Fleet, HasAProcessForAsManyClientsAsAskedWithTheCpuOfItsTree) {
  Client client = told(R"({"store":"redis"})", "counted");
  client.command = R"(read a; echo '{"id":0,"store":"redis"}'; read b)";
  ASSERT_TRUE(add(client));
  const Endpoints endpoints;
  StrategyOptions options;
  options.clients_per_process = 2;
  Services services;
  const auto env = make_system_env(1);
  Fleet fleet;
  std::set<Process*> processes;
  for (const int number : {0, 1, 2}) {
    const Context context{.endpoints = endpoints,
                          .options = options,
                          .env = *env,
                          .services = services,
                          .client = number,
                          .urls = {"redis://127.0.0.1:1"}};
    const auto process = fleet.process_of(client, context, kPatience);
    ASSERT_TRUE(process) << process.error();
    processes.insert(*process);
  }
  EXPECT_EQ(processes.size(), 2U);
  std::set<pid_t> leaders;
  const auto of_tree = [&](pid_t leader) {
    leaders.insert(leader);
    return 1.5;
  };
  EXPECT_EQ(fleet.cpu_seconds(of_tree), 3);
  EXPECT_EQ(leaders.size(), 2U);
  EXPECT_EQ(fleet.cpu_seconds({}), 0) << "nobody can tell";
}

TEST(Client, KeepsOfItsAnswerOnlyWhatIsKnownAndNoPassword) {
  const auto asked = ask(
      {.name = "tells",
       .command =
           R"(read a; echo '{"id":0,"name":"by sesame","store":"redis","urls":"sesame"}'; read b)",
       .about = {}},
      {{"redis", {"redis://:sesame@127.0.0.1:1"}}});
  ASSERT_TRUE(asked) << asked.error();
  EXPECT_EQ(Json::parse(asked->about), Json({{"name", "by ***"}, {"store", "redis"}}));
}

TEST(Client, IsRefusedWithWhatIsAllowed) {
  EXPECT_THAT(add(told("{}", "a")).error(), HasSubstr("redis, memcached"));
  EXPECT_THAT(add(told(R"({"store":"redis","traits":{"waiting":"sometimes"}})", "b")).error(),
              HasSubstr("poll"));
  EXPECT_THAT(add(told(R"({"store":"redis","traits":{"fencing":1}})", "c")).error(),
              HasSubstr("fencing"));
  EXPECT_THAT(add(told(R"({"store":"redis","traits":{"expiry":3}})", "d")).error(),
              HasSubstr("expiry is none of"));
  EXPECT_THAT(add(told(R"({"store":"redis","traits":{"wating":"queue"}})", "e")).error(),
              HasSubstr("\"wating\" is none of fencing"));
  ASSERT_TRUE(add(told(R"({"store":"redis"})", "twice")));
  EXPECT_TRUE(add(told(R"({"store":"redis"})", "twice")));
  EXPECT_THAT(add({.name = "twice", .command = "false", .about = R"({"store":"redis"})"}).error(),
              HasSubstr("NAME=COMMAND"));
}

}  // namespace
}  // namespace lockbench::program
