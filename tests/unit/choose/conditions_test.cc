#include "choose/evidence.h"
#include "strategies/registry.h"
#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const Traits until_disconnected{.expiry = Expiry::session, .ends_with_connection = true};

std::string value_of(const Candidate& one, std::string_view option) {
  for (const Setting& setting : one.settings) {
    if (setting.option == option) return setting.value;
  }
  return "";
}

TEST(Sizes, OfFaultsSetTtlAndAcquireTimeout) {
  World world;
  const KnownHazard lost{"pause-holding", HazardOutcome::lost_update};
  world.add(made_up("fixed", {}, {lost}));
  world.add(made_up("renewed", {.renews = RenewalTiming{}, .renewable = true}, {lost}));
  world.add(made_up("connected", until_disconnected));
  world.file() = under(2, {});
  const auto settings = [&](const Requirements& requirements, std::string_view option) {
    const Answer answer = world.choose(requirements);
    std::vector<std::string> values;
    for (const char* name : {"fixed", "renewed", "connected"}) {
      values.push_back(value_of(candidate(answer, name), option));
    }
    return values;
  };
  Requirements asked{.work_p99 = 15ms, .clients = 2};
  EXPECT_THAT(settings(asked, "--ttl"), ElementsAre("1s", "3s", ""));
  EXPECT_THAT(settings(asked, "--acquire-timeout"), ElementsAre("2s", "4s", "1s"));
  asked.pause = 2s;
  EXPECT_THAT(settings(asked, "--ttl"), ElementsAre("5s", "4s", ""));
  EXPECT_THAT(settings(asked, "--acquire-timeout"), ElementsAre("6s", "5s", "3s"))
      << "after a crash, or while the holder pauses";
  asked.failover = 5s;
  asked.outage = 30s;
  EXPECT_THAT(settings(asked, "--acquire-timeout"), ElementsAre("36s", "35s", "33s"));
  EXPECT_THAT(settings(asked, "--ttl"), ElementsAre("5s", "4s", ""))
      << "such work needs no renewal meanwhile";
  asked.work_p99 = 1min;
  EXPECT_EQ(settings(asked, "--ttl").at(1), "1m") << "this work does";
}

TEST(Sizes, APauseThatTheTtlOutlastsIsSurvivedAndALongerOneIsSaid) {
  World world;
  world.add(made_up("x", {}, {{"pause-holding", HazardOutcome::lost_update}}));
  EXPECT_FALSE(candidate(world.choose(surviving({"pause"})), "x").qualifies());
  const Answer answer = world.choose({.pause = 2s, .work_p99 = 1s});
  const auto longer = AllOf(Field(&Reason::requirement, "--pause 2s"),
                            Field(&Reason::text, HasSubstr("a longer fault loses the lock")));
  EXPECT_THAT(candidate(answer, "x").conditions, ElementsAre(longer));
  EXPECT_THAT(to_text(answer, {}), HasSubstr("pause of 2s"));
  const Answer of_unknown_work = world.choose({.pause = 2s});
  EXPECT_THAT(candidate(of_unknown_work, "x").in_favour, testing::IsEmpty());
  EXPECT_THAT(candidate(of_unknown_work, "x").conditions,
              ElementsAre(Field(&Reason::text, HasSubstr("give --work-time-p99")), longer));
}

TEST(Survival, OfWhatDoesNotConcernALockIsSaidInWords) {
  const Answer answer = ask(surviving({"failover"}, {.stores = {"etcd"}, .use = Use::leader}));
  const std::string text = to_text(answer, {}, true);
  EXPECT_THAT(text,
              HasSubstr("failover-sentinel: does not concern it (its store has no sentinels)"));
  EXPECT_THAT(text, Not(HasSubstr("not-applicable")));
  EXPECT_EQ(candidate(answer, "etcd").servers, 3) << "as one may fail";
}

TEST(Survival, OfAHostThatDiesTakesKeepalives) {
  const Answer answer = ask(surviving({"host-crash"}, {.stores = {"postgres"}}));
  EXPECT_THAT(candidate(answer, "postgres-advisory").conditions,
              Contains(Field(&Reason::text, HasSubstr("TCP keepalives"))));
  EXPECT_TRUE(candidate(answer, "postgres-advisory").qualifies());
  EXPECT_THAT(ask({.stores = {"postgres"}}).ranked.front().not_survived,
              Not(Contains(HasSubstr("host-crash"))))
      << "the settings have them";
}

TEST(Survival, OfAPoolerIsNotToGrantNothing) {
  for (const char* word : {"pooler", "pooler-*"}) {
    const Answer answer = ask(surviving({word}, {.stores = {"postgres"}}));
    EXPECT_FALSE(candidate(answer, "postgres-advisory").qualifies()) << word;
    EXPECT_FALSE(candidate(answer, "postgres-advisory-unchecked").qualifies()) << word;
    EXPECT_TRUE(candidate(answer, "postgres-advisory-xact").qualifies()) << word;
    EXPECT_EQ(answer.ranked.front().strategy->name, "postgres-lease") << word;
  }
}

