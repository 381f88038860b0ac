#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <utility>

#include "choose/answer.h"
#include "simulate/calibration.h"
#include "strategies/registry.h"
#include "strategies/thread.h"

namespace lockbench::choose {
namespace {

using namespace std::chrono_literals;

// Larger loads take long to play; rarer sections are too few for percentiles.
constexpr double kMostPlayedClients = 1000, kMostPlayedKeys = 10'000, kLeastRate = 0.01;
constexpr Duration kLongestRtt = 1s;
/// So many sections, but no less than this time.
constexpr int kSections = 2000;
constexpr Duration kShortest = 5s;
/// Only so many strategies are played, the first in the order, with so many events in all, so that
/// an answer takes some two seconds. A time limit would give another answer on another machine.
constexpr std::size_t kMostPlayed = 8;
constexpr std::uint64_t kMostEvents = 800'000;

bool is_playable(const Question& question) {
  const Requirements& wanted = question.requirements;
  const double clients = wanted.clients ? *wanted.clients : question.asked.clients.value_or(1);
  return clients <= kMostPlayedClients && wanted.keys.value_or(1) <= kMostPlayedKeys &&
         wanted.rtt.value_or(0ns) <= kLongestRtt &&
         question.asked.demand().value_or(kLeastRate) >= kLeastRate;
}

bool is_measured(const Descriptor& strategy, const Question& question) {
  const Evidence::Runs measured = question.basis.runs_of(strategy.name);
  return !question.basis.far && !measured.runs.empty() && measured.valid;
}

/// As fast as the machine on which the strategy, or another on its store, was measured alone.
simulate::Plan plan_of(const Descriptor& strategy, loadgen::Workload load,
                       const Evidence& evidence) {
  load.settles_after.reset();
  if (load.rate) {
    const std::chrono::duration<double> length(kSections / *load.rate);
    load.duration = std::max(kShortest, std::chrono::duration_cast<Duration>(length));
  } else {
    load.iterations = kSections;
    load.duration = 10min;
  }
  simulate::Plan plan{.strategy = &strategy, .workload = std::move(load)};
  plan.redis.replicas = plan.workload.strategy.wait_replicas.value_or(0);
  const results::Result alone = evidence.alone(strategy);
  if (alone.runs.empty()) return plan;
  simulate::Plan measured = plan;
  measured.strategy = find_strategy(alone.runs.front().strategy);
  if (measured.strategy == nullptr) return plan;
  // Without, it has the times of the reference's machine.
  if (const auto found = simulate::calibrate(measured, alone)) plan.calibration = *found;
  return plan;
}

}  // namespace

Simulations simulate_unmeasured(
    const Answer& answer, const Evidence& evidence,
    const std::function<loadgen::Workload(const Candidate&)>& workload_of) {
  struct Part {
    const Descriptor& strategy;
    loadgen::Workload load;
    std::optional<results::Run> run{};
  };
  const Question question(answer.answered, evidence);
  std::vector<Part> parts;
  const bool playable = !answer.ranked_by.figure.empty() && is_playable(question);
  for (const Candidate& one : answer.ranked) {
    const Descriptor& strategy = *one.strategy;
    if (!playable || parts.size() == kMostPlayed) break;
    if (!simulate::why_not(strategy).empty()) continue;
    if (!is_measured(strategy, question)) parts.push_back({strategy, workload_of(one)});
  }
  if (parts.empty()) return {};
  const std::uint64_t each = kMostEvents / parts.size();
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < parts.size(); i = next++) {
      Part& part = parts[i];
      part.run = simulate::rehearse(plan_of(part.strategy, part.load, evidence), each);
    }
  };
  std::vector<std::future<void>> others;
  const auto cores = std::min<std::size_t>(parts.size(), std::thread::hardware_concurrency());
  for (std::size_t core = 1; core < cores; ++core) others.push_back(in_background(work));
  work();
  for (std::future<void>& other : others) other.get();
  Simulations played;
  for (Part& part : parts) {
    if (part.run) played.emplace(part.strategy.name, *std::move(part.run));
  }
  return played;
}

}  // namespace lockbench::choose
