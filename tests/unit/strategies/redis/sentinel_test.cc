#include "strategies/redis/client/sentinel.h"

#include <gtest/gtest.h>

#include <map>

#include "strategies/redis/client/protocol.h"
#include "tests/support/fake_replies.h"

namespace lockbench::redis {
namespace {

Reply array(std::vector<std::string> words) {
  Reply reply;
  reply.type = Reply::Type::array;
  for (std::string& word : words) {
    reply.elements.push_back(text(Reply::Type::string, std::move(word)));
  }
  return reply;
}

/// Sentinels by port; others cannot be reached.
class Sentinels {
 public:
  std::map<int, Reply> answers;
  std::vector<int> asked;
  std::vector<std::string> words;

  AskServer ask() {
    return [this](const Endpoint& server, Command command) -> tl::expected<Reply, std::string> {
      asked.push_back(server.port);
      words.assign(command.begin(), command.end());
      const auto found = answers.find(server.port);
      if (found == answers.end()) return tl::unexpected<std::string>("Connection refused");
      return found->second;
    };
  }
};

const Endpoint watched_by_three =
    parse_endpoint("redis+sentinel://ann:hunter2@s:1,s:2,s:3/lock/4").value();

TEST(FindMaster, UsesTheFirstAnswer) {
  Sentinels sentinels;
  sentinels.answers[1] = array({"10.0.0.7", "6380"});
  sentinels.answers[2] = array({"10.0.0.8", "6381"});
  const auto master = find_master(watched_by_three, sentinels.ask());
  ASSERT_TRUE(master) << master.error();
  EXPECT_EQ(master->display(), "10.0.0.7:6380");
  EXPECT_EQ(sentinels.asked, std::vector<int>{1});
  const std::vector<std::string> question{"SENTINEL", "get-master-addr-by-name", "lock"};
  EXPECT_EQ(sentinels.words, question);
  // Credentials and database are kept.
  EXPECT_EQ(master->user, "ann");
  EXPECT_EQ(master->password, "hunter2");
  EXPECT_EQ(master->database, 4);
}

TEST(FindMaster, AsksTheNextSentinelAfterAFailure) {
  Sentinels sentinels;
  sentinels.answers[2] = Reply{};  // watches others
  sentinels.answers[3] = array({"::1", "6381"});
  const auto master = find_master(watched_by_three, sentinels.ask());
  ASSERT_TRUE(master) << master.error();
  EXPECT_EQ(master->host, "::1");
  EXPECT_EQ(sentinels.asked, (std::vector<int>{1, 2, 3}));
}

TEST(FindMaster, ErrorsNameTheSentinelAndTheReason) {
  Sentinels sentinels;
  auto master = find_master(watched_by_three, sentinels.ask());
  ASSERT_FALSE(master);
  EXPECT_NE(master.error().find("s:3: Connection refused"), std::string::npos) << master.error();
  sentinels.answers[3] = Reply{};
  master = find_master(watched_by_three, sentinels.ask());
  ASSERT_FALSE(master);
  EXPECT_NE(master.error().find("s:3: it does not watch lock"), std::string::npos);
  sentinels.answers[3] = error("NOAUTH Authentication required.");
  master = find_master(watched_by_three, sentinels.ask());
  ASSERT_FALSE(master);
  EXPECT_NE(master.error().find("s:3: NOAUTH"), std::string::npos) << master.error();
  EXPECT_EQ(master.error().find("hunter2"), std::string::npos);
}

TEST(FindMaster, RejectsMalformedAddresses) {
  Sentinels sentinels;
  for (const Reply& odd :
       {ok(), integer(3), array({"10.0.0.7"}), array({"10.0.0.7", "x"}), array({"10.0.0.7", "0"}),
        array({"10.0.0.7", "65536"}), array({"10.0.0.7", "6379x"}), array({"", "6379"}),
        array({"10.0.0.7", "6379", "1"})}) {
    sentinels.answers[3] = odd;
    const auto master = find_master(watched_by_three, sentinels.ask());
    ASSERT_FALSE(master) << master->display();
    EXPECT_NE(master.error().find("s:3: its answer is not an address"), std::string::npos)
        << master.error();
  }
}

/// Greets a connection and records the commands.
StoreResult<void> greeted(const Endpoint& endpoint, const Reply& role,
                          std::vector<std::string>& commands) {
  return greet(endpoint, [&](Command command) -> StoreResult<Reply> {
    commands.emplace_back(command[0]);
    return command[0] == "ROLE" ? role : ok();
  });
}

TEST(Greeting, ChecksTheRoleOfTheMasterThatSentinelsName) {
  std::vector<std::string> commands;
  EXPECT_TRUE(greeted(watched_by_three, array({"master", "0"}), commands));
  EXPECT_EQ(commands, (std::vector<std::string>{"AUTH", "ROLE", "SELECT"}));
  for (const Reply& role :
       {array({"slave", "10.0.0.7"}), array({"sentinel"}), array({}), Reply{}}) {
    const auto refused = greeted(watched_by_three, role, commands);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, StoreError::Kind::not_sent);
    EXPECT_NE(refused.error().message.find("s:1,s:2,s:3/lock"), std::string::npos);
  }
  commands.clear();
  EXPECT_TRUE(greeted(parse_endpoint("redis://h").value(), Reply{}, commands));
  EXPECT_TRUE(commands.empty());
}

TEST(Greeting, ContinuesWithoutPermissionToAskTheRole) {
  const auto with_refusal = [](const std::string& why) {
    return greet(watched_by_three, [&](Command command) -> StoreResult<Reply> {
      if (command[0] != "ROLE") return ok();
      return tl::unexpected(
          StoreError{StoreError::Kind::rejected, "s:1/lock: " + why, error_code(why)});
    });
  };
  EXPECT_TRUE(with_refusal("NOPERM this user has no permissions to run the 'role' command"));
  EXPECT_FALSE(with_refusal("LOADING Redis is loading the dataset in memory"));
}

}  // namespace
}  // namespace lockbench::redis
