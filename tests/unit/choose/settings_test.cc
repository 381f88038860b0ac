#include "tests/unit/choose/fixtures.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const Traits renewed_traits{.renews = RenewalTiming{}, .renewable = true};

/// The setting of that option; without a name if there is none.
Setting setting(const Answer& answer, std::string_view option) {
  for (const Setting& one : settings_of(answer)) {
    if (one.option == option) return one;
  }
  return {};
}

Answer answer_for(Traits traits, const Requirements& requirements,
                  std::vector<KnownHazard> hazards = {}) {
  // Answers refer to the descriptors, so keep these until the next call.
  static std::optional<World> world;
  world.emplace();
  Descriptor lock = made_up("x", std::move(traits), std::move(hazards));
  // Settings of a server are those of a store.
  if (lock.traits.ends_with_connection) lock.backend = "postgres";
  world->add(std::move(lock));
  world->file() = under(requirements.clients.value_or(32), {measured("x", 1e-3)});
  return world->choose(requirements);
}

/// The expected advice for an option, and part of its reason.
struct Advice {
  const char* option;
  Traits traits;
  Requirements asked;
  const char *value, *because = "";
  std::vector<KnownHazard> hazards{};
};

TEST(Settings, FollowFromTheLockAndTheWork) {
  const Traits session{.expiry = Expiry::session}, can_renew{.renewable = true};
  const Traits connected{.expiry = Expiry::session, .ends_with_connection = true};
  const Requirements long_work{.work_p99 = 1h}, varied{.work_p50 = 10ms, .work_p99 = 5s};
  const std::vector<Advice> all = {
      {"--ttl", {}, {.work_p99 = 800ms}, "2400ms"},
      {"--ttl", {}, {.work_p50 = 1s}, "3s"},
      {"--ttl", {.ttl_in_seconds = true}, {.work_p99 = 800ms}, "3s"},
      {"--ttl", {}, {.work_p99 = 1us}, "1s"},
      {"--ttl", {}, {.clients = 2}, "10s", "unknown"},
      {"--ttl", {}, {.work_p99 = 15ms, .rtt = 300ms}, "4s"},
      {"--ttl", renewed_traits, long_work, "3s", "any length"},
      {"--ttl", renewed_traits, {.rtt = 1s}, "10s"},
      {"--ttl", session, long_work, "3s"},
      {"--ttl", {.expiry = Expiry::none}, long_work, ""},
      {"--ttl", connected, {.use = Use::leader}, ""},
      {"--renew", can_renew, varied, "auto"},
      {"--renew", can_renew, {.work_p50 = 1s, .work_p99 = 5s}, ""},
      {"--renew", {}, varied, ""},
      {"--renew-cap",
       renewed_traits,
       {.work_p99 = 1s},
       "20s",
       "",
       {{"runaway-holder", HazardOutcome::stuck}}},
      {"--renew-cap", renewed_traits, {.work_p99 = 1s}, ""},
      {"--acquire-timeout", {}, {.work_p99 = 800ms, .clients = 200}, "202s", "not fair"},
      {"--acquire-timeout", {}, {.work_p99 = 1ms, .clients = 200, .rtt = 20ms}, "7s"},
  };
  for (const Advice& one : all) {
    const Answer answer = answer_for(one.traits, one.asked, one.hazards);
    EXPECT_EQ(setting(answer, one.option).value, one.value) << one.option;
    EXPECT_THAT(setting(answer, one.option).because, HasSubstr(one.because));
  }
  EXPECT_THAT(setting(answer_for(connected, {.use = Use::leader}), "at the server").because,
              HasSubstr("tcp_keepalives_idle"));
}

TEST(Ttl, ACrashBlocksTheLockForAsLongAsItsStoreKeepsIt) {
  const Traits counts_seconds{.ttl_in_seconds = true, .kept_longer = 2s};
  EXPECT_THAT(setting(answer_for(counts_seconds, {.work_p99 = 1s}), "--ttl").because,
              HasSubstr("a crash blocks it for up to 5 s"));
  const Answer delayed =
      answer_for({.expiry = Expiry::session, .lock_delay = true}, {.use = Use::leader});
  EXPECT_THAT(setting(delayed, "--ttl").because, HasSubstr("blocks the lock for up to 4 s"));
  ASSERT_FALSE(delayed.takeovers.empty());
  EXPECT_THAT(delayed.takeovers.front().text, HasSubstr("after 2 s to 4 s"));
}

