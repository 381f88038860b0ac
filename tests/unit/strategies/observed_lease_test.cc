#include "strategies/observed_lease.h"

#include <gmock/gmock.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_renewal_channel.h"
#include "tests/support/sim_env.h"

namespace lockbench {
namespace {

using namespace std::chrono_literals;

/// What all clients of a test share. Can fail, on simulated time.
struct SharedItems {
  std::map<std::string, VersionedItem> items;
  int writes = 0;
  bool reachable = true;
  int calls = 0;
};

class FakeStore : public VersionedStore {
 public:
  explicit FakeStore(SharedItems& shared) : shared_(shared) {}

  StoreResult<void> connect() override { return {}; }
  const std::string& display() const override { return display_; }
  StoreResult<std::optional<VersionedItem>> get(const std::string& key,
                                                const std::stop_token&) override {
    ++shared_.calls;
    if (!shared_.reachable) return down();
    const auto found = shared_.items.find(key);
    if (found == shared_.items.end()) return std::nullopt;
    return found->second;
  }
  StoreResult<bool> put(const ConditionalPut& put, const std::stop_token&) override {
    if (!shared_.reachable) return down();
    const std::string key(put.key);
    const auto found = shared_.items.find(key);
    const bool same = put.over == nullptr ? found == shared_.items.end()
                                          : found != shared_.items.end() &&
                                                found->second.version == put.over->version;
    if (!same) return false;
    shared_.items[key] = {std::string(put.value), std::to_string(++shared_.writes)};
    return true;
  }

 private:
  tl::unexpected<StoreError> down() const {
    return failure_at(display_, StoreError::Kind::not_sent, "unreachable");
  }

  SharedItems& shared_;
  const std::string display_ = "fake:1";
};

/// Believes a wall clock: takes over when the holder's own end has passed by this client's time of
/// day. A broken lock, for the check that must find it.
class HastyLease : public ObservedLease {
 public:
  using ObservedLease::ObservedLease;

 protected:
  StoreResult<bool> take(const AcquireRequest& request, Lease& lease) override {
    const auto item = store().get(lease.key, request.stop);
    if (!item) return tl::unexpected(item.error());
    if (!*item) return ObservedLease::take(request, lease);
    // It does not count from when it first saw the record.
    const auto record = parse_record((*item)->value);
    if (env().wall_now().time_since_epoch() % (2 * record->duration) < record->duration) {
      return false;
    }
    return grant(request,
                 to_text({.holder = lease.token,
                          .duration = request.ttl,
                          .transitions = record->transitions + 1}),
                 &**item, lease);
  }
};

class ObservedLeaseTest : public testing::Test {
 protected:
  ObservedLeaseTest() { services_.provide<RenewalScheduler>(scheduler_); }

  struct Client {
    Client(SimClock& clock, int number) : env(clock, static_cast<std::uint64_t>(number)) {}
    AcquireResult acquire(Duration wait = {}, Duration ttl = kTtl) {
      return lock->acquire({.key = "k", .ttl = ttl, .deadline = env.now() + wait, .stop = {}});
    }
    SimEnv env;
    std::unique_ptr<LockStrategy> lock;
  };

  template <class Strategy = ObservedLease>
  Client& client() {
    Client& made = clients_.emplace_back(clock_, static_cast<int>(clients_.size()) + 1);
    const Traits traits = observed_traits();
    const Context context{.endpoints = endpoints_,
                          .options = options_,
                          .env = made.env,
                          .services = services_,
                          .waiting = options_.wait.value_or(traits.waiting),
                          .renewing = renewed_ ? traits.renews : std::nullopt};
    made.lock = std::make_unique<Strategy>(
        context, [this](const Timeouts&, Env&) { return std::make_unique<FakeStore>(shared_); });
    return made;
  }

  Lease must(AcquireResult result) {
    EXPECT_EQ(result.outcome, AcquireOutcome::acquired) << result.reason;
    if (!result.lease) throw std::runtime_error("not acquired");
    return *std::move(result.lease);
  }
  LeaseRecord record() { return parse_record(shared_.items.at("k").value).value(); }
  void renew_for(Duration time) { run_until(clock_.now() + time, *scheduler_, clock_); }

  static constexpr Duration kTtl = 15s;