TEST(Takeover, HasTheStepsOfTheStoreAndItsElections) {
  const Answer answer = ask({.stores = {"etcd"}, .use = Use::leader});
  EXPECT_THAT(answer.takeovers.front().text, HasSubstr("after 2 s to 3.5 s"))
      << "leases, twice a second";
  EXPECT_THAT(
      answer.takeovers,
      Contains(Field(&Takeover::text, AllOf(HasSubstr("after up to 9.5 s: the new leader"),
                                            HasSubstr("each further election adds up to 6 s")))));
  EXPECT_EQ(answer.ranked.front().servers, 3) << "as the condition says";
  EXPECT_THAT(to_text(ask({.stores = {"zookeeper"}, .use = Use::leader}), {}),
              HasSubstr("after 8 s to 14 s"))
      << "a tick is 2 s";
}

/// What postgres-advisory needs of a server with these settings.
std::vector<Reason> needs(std::map<std::string, std::string> settings) {
  Requirements requirements = surviving({"host-crash"}, {.stores = {"postgres"}, .clients = 300});
  if (!settings.empty()) requirements.servers["postgres"] = std::move(settings);
  return candidate(ask(requirements), "postgres-advisory").needs;
}

TEST(Conditions, AreCheckedAgainstTheServerThatWasGiven) {
  EXPECT_THAT(needs({}),
              ElementsAre(AllOf(Field(&Reason::text, HasSubstr("at least 303 (100 by default)")),
                                Field(&Reason::kept, std::nullopt)),
                          Field(&Reason::text, HasSubstr("no transaction pooler"))));
  std::map<std::string, std::string> server{
      {"max_connections", "100"},      {"superuser_reserved_connections", "3"},
      {"connections", "10"},           {"pooler", "transaction"},
      {"tcp_keepalives_idle", "7200"}, {"tcp_keepalives_interval", "75"},
      {"tcp_keepalives_count", "9"}};
  EXPECT_THAT(needs(server),
              ElementsAre(Field(&Reason::text, AllOf(testing::StartsWith("NOT MET: 300"),
                                                     HasSubstr("at least 313: it is 100"))),
                          Field(&Reason::text, HasSubstr("there is one")),
                          Field(&Reason::text, HasSubstr("they take 7875 s"))));
  server = {{"max_connections", "303"},
            {"connections", "0"},
            {"pooler", "no"},
            {"tcp_keepalives_idle", "5"},
            {"tcp_keepalives_interval", "1"},
            {"tcp_keepalives_count", "3"}};
  for (const Reason& one : needs(server)) EXPECT_EQ(one.kept, true) << one.text;
}

TEST(Conditions, OfRedisAreEvictionAndPersistence) {
  Requirements requirements = surviving({"restart"}, {.stores = {"redis"}});
  const auto kept = [&](std::map<std::string, std::string> settings) {
    requirements.servers["redis"] = std::move(settings);
    std::vector<bool> found;
    const Answer answer = ask(requirements);
    for (const Reason& one : candidate(answer, "redis-queue").needs) {
      found.push_back(one.kept.value());
    }
    return found;
  };
  EXPECT_THAT(kept({{"maxmemory", "9"}, {"maxmemory_policy", "allkeys-lru"}, {"aof_enabled", "0"}}),
              ElementsAre(false, false));
  EXPECT_THAT(kept({{"maxmemory", "0"}, {"maxmemory_policy", "allkeys-lru"}, {"aof_enabled", "1"}}),
              ElementsAre(true, true));
}

TEST(Conditions, OfALeaderOnOneServerIsItsFailover) {
  EXPECT_THAT(to_text(ask({.stores = {"redis"}, .use = Use::leader}), {}),
              HasSubstr("a failover may give two leaders"));
}

TEST(Language, PutsFirstWhatItsLibrariesImplement) {
  const Requirements busy{.stores = {"redis"}, .work_p50 = 2ms, .clients = 32, .rate = 150};
  Requirements fair = busy;
  fair.fair = true;
  EXPECT_EQ(ask(fair).ranked.front().strategy->name, "redis-queue");
  EXPECT_THAT(to_text(ask(fair), {}), HasSubstr("lockbench's own design, in no library"));
  Requirements in_go = busy;
  in_go.languages = {"Go", "Python"};
  const Answer answer = ask(in_go);
  const Descriptor& best = *answer.ranked.front().strategy;
  for (const std::string& language : in_go.languages) {
    EXPECT_TRUE(implements(best, Use::mutex, language)) << best.name;
  }
  EXPECT_THAT(candidate(answer, "redis-queue").drawback, HasSubstr("no library for Go, Python"));
}

