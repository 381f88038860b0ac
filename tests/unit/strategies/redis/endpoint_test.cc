#include "strategies/redis/client/endpoint.h"

#include <gtest/gtest.h>

#include <map>

#include "strategies/redis/client/protocol.h"
#include "strategies/redis/client/sentinel.h"
#include "tests/support/fake_replies.h"

namespace lockbench::redis {
namespace {

Endpoint parsed(std::string_view url) {
  const auto endpoint = parse_endpoint(url);
  EXPECT_TRUE(endpoint) << url << ": " << endpoint.error();
  return endpoint.value_or(Endpoint{});
}

void expect_error(std::string_view url, std::string_view part) {
  const auto endpoint = parse_endpoint(url);
  ASSERT_FALSE(endpoint) << url;
  EXPECT_NE(endpoint.error().find(part), std::string::npos) << url << ": " << endpoint.error();
  EXPECT_NE(endpoint.error().find("allowed: redis://"), std::string::npos) << endpoint.error();
}

TEST(RedisEndpoint, HostAlone) {
  const Endpoint endpoint = parsed("redis://example.org");
  EXPECT_EQ(endpoint.host, "example.org");
  EXPECT_EQ(endpoint.port, 6379);
  EXPECT_EQ(endpoint.database, 0);
  EXPECT_TRUE(endpoint.path.empty() && endpoint.user.empty() && endpoint.password.empty());
  EXPECT_EQ(endpoint.display(), "example.org:6379");
}

TEST(RedisEndpoint, PortAndDatabase) {
  const Endpoint endpoint = parsed("redis://127.0.0.1:7001/12");
  EXPECT_EQ(endpoint.host, "127.0.0.1");
  EXPECT_EQ(endpoint.port, 7001);
  EXPECT_EQ(endpoint.database, 12);
  EXPECT_EQ(endpoint.display(), "127.0.0.1:7001");
  EXPECT_EQ(parsed("redis://h:1/").database, 0);
  EXPECT_EQ(parsed("redis://h:65535").port, 65535);
}

TEST(RedisEndpoint, Credentials) {
  const Endpoint both = parsed("redis://ann:secret@h:1/2");
  EXPECT_EQ(both.user, "ann");
  EXPECT_EQ(both.password, "secret");
  EXPECT_EQ(both.host, "h");
  const Endpoint password_alone = parsed("redis://:secret@h");
  EXPECT_EQ(password_alone.user, "");
  EXPECT_EQ(password_alone.password, "secret");
  EXPECT_EQ(parsed("redis://:p@ss:word@h").password, "p@ss:word");  // the last @ counts
}

TEST(RedisEndpoint, UnixSocket) {
  const Endpoint endpoint = parsed("unix:///run/redis.sock");
  EXPECT_EQ(endpoint.path, "/run/redis.sock");
  EXPECT_TRUE(endpoint.host.empty());
  EXPECT_EQ(endpoint.display(), "unix:/run/redis.sock");

  const Endpoint full = parsed("unix://ann:secret@/run/redis.sock?db=5");
  EXPECT_EQ(full.path, "/run/redis.sock");
  EXPECT_EQ(full.user, "ann");
  EXPECT_EQ(full.password, "secret");
  EXPECT_EQ(full.database, 5);
}

TEST(RedisEndpoint, LimitsTheLengthOfAUnixSocketsPath) {
  const std::string longest = "/" + std::string(106, 'p');
  EXPECT_EQ(parsed("unix://" + longest).path, longest);
  expect_error("unix://" + longest + "p", "at most 107");
}

TEST(RedisEndpoint, Sentinels) {
  const Endpoint one = parsed("redis+sentinel://watch/lock");
  ASSERT_EQ(one.sentinels.size(), 1U);
  EXPECT_EQ(one.sentinels[0].host, "watch");
  EXPECT_EQ(one.sentinels[0].port, 26379);
  EXPECT_EQ(one.master, "lock");
  EXPECT_EQ(one.display(), "watch:26379/lock");

  const Endpoint three = parsed("redis+sentinel://ann:hunter2@10.0.0.1:1,[::1]:2,[::1]/lock/7");
  ASSERT_EQ(three.sentinels.size(), 3U);
  EXPECT_EQ(three.sentinels[1].host, "::1");
  EXPECT_EQ(three.sentinels[1].port, 2);
  EXPECT_EQ(three.user, "ann");
  EXPECT_EQ(three.password, "hunter2");
  EXPECT_EQ(three.database, 7);
  EXPECT_EQ(three.display(), "10.0.0.1:1,[::1]:2,[::1]:26379/lock");
  EXPECT_TRUE(parsed("redis://h").sentinels.empty());
}

TEST(RedisEndpoint, Tls) {
  const Endpoint server = parsed("rediss://ann:hunter2@h:1/2?server-name=db.example&min-tls=1.3");
  ASSERT_TRUE(server.tls);
  EXPECT_EQ(*server.tls, (TlsSettings{.server_name = "db.example", .only_1_3 = true}));
  EXPECT_EQ(server.database, 2);
  EXPECT_EQ(server.display(), "h:1");
  EXPECT_TRUE(parsed("rediss://h").tls);
  EXPECT_TRUE(parsed("rediss://h?min-tls=1.3").tls->only_1_3);
  EXPECT_FALSE(parsed("redis://h").tls);
  const Endpoint watched = parsed("rediss+sentinel://s,t/lock/7?server-name=db.example");
  EXPECT_EQ(watched.sentinels.size(), 2U);
  EXPECT_EQ(watched.sentinels.front().port, 26379);
  EXPECT_EQ(watched.master, "lock");
  EXPECT_EQ(watched.database, 7);
  EXPECT_EQ(watched.tls->server_name, "db.example");
  EXPECT_FALSE(parse_endpoint("rediss://h?verify=none"));
  EXPECT_FALSE(parse_endpoint("redis://h?min-tls=1.3")) << "it would not be encrypted";
}

TEST(RedisEndpoint, SaysWhatIsWrongWithSentinels) {
  for (const char* url : {"redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel://h//1"}) {
    expect_error(url, "name is missing");
  }
  for (const char* url :
       {"redis+sentinel:///lock", "redis+sentinel://,h/lock", "redis+sentinel://h,/lock",
        "redis+sentinel://h,,i/lock", "redis+sentinel://a:b@/lock"}) {
    expect_error(url, "host is missing");
  }
  expect_error("redis+sentinel://h/lock/x", "database must be a number");
  expect_error("redis+sentinels://h/lock", "not a Redis URL");
  std::string many = "redis+sentinel://h";
  for (int i = 0; i < 32; ++i) many += ",h";
  expect_error(many + "/lock", "at most 32");
}

TEST(RedisEndpoint, SaysWhatIsWrong) {
  for (const char* url : {"", "127.0.0.1:6379", "http://h", "redisss://h", "REDIS://h"}) {
    expect_error(url, "not a Redis URL");
  }
  for (const char* url :
       {"redis://", "redis://:6379", "redis:///0", "redis://:pw@", "redis://[]:1", "redis://::1"}) {
    expect_error(url, "host is missing");
  }
  for (const char* url : {"redis://h:", "redis://h:x", "redis://h:0", "redis://h:65536",
                          "redis://h:-1", "redis://h:1x", "redis://[::1]:"}) {
    expect_error(url, "port must be a number");
  }
  for (const char* url : {"redis://h/x", "redis://h/1x", "redis://h/-1", "redis://h/1000001",
                          "redis://h/0?a=b", "unix:///s?db=", "unix:///s?db=x"}) {
    expect_error(url, "database must be a number");
  }
  expect_error("unix://", "absolute path");
  expect_error("unix://run/redis.sock", "absolute path");
  expect_error("unix:///s?database=1", "only parameter");
  for (const char* url : {"redis://pw@h", "redis://ann:@h", "redis://:%zz@h", "redis://:%4@h",
                          "redis://:%@h", "redis://%g0:pw@h", "redis://:%4g@h"}) {
    expect_error(url, "percent-encoded");
  }
}

TEST(RedisEndpoint, NeverShowsASecret) {
  for (const char* url : {"redis://ann:hunter2@h:1/2", "redis://:hunter2@[::1]",
                          "unix://ann:hunter2@/s?db=1", "redis+sentinel://ann:hunter2@h,i/lock"}) {
    const Endpoint endpoint = parsed(url);
    EXPECT_EQ(endpoint.password, "hunter2");
    EXPECT_EQ(endpoint.display().find("hunter2"), std::string::npos);
    EXPECT_EQ(endpoint.display().find("ann"), std::string::npos);
  }
  for (const char* url :
       {"redis://hunter2@h", "redis://:hunter2@", "redis://:hunter2@h:x", "redis://:hunter2/@h:1",
        "redis://:hunter2@h/x", "http://:hunter2@h", "redis://:hunter2%@h", "unix://:hunter2@s",
        "unix:///s?password=hunter2", "redis://:hunter2@[::1", "redis://ann:hunter2/@h",
        "redis://h/hunter2", "redis+sentinel://:hunter2@h", "redis+sentinel://h:hunter2/lock",
        "redis+sentinel://ann:123/hunter2@h:26379"}) {
    const auto endpoint = parse_endpoint(url);
    ASSERT_FALSE(endpoint) << url;
    EXPECT_EQ(endpoint.error().find("hunter2"), std::string::npos) << endpoint.error();
  }
}

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