  SimClock clock_;
  SharedItems shared_;
  const Endpoints endpoints_;
  StrategyOptions options_;
  bool renewed_ = false;
  StrategyObserver ignores_renewals_;
  const std::shared_ptr<RenewalScheduler> scheduler_ = std::make_shared<RenewalScheduler>(
      std::make_unique<SimEnv>(clock_), ignores_renewals_, RenewalScheduler::Drive::by_hand);
  Services services_;
  std::deque<Client> clients_;
};

TEST_F(ObservedLeaseTest, ACandidateFirstWatchesForTheWholeDuration) {
  Client &holder = client(), &candidate = client();
  const Lease held = must(holder.acquire());
  EXPECT_EQ(held.state->valid_until(), clock_.now() + 10s) << "the renew deadline";
  // It comes when the lease is long over, but has not watched the record yet.
  clock_.advance(60s);
  const TimePoint came = clock_.now();
  const Lease next = must(candidate.acquire(60s));
  EXPECT_GE(clock_.now(), came + kTtl);
  EXPECT_LE(clock_.now(), came + kTtl + 4400ms) << "the longest retry period";
  EXPECT_GT(next.fencing, held.fencing);
}

TEST_F(ObservedLeaseTest, ARenewalStartsTheWatchAgain) {
  Client &holder = client(), &candidate = client();
  const Lease held = must(holder.acquire());
  EXPECT_EQ(candidate.acquire().outcome, AcquireOutcome::refused);
  clock_.advance(14s);
  EXPECT_EQ(holder.lock->renew(held, kTtl).outcome, RenewOutcome::renewed);
  clock_.advance(14s);
  EXPECT_EQ(candidate.acquire().outcome, AcquireOutcome::refused);
  clock_.advance(14s);
  EXPECT_EQ(candidate.acquire().outcome, AcquireOutcome::refused);
  clock_.advance(1s);
  EXPECT_EQ(candidate.acquire().outcome, AcquireOutcome::acquired);
  EXPECT_EQ(holder.lock->renew(held, kTtl).outcome, RenewOutcome::not_owner);
  EXPECT_EQ(holder.lock->release(held).outcome, ReleaseOutcome::not_owner);
}

TEST_F(ObservedLeaseTest, NoWallClockMatters) {
  const auto too_early = [&](Client& candidate) {
    shared_.items.clear();
    const Lease held = must(client().acquire());
    for (int second = 0; second < 9; ++second) {
      candidate.env.skew_wall_clock(std::chrono::hours(second * 3 - 12) + second * 7s);
      if (candidate.acquire().lease) return held.state->valid_at(clock_.now());
      clock_.advance(1s);
    }
    return false;
  };
  EXPECT_FALSE(too_early(client()));
  EXPECT_TRUE(too_early(client<HastyLease>())) << "a candidate that goes by its time of day";
}

TEST_F(ObservedLeaseTest, AReleasedLeaseIsTakenAtOnceAndItsNumbersGoOn) {
  Client &one = client(), &two = client();
  for (std::uint64_t number = 1; number < 6; number += 2) {
    for (Client* next : {&one, &two}) {
      const Lease lease = must(next->acquire());
      EXPECT_EQ(lease.fencing, number + (next == &two ? 1 : 0));
      EXPECT_EQ(next->lock->release(lease).outcome, ReleaseOutcome::released);
      EXPECT_EQ(record().holder, "");
      EXPECT_EQ(record().duration, Duration(1s)) << "as client-go writes it";
    }
  }
}

TEST_F(ObservedLeaseTest, TheTimerRenewsEveryRetryPeriod) {
  renewed_ = true;
  Client &holder = client(), &candidate = client();
  const Lease held = must(holder.acquire());
  for (int second = 0; second < 60; ++second) {
    EXPECT_EQ(candidate.acquire().outcome, AcquireOutcome::refused);
    renew_for(1s);
  }
  EXPECT_NEAR(static_cast<double>(record().renewals), 30, 1);
  EXPECT_TRUE(held.state->valid_at(clock_.now()));
  EXPECT_EQ(holder.lock->release(held).outcome, ReleaseOutcome::released);
  const int writes = shared_.writes;
  renew_for(20s);
  EXPECT_EQ(shared_.writes, writes) << "renewed after its release";
}

TEST_F(ObservedLeaseTest, AnOutageUpToTheRenewDeadlineLosesNothing) {
  for (const auto& [outage, lost] : {std::pair{7s, false}, std::pair{13s, true}}) {
    shared_.items.clear();
    renewed_ = true;
    const Lease held = must(client().acquire());
    renew_for(4s);
    shared_.reachable = false;
    renew_for(outage);
    shared_.reachable = true;
    renew_for(10s);
    EXPECT_EQ(held.state->lost_at().has_value(), lost) << seconds(outage);
    EXPECT_EQ(held.state->valid_at(clock_.now()), !lost) << seconds(outage);
  }
}

TEST_F(ObservedLeaseTest, OneFailureIsEnoughForABatch) {
  renewed_ = true;
  std::vector<Lease> held;
  for (int number = 0; number < 20; ++number) {
    Client& holder = client();
    held.push_back(must(holder.lock->acquire(
        {.key = std::to_string(number), .ttl = kTtl, .deadline = clock_.now(), .stop = {}})));
  }
  shared_.reachable = false;
  shared_.calls = 0;
  renew_for(2s);
  EXPECT_EQ(shared_.calls, 1);
}

TEST_F(ObservedLeaseTest, TheRenewDeadlineCanBeChosen) {
  options_.renew_deadline = 4s;
  const Lease held = must(client().acquire());
  EXPECT_EQ(held.state->valid_until(), clock_.now() + 4s);
}

TEST_F(ObservedLeaseTest, AnotherValueIsRefusedAndStays) {
  shared_.items["k"] = {"somebody's", "1"};
  const AcquireResult result = client().acquire();
  EXPECT_EQ(result.outcome, AcquireOutcome::failed);
  EXPECT_THAT(result.reason, testing::HasSubstr("no record of a lease: somebody's"));
  EXPECT_EQ(shared_.items["k"].value, "somebody's");
}

TEST(LeaseRecords, AreReadAsTheyAreWritten) {
  const LeaseRecord record{
      .holder = "4f3a", .duration = 1500ms, .renewals = 7, .transitions = UINT64_MAX};
  const auto read = parse_record(to_text(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->holder, record.holder);
  EXPECT_EQ(read->duration, record.duration);
  EXPECT_EQ(read->renewals, record.renewals);
  EXPECT_EQ(read->transitions, record.transitions);
  for (const char* text : {"", "{}", "[]", "4f3a", "{\"holderIdentity\":1}"}) {
    EXPECT_FALSE(parse_record(text)) << text;
  }
  std::string endless = to_text(record);
  endless.replace(endless.find("1.5"), 3, "0.0");
  EXPECT_FALSE(parse_record(endless)) << "nobody would have to watch it";
}

}  // namespace
}  // namespace lockbench
