#include "hazards/dose.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>

#include "hazards/player.h"
#include "hazards/verdicts.h"

namespace lockbench::hazards {
namespace {

using namespace std::chrono_literals;

/// Time budget for all plays of one point.
constexpr Duration kPointBudget = 20s;
constexpr int kFewestPlays = 2;
/// A section longer than requested by more than this share of the TTL does not count.
constexpr double kTolerance = 0.05;
/// Attempts per requested play, until enough sections have the requested length.
constexpr int kMostTries = 3;
/// From this ratio on a lock that expires must have been granted to the next client, however late
/// servers and waiters react.
constexpr double kLongOver = 3;
constexpr int kMostBreaks = 2;

/// Shorter than in other plays, as there are many; with renewal, long enough for the timer on a
/// busy machine. Sessions are already as short as the store allows.
Duration dose_ttl(const Play& play) {
  const Traits& traits = play.traits();
  if (traits.expiry == Expiry::session) return play.ttl();
  if (traits.ttl_in_seconds) return 1s;
  return traits.renews ? 500ms : 300ms;
}

Duration times(Duration duration, double factor) {
  return std::chrono::round<Duration>(std::chrono::duration<double, std::nano>(duration) * factor);
}

struct Trial {
  bool violated = false;
  bool late = false;
};

/// The contender's section.
void use_lock(Actor& contender, const Grant& grant) {
  require_answer(grant);
  if (!grant.granted()) return;
  contender.read(grant);
  contender.write(grant);
  contender.release(grant);
}

/// `arrival`: when the contender asks, as a share of the time for which the lock is still held.
Trial play_once(Play& play, Actor& holder, Actor& contender, const DosePoint& point,
                double arrival) {
  const bool stalls = point.scenario->dose == Dose::stall;
  const std::uint64_t written = play.accepted_writes();
  const Grant held = holder.must_acquire();
  holder.read(held);
  if (stalls) holder.stop();
  const Duration section = times(play.ttl(), point.ratio);
  const TimePoint end = held.answered_at + section;
  std::this_thread::sleep_until(held.answered_at +
                                times(play.ttl(), std::min(point.ratio, 1.0) * arrival));
  contender.start_acquire(section + 2 * play.ttl() + 1s);
  std::optional<Grant> next = contender.finish_acquire_by(end);
  if (next) use_lock(contender, *next);
  std::this_thread::sleep_until(end);
  if (stalls) holder.resume();
  const TimePoint left_at = BootClock::now();
  holder.write(held);
  holder.release(held);
  if (!next) {
    next = contender.finish_acquire();
    use_lock(contender, *next);
  }
  const bool two_inside = next->granted() && next->answered_at < left_at;
  const bool update_lost = play.accepted_writes() - written > play.counter();
  return {.violated = stalls ? update_lost : two_inside,
          .late = left_at - end > times(play.ttl(), kTolerance)};
}

/// Runs the plays of one point.
class PointPlayer {
 public:
  PointPlayer(ServerPool& servers, std::shared_ptr<PrivateStore> store, const DosePlan& plan,
              DosePoint& point, std::uint64_t seed)
      : servers_(servers), store_(std::move(store)), plan_(plan), point_(point), random_(seed) {}

  /// Plays until there are enough results; starts new clients if a play broke off or was disturbed.
  void run(const std::stop_token& stop) {
    for (int breaks = 0; wants_more(stop);) {
      try {
        play_on(stop);
      } catch (const Disturbed&) {
        ++point_.late;
      } catch (const std::exception& failure) {
        point_.reason = failure.what();
        point_.failed = breaks++ == kMostBreaks;
        if (point_.failed) return;
      }
    }
    if (point_.plays == 0 && point_.late > 0) {
      point_.reason = "this machine is too busy: every section took longer than requested";
    }
  }

