#include <gmock/gmock.h>

#include <set>

#include "history/checker.h"
#include "history/operation.h"
#include "tests/support/broken_locks.h"
#include "tests/support/fake_redis.h"
#include "tests/unit/loadgen/live_run_fixture.h"

// The history of a run, and whether its check agrees with the run's audit.

namespace lockbench::loadgen {
namespace {

using history::History;
using history::Judgement;
using results::Verdict;

class HistoryOfARun : public LiveRunTest {
 protected:
  HistoryOfARun() {
    hold(1ms);
    plan_.nonce = 1;
  }

  results::Run record(const Descriptor& strategy) {
    const auto log = history::Log::open(path_).value();
    plan_.history = log.get();
    results::Run run = run_one(strategy);
    EXPECT_TRUE(log->close());
    history_ = history::read(path_).value();
    return run;
  }

  Judgement judged(const std::string& model) const {
    return history::judge(history_, history::parse_model(model).value()).value();
  }

  /// Expects that the audit and the check find the same.
  Judgement agreed(const results::Run& run, const std::string& model) const {
    Judgement judgement = judged(model);
    EXPECT_EQ(judgement.contradictions, run.audit.overlaps) << model;
    return judgement;
  }

  std::size_t count(history::Outcome outcome) const {
    return static_cast<std::size_t>(
        std::ranges::count(history_.operations, outcome, &history::Operation::outcome));
  }

  const test::TemporaryFolder folder_;
  std::string path_ = (folder_ / "run.edn").string();
  History history_;
};

TEST_F(HistoryOfARun, OfASoundLockIsExplained) {
  for (const char* const file : {"run.edn", "run.jsonl"}) {
    path_ = (folder_ / file).string();
    const results::Run run = record(named("local-mutex"));
    const Judgement judgement = agreed(run, "mutex");
    EXPECT_EQ(run.audit.overlaps, 0U);
    EXPECT_GE(judgement.granted, run.sections);
    EXPECT_GT(judgement.contended, 100U);
    EXPECT_EQ(history_.keys.size(), 1U);
    EXPECT_EQ(history_.keys.at(0), "local-mutex:1:0");
  }
}

TEST_F(HistoryOfARun, OfNoLockIsNot) {
  for (const char* const file : {"run.edn", "run.jsonl"}) {
    path_ = (folder_ / file).string();
    const results::Run run = record(named("none"));
    EXPECT_GT(agreed(run, "mutex").contradictions, 100U);
  }
}

/// Clients ask again each 100 us.
struct PollingLock {
  std::multiset<std::string, std::less<>> taken{};
  int attempts = 0;               ///< at a taken lock
  int leaks_after = 1 << 30;      ///< each so many of these are granted
  std::function<void()> asked{};  ///< at each request

