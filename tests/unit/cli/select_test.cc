#include "cli/console/deploy.h"
#include "cli/options/option.h"
#include "strategies/registry.h"
#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A separate catalogue, so that the tests do not depend on the real strategies.
class Select : public testing::Test {
 protected:
  Select() {
    plain_.name = "redis-setnx";
    px_.name = "redis-set-nx";
    queue_.name = "redis-queue";
    queue_.traits.waiting = {.kind = WaitKind::queue};
    queue_.traits.waiting_choices = {};
    none_.name = "none";
    catalogue_ = {&none_, &queue_, &px_, &plain_};
  }

  std::vector<std::string> names(const std::vector<std::string>& patterns) {
    std::vector<std::string> names;
    for (const auto& [strategy, named] : select_strategies(patterns, catalogue_)) {
      names.push_back(std::string(strategy->name) + (named ? "!" : ""));
    }
    return names;
  }

  std::string error(const std::vector<std::string>& patterns) {
    return usage_error_of([&] { select_strategies(patterns, catalogue_); });
  }

  Descriptor plain_, px_, queue_, none_;
  std::vector<const Descriptor*> catalogue_;
};

TEST_F(Select, NothingMeansAll) {
  EXPECT_THAT(names({}), ElementsAre("none", "redis-queue", "redis-set-nx", "redis-setnx"));
  EXPECT_EQ(names({"all"}), names({}));
}

TEST_F(Select, NamesKeepTheirOrderAndGlobsExpandInTheCatalogues) {
  EXPECT_THAT(names({"redis-setnx", "none"}), ElementsAre("redis-setnx!", "none!"));
  EXPECT_THAT(names({"redis-set*", "redis-setnx", "redis-setnx"}),
              ElementsAre("redis-set-nx", "redis-setnx!"))
      << "duplicates collapse, and naming wins";
  EXPECT_THAT(names({"redis-set*"}), ElementsAre("redis-set-nx", "redis-setnx"));
  EXPECT_THAT(names({"redis-???n?"}), ElementsAre("redis-setnx"));
  EXPECT_THAT(names({"[nx]one"}), ElementsAre("none"));
}

TEST_F(Select, UnknownNamesGetSuggestions) {
  EXPECT_EQ(error({"redis-setn"}),
            "no such strategy \"redis-setn\": did you mean redis-setnx, redis-set-nx? "
            "(lockbench list shows all)");
  EXPECT_EQ(error({"bakery"}), "no such strategy \"bakery\" (lockbench list shows all)");
  EXPECT_THAT(error({""}), HasSubstr("no such strategy \"\""));
  EXPECT_EQ(error({"none", "etcd*"}), "no strategy matches \"etcd*\" (lockbench list shows all)");
}

/// The reason why these strategies cannot run under load.
std::string refusal(LoadOptions options, std::vector<std::string> strategies,
                    const std::vector<const Descriptor*>& catalogue) {
  options.strategies = std::move(strategies);
  return usage_error_of([&] { select_for_load(options, catalogue); });
}

TEST_F(Select, WaitingIsRefusedOnlyForNamedStrategies) {
  LoadOptions options;
  EXPECT_EQ(refusal(options, {"redis-queue"}, catalogue_), "accepted");
  options.workload.strategy.wait = WaitPolicy::poll(std::chrono::milliseconds(1));
  EXPECT_EQ(refusal(options, {"redis-q*", "redis-setnx"}, catalogue_), "accepted");
  EXPECT_THAT(refusal(options, {"redis-setnx", "redis-queue"}, catalogue_),
              HasSubstr("--wait: redis-queue cannot wait by poll"));
  queue_.traits.waiting_choices = {WaitKind::backoff};
  EXPECT_THAT(refusal(options, {"redis-queue"}, catalogue_), HasSubstr("allowed: backoff"));
}

TEST_F(Select, RenewalIsRefusedOnlyForNamedStrategiesThatNoTimerCanRenew) {
  using Kind = RenewPolicy::Kind;
  px_.traits.renewable = true;
  LoadOptions options;
  options.workload.ttl = std::chrono::seconds(1);
  EXPECT_EQ(refusal(options, {"redis-setnx"}, catalogue_), "accepted");
  for (const Kind kind : {Kind::automatic, Kind::every}) {
    options.workload.strategy.renew = RenewPolicy{kind, std::chrono::milliseconds(5)};
    EXPECT_EQ(refusal(options, {"redis-setn?", "redis-set-nx"}, catalogue_), "accepted")
        << "a glob's keep theirs";
    EXPECT_EQ(refusal(options, {"redis-set-nx", "redis-setnx"}, catalogue_),
              "--renew: redis-setnx cannot be renewed by a timer: only off is allowed");
  }
  options.workload.strategy.renew = RenewPolicy{Kind::off};
  EXPECT_EQ(refusal(options, {"redis-setnx"}, catalogue_), "accepted");
  options.workload.strategy.renew = RenewPolicy{Kind::every, std::chrono::seconds(1)};
  EXPECT_THAT(refusal(options, {"redis-set-nx"}, catalogue_),
              HasSubstr("interval (1s) must be shorter than the TTL (1s)"));
  options.workload.ttl = std::chrono::milliseconds(1001);
  EXPECT_EQ(refusal(options, {"redis-set-nx"}, catalogue_), "accepted");
}

TEST(Text, IsPresentable) {
  EXPECT_EQ(presentable("a\nb\x1b[31m"), "a b [31m");
  EXPECT_EQ(presentable("host=db password=hunter2 sslpassword='hunter 3' x"),
            "host=db password=*** sslpassword=*** x");
  const std::string form = "allowed: \"host=... user=... password=...\"";
  EXPECT_EQ(presentable(form), form);
  EXPECT_EQ(presentable("redis://:hunter2@host/ and redis://u:p@w/x@h:1 redis://plain"),
            "redis://***@host/ and redis://***@h:1 redis://plain");
  EXPECT_EQ(presentable("bench:hunter2@etcd.example:2379"), "***@etcd.example:2379");
  const std::string lock = "lock:job:ann@example.com is held for long";
  EXPECT_EQ(presentable(lock), lock);
  const std::string allowed = "allowed: redis://[[user]:password@]host[:port][/db] or such";
  EXPECT_EQ(presentable(allowed), allowed);
  const std::string optional = "allowed: etcd://[user:password@]host[:port] or [zk://[user:p@]]h";
  EXPECT_EQ(presentable(optional), optional);
}

TEST(Text, CloseNamesAreFewAndSorted) {
  EXPECT_EQ(did_you_mean("abcd", {"abce", "abcd", "zzzz", "axyz"}), ": did you mean abcd, abce?");
  EXPECT_EQ(did_you_mean("", {"a"}), "");
  EXPECT_EQ(did_you_mean(std::string(100'000, 'x'), {"a"}), "");
}

}  // namespace
}  // namespace lockbench::cli
