#include "cli/options/option.h"
#include "tests/support/variable.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using test::Variable;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

constexpr const char* kUrl = "redis://ann:hunter2@db:6379";

void open_to_others(const TemporaryFile& file) {
  std::filesystem::permissions(file.path(), std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
}

/// The servers of --redis that the options of `run` end up with, with secrets.
Words redis_of(const Words& args) {
  const auto options = parse_run(args);
  return options ? options->servers_of("redis") : Words{options.error()};
}

TEST(Passwords, AreSeenInUrlsAndInDsns) {
  // Of etcd, NATS and memcached, the scheme may be left out.
  for (const char* text : {kUrl, "bench:hunter2@etcd.example:2379", "ann:hunter2@a,b",
                           "unix://:hunter2@/run/redis.sock", "zk://ann:hunter2@a,b/chroot",
                           "postgresql://db/app?password=hunter2", "host=db password = hunter2",
                           "host=db sslpassword=hunter2"}) {
    EXPECT_TRUE(holds_password(text)) << text;
  }
  for (const char* text :
       {"redis://db:6379", "a:2181,b:2181", "ann@db:4222", "postgresql://ann@db/app",
        "host=db passfile=/etc/pass", "redis-set-nx", ""}) {
    EXPECT_FALSE(holds_password(text)) << text;
  }
}

TEST(Secrets, ComeFromAFileThatIsOursAlone) {
  const TemporaryFile file("redis.url", std::string("\n ") + kUrl + " \nredis://db2\n");
  EXPECT_THAT(redis_of({"--redis", "@" + file.path()}), ElementsAre(kUrl, "redis://db2"));
  open_to_others(file);
  EXPECT_THAT(redis_of({"--redis", "@" + file.path()}),
              ElementsAre(HasSubstr("open to other users: chmod 600 " + file.path())));
}

TEST(Secrets, ComeFromACredentialWhateverItsMode) {
  const TemporaryFile file("redis.url", kUrl);
  open_to_others(file);
  const std::string folder = std::filesystem::path(file.path()).parent_path();
  const Variable credentials("CREDENTIALS_DIRECTORY", folder);
  EXPECT_THAT(redis_of({"--redis", "@" + file.path()}), ElementsAre(kUrl));
}

TEST(Secrets, ComeFromTheEnvironmentUnlessGivenOtherwise) {
  const Variable variable("LOCKBENCH_REDIS", std::string(kUrl) + "\nredis://db2\n");
  const Variable counter("LOCKBENCH_COUNTER_REDIS", "redis://:hunter2@counter");
  const auto options = parse_run({"--resource", "redis"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->servers_of("redis"), ElementsAre(kUrl, "redis://db2"));
  EXPECT_EQ(options->counter_redis, "redis://:hunter2@counter");
  EXPECT_THAT(redis_of({"--redis", "redis://db3", "--resource", "redis"}),
              ElementsAre("redis://db3"));
  const TemporaryFile file("run.toml", "redis = [\"redis://db4\"]\nresource = \"redis\"\n");
  EXPECT_THAT(redis_of({"--config", file.path()}), ElementsAre("redis://db4"));
}

TEST(Secrets, InTheEnvironmentThatTheCommandDoesNotUseAreIgnored) {
  const Variable counter("LOCKBENCH_COUNTER_REDIS", "redis://counter");
  const Variable memcached("LOCKBENCH_MEMCACHED", "db:11211");
  const Variable redis("LOCKBENCH_REDIS", "redis://db");
  const auto options =
      parse_run({"memcached-add*", "--counter-redis", "redis://db2", "--resource", "redis"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->servers_of("memcached"), ElementsAre("db:11211"));
  EXPECT_THAT(options->servers_of("redis"), ElementsAre());
  const auto local = parse_run({"none", "--rtt", "1ms"});
  ASSERT_TRUE(local) << local.error();
  EXPECT_FALSE(local->counter_redis);
  EXPECT_THAT(redis_of({"memcached-add", "--rtt", "1ms"}),
              ElementsAre(HasSubstr("--rtt cannot be combined with --memcached")));
  const Variable no_counter("LOCKBENCH_COUNTER_REDIS", "");
  EXPECT_THAT(redis_of({"none", "--resource", "redis"}), ElementsAre("redis://db"));
}

TEST(Secrets, InTheEnvironmentAreIgnoredIfThisBuildCannotUseThem) {
  const Variable variable("LOCKBENCH_REDIS", "redis://db");
  RunOptions options;
  OptionList list = options_of(options);
  list.at("redis").in_environment = false;
  list.read(Words());
  EXPECT_THAT(options.servers_of("redis"), ElementsAre());
}

TEST(Secrets, InAConfigFileThatOthersCanReadAreRefused) {
  const TemporaryFile file("run.toml", std::string("clients = 2\nredis = [\"") + kUrl + "\"]\n");
  EXPECT_THAT(redis_of({"--config", file.path()}), ElementsAre(kUrl));
  open_to_others(file);
  EXPECT_THAT(redis_of({"--config", file.path()}),
              ElementsAre(HasSubstr("redis has a password in it, and the file is open")));
  const TemporaryFile bare("bare.toml", "memcached = \"ann:hunter2@db\"\n");
  open_to_others(bare);
  EXPECT_THAT(redis_of({"--config", bare.path()}),
              ElementsAre(HasSubstr("memcached has a password in it")));
  const TemporaryFile plain("plain.toml", "clients = 2\nredis = [\"redis://db\"]\n");
  open_to_others(plain);
  EXPECT_THAT(redis_of({"--config", plain.path()}), ElementsAre("redis://db"));
}

TEST(Secrets, InArgumentsAreRefused) {
  EXPECT_THAT(redis_of({"--redis", "redis://db2", "--redis", kUrl}),
              ElementsAre(AllOf(HasSubstr("give --redis @FILE, LOCKBENCH_REDIS in the environment, "
                                          "or a --config file"),
                                Not(HasSubstr("hunter2")))));
  EXPECT_THAT(
      redis_of({"--memcached", "ann:hunter2@db:11211"}),
      ElementsAre(AllOf(HasSubstr("--memcached has a password"), Not(HasSubstr("hunter2")))));
  const TemporaryFile file("redis.url", kUrl);
  EXPECT_THAT(redis_of({"--redis", "@" + file.path(), "--redis", "redis://db2"}),
              ElementsAre(kUrl, "redis://db2"));
}

}  // namespace
}  // namespace lockbench::cli