TEST(Language, IsNotThatOfALibraryOfAnotherLock) {
  Requirements in_java = surviving({"failover"}, {.stores = {"redis"}});
  in_java.languages = {"Java"};
  const Answer answer = ask(in_java);
  EXPECT_EQ(candidate(answer, "redlock").drawback, "no library for Java")
      << "Redisson's multi-lock needs every server";
  EXPECT_THAT(to_text(answer, {}), AllOf(HasSubstr("but        no library for Java"),
                                         Not(HasSubstr("library    Java"))));
  EXPECT_THAT(to_text(answer, {}, true), Not(HasSubstr("Java: Redisson")));
  EXPECT_THAT(to_json(answer), HasSubstr(R"("drawback": "no library for Java")"));
  Requirements job{.stores = {"redis"}, .use = Use::once, .work_p99 = 20min};
  job.pause = 30s;
  job.outage = 1min;
  EXPECT_THAT(names(ask(job).ranked), Contains("redis-read-write"));
  EXPECT_NE(ask(job).ranked.front().strategy->name, "redis-read-write") << "it has no library";
}

TEST(Today, IsKeptUnlessABetterLockIsShown) {
  Requirements crowd = surviving({"crash"}, {.stores = {"redis", "postgres"}});
  crowd.work_p50 = 8ms;
  crowd.work_p99 = 15ms;
  crowd.clients = 300;
  crowd.keys = 50;
  crowd.rate = 1500;
  crowd.pause = 2s;
  crowd.today = "redis-reentrant-notify";
  const Answer answer = ask(crowd);
  ASSERT_TRUE(candidate(answer, crowd.today).qualifies());
  ASSERT_EQ(candidate(answer, crowd.today).tier, answer.ranked.front().tier);
  EXPECT_THAT(to_text(answer, {}),
              AllOf(HasSubstr("no better one is shown"), Not(HasSubstr("better: "))));
}

TEST(Today, IsPricedAndComparedWithTheBest) {
  Requirements requirements = surviving({"failover", "pause"});
  requirements.today = "redis-reentrant-notify";
  const Answer answer = ask(requirements);
  EXPECT_THAT(to_text(answer, {}),
              AllOf(HasSubstr("today      redis-reentrant-notify: acquire.p99 "),
                    HasSubstr("fails --survive failover: failover: double-grant"),
                    HasSubstr("better: etcd, for acquire.p99 "), HasSubstr(", 3 servers")));
  requirements = {.use = Use::leader, .today = "etcd"};
  requirements.stores = {"etcd"};
  EXPECT_THAT(to_text(ask(requirements), {}), HasSubstr("none of the others is better"));
}

TEST(Code, FitsTheUse) {
  const auto code = [](const char* store, Use use) {
    std::string all;
    for (const Code& one : ask({.stores = {store}, .use = use}).code) all += one.text;
    return all;
  };
  EXPECT_THAT(code("postgres", Use::once),
              AllOf(HasSubstr("pg_try_advisory_lock"), Not(HasSubstr("pg_advisory_lock")),
                    HasSubstr("job_done")));
  EXPECT_THAT(code("postgres", Use::mutex), HasSubstr("set local lock_timeout = '30000ms'"));
  EXPECT_THAT(code("etcd", Use::leader),
              AllOf(HasSubstr("concurrency.NewElection"), HasSubstr("WithTTL(3)"),
                    HasSubstr(".election(name, 3)")));
  EXPECT_THAT(code("zookeeper", Use::leader), HasSubstr("new LeaderLatch"));
}

TEST(Code, FillsInEachPlaceAndIsShort) {
  for (const EmbeddedFile& file : code_files()) {
    EXPECT_LE(std::ranges::count(file.text, '\n'), 10) << file.name;
    const auto dot = file.name.find('.');
    const Descriptor* const strategy = find_strategy(file.name.substr(0, dot));
    ASSERT_NE(strategy, nullptr) << file.name;
    for (const Use use : {Use::mutex, Use::once, Use::leader}) {
      for (const Code& one : code_for(*strategy, {.use = use}, {})) {
        EXPECT_THAT(one.text, Not(testing::ContainsRegex("[{](ttl|wait)"))) << file.name;
      }
    }
  }
}

TEST(Text, IsReadInAMinute) {
  Requirements crowd = surviving({"crash"}, {.stores = {"redis", "postgres"}});
  crowd.work_p50 = 8ms;
  crowd.work_p99 = 15ms;
  crowd.clients = 300;
  crowd.keys = 50;
  crowd.rate = 1500;
  crowd.pause = 2s;
  Requirements next_year = crowd, on_redis = crowd, today = surviving({"failover", "pause"});
  next_year.rate = 6000;
  on_redis.stores = {"redis"};
  today.today = "redis-reentrant-notify";
  Requirements election{.stores = {"etcd"}, .use = Use::leader, .clients = 3};
  election.failover = 5s;
  for (const Requirements& asked : {crowd, next_year, on_redis, today, election,
                                    Requirements{.stores = {"redis", "postgres"}, .use = Use::once},
                                    Requirements{.stores = {"zookeeper"}, .use = Use::leader},
                                    surviving({"failover"}, {.stores = {"redis"}})}) {
    const std::string text = to_text(ask(asked), {});
    EXPECT_LE(std::ranges::count(text, '\n'), 25) << text;
  }
}

}  // namespace
}  // namespace lockbench::choose