  Behaviour behaviour() {
    return {.acquire =
                [this](const Context& context, const AcquireRequest& request) {
                  if (asked) asked();
                  while (taken.contains(request.key) && ++attempts % leaks_after != 0) {
                    const TimePoint again = context.env.now() + 100us;
                    if (context.env.wait(nullptr, again, request.stop) == WaitResult::stopped) {
                      return outcome(AcquireOutcome::abandoned);
                    }
                  }
                  taken.emplace(request.key);
                  return grant(request);
                },
            .release =
                [this](const Lease& lease) {
                  taken.erase(taken.find(lease.key));
                  return ReleaseResult{ReleaseOutcome::released, {}};
                }};
  }
};

TEST_F(HistoryOfARun, ALockThatFailsRarelyIsCaughtAsOftenAsByTheAudit) {
  PollingLock lock{.leaks_after = 1000};
  const Behaviour leaks = lock.behaviour();
  plan_.workload.keys = 3;
  plan_.workload.clients = 12;
  plan_.workload.duration = 600ms;
  const results::Run run = record(scripted("leaks", leaks));
  EXPECT_GT(run.audit.overlaps, 5U);
  EXPECT_LT(run.audit.overlaps, run.sections / 5);
  EXPECT_EQ(agreed(run, "mutex").keys_contradicted, 3U);
}

TEST_F(HistoryOfARun, SeveralLocksOfASectionEndWithIt) {
  plan_.workload.keys = 4;
  plan_.workload.locks_per_section = 2;
  for (const char* const name : {"local-mutex", "none"}) agreed(record(named(name)), "mutex");
}

TEST_F(HistoryOfARun, EachOutcomeHasItsPlace) {
  int calls = 0;
  const Behaviour unsure{
      .acquire =
          [&](const Context& context, const AcquireRequest& request) {
            context.env.wait(nullptr, context.env.now() + 1ms, {});
            const auto which = static_cast<AcquireOutcome>(++calls % 6);
            return which == AcquireOutcome::acquired ? grant(request) : outcome(which, "reason");
          },
      .release =
          [&](const Lease&) {
            return ReleaseResult{static_cast<ReleaseOutcome>(calls / 6 % 3), "reason"};
          }};
  plan_.workload.clients = 1;
  end_after(100);
  const results::Run run = record(scripted("unsure", unsure));
  EXPECT_EQ(count(history::Outcome::fail), run.outcomes.timed_out + run.outcomes.refused +
                                               run.outcomes.failed + run.outcomes.abandoned);
  EXPECT_EQ(count(history::Outcome::info), run.outcomes.unknown + run.releases_failed);
  EXPECT_GT(run.outcomes.unknown, 0U);
  agreed(run, "mutex");
}

TEST_F(HistoryOfARun, AStoppedRunLosesNothing) {
  plan_.workload.duration = 60s;
  PollingLock lock;
  int asked = 0;
  lock.asked = [&] {
    if (++asked == 50) stop_.request_stop();
  };
  const Behaviour stopped = lock.behaviour();
  const results::Run run = record(scripted("stopped", stopped));
  EXPECT_GT(history_.operations.size(), 90U);
  EXPECT_EQ(count(history::Outcome::info), 0U) << "all operations have ended";
  agreed(run, "mutex");
}

TEST_F(HistoryOfARun, RunsInOneFileHaveLocksOfTheirOwn) {
  plan_.workload.repeat = 2;
  const auto log = history::Log::open(path_).value();
  plan_.history = log.get();
  run({&named("local-mutex"), &named("none")});
  EXPECT_TRUE(log->close());
  history_ = history::read(path_).value();
  EXPECT_THAT(history_.keys,
              testing::ElementsAre("local-mutex:1:0", "none:2:0", "none:3:0", "local-mutex:4:0"));
  EXPECT_EQ(judged("mutex").keys_contradicted, 2U);
}

/// The locks of tests/support on an in-memory Redis, whose commands take a while.
class HistoryOfABrokenLock : public HistoryOfARun,
                             public testing::WithParamInterface<std::string_view> {
 protected:
  HistoryOfABrokenLock() {
    plan_.provide_services = [this](Services& services) {
      services.provide<redis::ConnectionFactory>(
          std::shared_ptr<redis::ConnectionFactory>(std::shared_ptr<void>(), &redis_));
    };
    plan_.endpoints = {{"redis", {"redis://fake:1"}}};
    redis_.on_arrival([this](const std::string&) {
      Carrier& carrier = Carrier::current();
      carrier.wait(nullptr, carrier.now() + 100us, {});
      if (!begun_) begun_ = carrier.now() - clock_.now().time_since_epoch();
      clock_.advance_to(TimePoint(carrier.now() - *begun_));
    });
  }

  /// The run must not look for a server of its store.
  static Descriptor without_server(const Descriptor& lock) {
    Descriptor made = lock;
    made.backend = "local";
    made.make = [lock](const Context& context) {
      return lock.make({.endpoints = context.endpoints,
                        .options = context.options,
                        .env = context.env,
                        .services = context.services,
                        .client = context.client,
                        .urls = {"redis://fake:1"},
                        .waiting = context.waiting,
                        .renewing = context.renewing});
    };
    return made;
  }

  void expect_agreement(const Descriptor& lock) {
    // The leases of a lock that shares with nobody are exclusive.
    const bool shares = lock.traits.shared && GetParam() != "shares_with_nobody";
    plan_.workload.shared_share = shares ? 0.5 : 0;
    const results::Run run = record(without_server(lock));
    agreed(run, lock.traits.shared ? "shared" : "mutex");
    if (!lock.traits.fencing) return;
    EXPECT_EQ(judged("fenced").contradictions > 0, run.audit.fence_regressions > 0);
  }

  std::optional<TimePoint> begun_;
  SimClock clock_;
  redis::FakeRedis redis_{clock_};
};

TEST_P(HistoryOfABrokenLock, AgreesWithTheAudit) {
  expect_agreement(test::broken_lock(GetParam()));
}

TEST_P(HistoryOfABrokenLock, AgreesWithTheAuditWhenLeasesExpireUnderTheirHolders) {
  plan_.workload.ttl = 20ms;
  plan_.workload.hold = DurationDistribution::parse("exp(10ms)").value();
  expect_agreement(test::broken_lock(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Flaws, HistoryOfABrokenLock, testing::ValuesIn(test::all_flaws()),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace lockbench::loadgen