 private:
  bool wants_more(const std::stop_token& stop) const {
    const int wanted = plays_that_fit(plan_.plays, times(point_.ttl, point_.ratio));
    return !stop.stop_requested() && point_.plays < wanted &&
           point_.plays + point_.late < kMostTries * wanted;
  }

  void play_on(const std::stop_token& stop) {
    Play play(servers_, store_, *point_.strategy, fresh_key());
    play.set_ttl(dose_ttl(play));
    Actor& holder = play.client("holder");
    Actor& contender = play.client("contender");
    holder.warm_up();
    contender.warm_up();
    while (wants_more(stop)) {
      play.change_key();
      const double arrival = std::uniform_real_distribution<double>(0, 1)(random_);
      const Trial trial = play_once(play, holder, contender, point_, arrival);
      point_.ttl = play.ttl();
      if (trial.late) {
        ++point_.late;
      } else {
        ++point_.plays;
        point_.violated += trial.violated ? 1 : 0;
      }
    }
  }

  ServerPool& servers_;
  const std::shared_ptr<PrivateStore> store_;
  const DosePlan& plan_;
  DosePoint& point_;
  std::mt19937_64 random_;
};

void measure(ServerPool& servers, DosePoint& point, const DosePlan& plan, std::uint64_t seed,
             const std::stop_token& stop) {
  try {
    if (auto store = servers.store(*point.strategy, point.scenario->setup)) {
      PointPlayer(servers, *std::move(store), plan, point, seed).run(stop);
    } else {
      point.reason = store.error().reason;
    }
  } catch (const std::exception& failure) {
    point.reason = failure.what();
    point.failed = true;
  }
}

}  // namespace

double DosePoint::violated_share() const {
  return static_cast<double>(violated) / static_cast<double>(plays);
}

bool DosePoint::surprises() const {
  const HazardOutcome expected = expected_outcome(*scenario, *strategy);
  const bool withstands =
      expected == HazardOutcome::safe || expected == HazardOutcome::not_applicable;
  if (violated == 0) return plays > 0 && ratio >= kLongOver && !withstands;
  return withstands || ratio + kTolerance < 1;
}

std::string DosePoint::surprise() const {
  if (violated > 0) return fmt::format("{} of {} violated; none expected", violated, plays);
  return fmt::format("none of {} violated, though {} is declared", plays,
                     to_string(expected_outcome(*scenario, *strategy)));
}

const std::vector<double>& usual_ratios() {
  static const std::vector<double> ratios{0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3};
  return ratios;
}

std::vector<DosePoint> dose_points(const std::vector<const Scenario*>& scenarios,
                                   const std::vector<const Descriptor*>& strategies,
                                   std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end(), std::greater<>());
  ratios.erase(std::unique(ratios.begin(), ratios.end()), ratios.end());
  std::vector<DosePoint> points;
  for (const double ratio : ratios) {
    for (const Scenario* scenario : scenarios) {
      for (const Descriptor* strategy : strategies) {
        if (!scenario->dose || not_applicable(*scenario, *strategy)) continue;
        points.push_back({.scenario = scenario, .strategy = strategy, .ratio = ratio});
      }
    }
  }
  return points;
}

int plays_that_fit(int wanted, Duration one) {
  if (one <= Duration::zero()) return wanted;
  const auto fitting = static_cast<int>(std::min<std::int64_t>(kPointBudget / one, wanted));
  return std::min(wanted, std::max(fitting, kFewestPlays));
}

void measure_doses(ServerPool& servers, std::vector<DosePoint>& points, const DosePlan& plan,
                   const std::function<void(const DosePoint&)>& on_done,
                   const std::stop_token& stop) {
  std::mutex reporting;
  run_in_parallel(
      points.size(), plan.at_once,
      [&](std::size_t index) {
        DosePoint& point = points[index];
        measure(servers, point, plan, plan.seed + index, stop);
        const std::scoped_lock lock(reporting);
        on_done(point);
      },
      stop);
}

}  // namespace lockbench::hazards
