#include <gtest/gtest.h>

#include "strategies/redis/client/connection.h"

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

TEST(RedisEndpoint, HasWhatItsUrlSays) {
  const struct {
    const char *url, *host, *user, *password, *path;
    int port, database;
    const char* display;
  } cases[] = {
      {"redis://example.org", "example.org", "", "", "", 6379, 0, "example.org:6379"},
      {"redis://127.0.0.1:7001/12", "127.0.0.1", "", "", "", 7001, 12, "127.0.0.1:7001"},
      {"redis://h:65535/", "h", "", "", "", 65535, 0, "h:65535"},
      {"redis://ann:secret@h:1/2", "h", "ann", "secret", "", 1, 2, "h:1"},
      {"redis://:p@ss:word@h", "h", "", "p@ss:word", "", 6379, 0, "h:6379"},  // the last @ counts
      {"unix:///run/r.sock", "", "", "", "/run/r.sock", 6379, 0, "unix:/run/r.sock"},
      {"unix://ann:secret@/r?db=5", "", "ann", "secret", "/r", 6379, 5, "unix:/r"},
  };
  for (const auto& one : cases) {
    const Endpoint endpoint = parsed(one.url);
    EXPECT_EQ(endpoint.host, one.host) << one.url;
    EXPECT_EQ(endpoint.port, one.port) << one.url;
    EXPECT_EQ(endpoint.user, one.user) << one.url;
    EXPECT_EQ(endpoint.password, one.password) << one.url;
    EXPECT_EQ(endpoint.path, one.path) << one.url;
    EXPECT_EQ(endpoint.database, one.database) << one.url;
    EXPECT_EQ(endpoint.display(), one.display) << one.url;
    EXPECT_TRUE(endpoint.sentinels.empty() && !endpoint.tls) << one.url;
  }
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

}  // namespace
}  // namespace lockbench::redis