TEST(Ttl, OutlastsTheStallsThatWereSeen) {
  World world{"x"};
  world.file() = under(32, {measured("x", 1e-3)});
  world.file().runs[0].release = {.count = 9, .max = 0.25};
  const Setting ttl = setting(world.choose({.work_p99 = 15ms}), "--ttl");
  EXPECT_EQ(ttl.value, "2600ms") << "15 ms and ten stalls, rounded up";
  EXPECT_THAT(ttl.evidence, HasSubstr("15ms + 10 × 250 ms (stalls) = 2.52 s"));
}

TEST(Ttl, IsASessionThatTheStoreSupports) {
  World world;
  Descriptor strict = made_up("x", {.expiry = Expiry::session});
  strict.safe_session = {12s, "as its members need"};
  world.add(strict);
  const Setting ttl = setting(world.choose({.work_p99 = 1h}), "--ttl");
  EXPECT_EQ(ttl.value, "12s");
  EXPECT_THAT(ttl.evidence, HasSubstr("12s (as its members need)"));
}

TEST(Ttl, IsNotThatOfAFaultThatWasInjected) {
  World world{"x"};
  world.file() = under(32, {measured("x", 1e-3)});
  world.file().runs[0].release = {.count = 9, .max = 5};
  world.file().runs[0].faults = {{.fault = "pause"}};
  EXPECT_EQ(setting(world.choose({.work_p99 = 15ms}), "--ttl").value, "1s");
}

TEST(Once, SkipsAndLeavesAMark) {
  const Answer answer = answer_for(renewed_traits, {.use = Use::once, .work_p99 = 12h});
  EXPECT_EQ(setting(answer, "--acquire-timeout").value, "0s");
  EXPECT_EQ(setting(answer, "done-marker").option, "done-marker");
  EXPECT_THAT(answer.check, HasSubstr("lockbench hazards")) << "no load has sections of 12 h";
}

TEST(Shared, LocksAreTriedWithReadersAndQueueForNobody) {
  const Answer answer =
      answer_for({.shared = true}, {.work_p50 = 5ms, .clients = 50, .rate = 400, .shared = true});
  EXPECT_EQ(answer.check,
            "lockbench run x --clients 50 --shared-share 0.9 --rate 400 --hold 5ms "
            "--ttl 1s");
  EXPECT_THAT(answer.assumption, HasSubstr("90 % are assumed to read"));
  EXPECT_EQ(answer.ranked_by.figure, "acquire.p99") << "it is not always taken";
}

TEST(Nodes, AreFiveAndHaveTimeForARoundTrip) {
  const Answer answer = answer_for({.nodes = 2}, {.work_p99 = 100ms});
  EXPECT_EQ(setting(answer, "--nodes").value, "5");
  EXPECT_EQ(setting(answer, "--node-timeout").value, "50ms") << "a twentieth of the TTL";
  const Answer far = answer_for({.nodes = 2}, {.work_p99 = 100ms, .rtt = 100ms});
  EXPECT_EQ(setting(far, "--node-timeout").value, "300ms") << "or no node could answer";
}

TEST(CheckCommand, HasTheLoadAndTheSettings) {
  EXPECT_EQ(answer_for({}, {.work_p99 = 80ms, .clients = 200}).check,
            "lockbench run x --clients 200 --rate 8.75 --hold 80ms --ttl 1s --acquire-timeout 21s");
  EXPECT_EQ(answer_for({}, {.work_p50 = 10ms, .work_p99 = 15ms, .clients = 9, .rate = 7, .keys = 3})
                .check,
            "lockbench run x --clients 9 --keys 3 --rate 7 --hold 'lognormal(10ms,15ms)' "
            "--ttl 1s --acquire-timeout 2s");
}

TEST(CheckCommand, PlaysTheFaultsThatWereAskedFor) {
  Requirements leader = surviving({"pause"}, {.use = Use::leader});
  EXPECT_EQ(answer_for(renewed_traits, leader).check,
            "lockbench hazards pause-holding pause-holding-late --strategies x");
  leader.survive.clear();
  EXPECT_EQ(answer_for(renewed_traits, leader).check,
            "lockbench hazards crash-holding pause-holding overrun-holding --strategies x");
}

TEST(CheckCommand, AssumesNoMoreThanTheLockCanCarry) {
  EXPECT_EQ(answer_for({}, {.clients = 32, .rate = 1000}).check,
            "lockbench run x --clients 32 --rate 1000 --hold 'exp(700us)' --ttl 10s");
  EXPECT_EQ(answer_for({}, {.clients = 32, .rate = 10}).check,
            "lockbench run x --clients 32 --rate 10 --hold 'exp(2ms)' --ttl 10s");
  const Answer few = answer_for({}, {.work_p50 = 2ms, .clients = 8, .keys = 1000});
  EXPECT_THAT(few.check, HasSubstr("--rate 2800 ")) << "70 % of what eight clients can";
}

}  // namespace
}  // namespace lockbench::choose
