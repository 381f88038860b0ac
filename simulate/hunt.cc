#include "simulate/hunt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "simulate/hunted_lock.h"
#include "strategies/number.h"

namespace lockbench::simulate {
namespace {

using namespace std::chrono_literals;

// The stream of random numbers that draws a trial; clients have those from 0 on.
constexpr std::uint64_t kScene = std::uint64_t{1} << 40;
constexpr int kMostFaults = 3;
constexpr int kShrinkingPlays = 400;
// About so many deliveries and wake-ups belong to a section.
constexpr int kStepsPerSection = 16;

/// Everything that a trial plays.
struct Scene {
  Plan plan;
  Uses uses;
  Terms terms;
};

/// Draws a scene. Every draw is made for every trial of a seed, so that a smaller trial is a part
/// of the larger one.
class Painter {
 public:
  Painter(const Descriptor& strategy, std::uint64_t seed)
      : traits_(strategy.traits),
        has_databases_(strategy.backend == "redis"),
        members_agree_(store_traits(strategy.backend).members_agree),
        random_(seed, kScene) {
    scene_.plan.strategy = &strategy;
  }

  Scene paint() {
    draw_ttls();
    draw_load();
    draw_servers();
    draw_orders();
    const auto faults = below(kMostFaults + 1);
    for (std::uint64_t i = 0; i < faults; ++i) draw_fault();
    return std::move(scene_);
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <class T>
  T any_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  loadgen::Workload& load() { return scene_.plan.workload; }

  /// Those of different clients may differ. A second acquisition's is never below the time to the
  /// first renewal.
  void draw_ttls() {
    constexpr std::size_t kDifferent = 3;
    load().ttl = any_of<Duration>({600ms, 1s, 2s, 20s});
    const bool differ = one_in(2);
    scene_.uses.reenters = one_in(2) && traits_.reentrant;
    for (std::size_t i = 0; i < kDifferent; ++i) {
      const int times = any_of({1, 2, 3});
      const Duration own = differ ? load().ttl * times : load().ttl;
      const Duration inner = own * any_of({1, 2, 4}) / 2;
      scene_.uses.ttls.push_back(own);
      scene_.uses.inner_ttls.push_back(inner);
      scene_.terms.longest_ttl = std::max({scene_.terms.longest_ttl, own, inner});
    }
  }

  void draw_load() {
    const Duration ttl = load().ttl;
    load().clients = 2 + static_cast<int>(below(5));
    load().iterations = 10 + below(60);
    load().warmup = {};
    load().duration = 3min;
    // Holds that are longer than a TTL; not if it is long, which would take all the time.
    const Duration longest = ttl > 5s ? 100ms : ttl * 3 / 2;
    load().hold = any_of(
        {DurationDistribution::constant(1ms), DurationDistribution::exponential(20ms),
         DurationDistribution::uniform({}, longest), DurationDistribution::uniform({}, longest)});
    load().think = any_of({DurationDistribution(), DurationDistribution::exponential(5ms),
                           DurationDistribution::exponential(100ms)});
    load().shared_share = any_of({0.0, 0.3, 0.7}) * (traits_.shared ? 1 : 0);
    load().acquire_timeout = any_of<Duration>({500ms, 5s, 30s});
    StrategyOptions& options = load().strategy;
    options.command_timeout = any_of<Duration>({300ms, 1s});
    const bool notified = one_in(2);
    if (notified && std::ranges::count(traits_.waiting_choices, WaitKind::notify) > 0) {
      options.wait = WaitPolicy::notify();
    }
    const bool renewed = one_in(3);
    if (renewed && traits_.renewable) options.renew = {RenewPolicy::Kind::automatic};
    scene_.terms.clients = load().clients;
    scene_.terms.timeout = options.command_timeout;
    scene_.terms.renewed = traits_.renews || (traits_.renewable && options.renew);
  }

  void draw_servers() {
    const bool quorum = traits_.nodes > 1;
    load().nodes = any_of({3, 5});
    scene_.uses.databases = one_in(2) && !quorum && has_databases_ ? 2 : 1;
    scene_.uses.keys = load().keys = scene_.uses.databases * (one_in(4) ? 2 : 1);
    scene_.terms.keys = load().keys;
    RedisSettings& redis = scene_.plan.redis;
    redis.persistence = any_of({Persistence::none, Persistence::everysec, Persistence::always});
    redis.replicas = 1 + static_cast<int>(below(2));
    scene_.plan.members = redis.replicas == 1 ? 1 : 3;
    const bool far_behind = one_in(2);
    if (traits_.needs_replicas) {
      load().strategy.wait_replicas = redis.replicas;
    } else if (far_behind) {
      redis.lag = DurationDistribution::constant(200ms);
      // Clients of a member that is behind take several times as long to come to the front of a
      // queue: if all give up sooner, nobody is granted the lock.
      if (members_agree_) load().acquire_timeout = std::max<Duration>(load().acquire_timeout, 5s);
    }
  }

  void draw_orders() {
    using Kind = OrderPlan::Kind;
    scene_.plan.orders = {
        .kind = any_of({Kind::drawn, Kind::uniform, Kind::priorities}),
        .latest = any_of<Duration>({500us, 2ms, 8ms}),
        .changes = 1 + static_cast<int>(below(4)),
        .steps = std::max<std::uint64_t>(1, *load().iterations * kStepsPerSection)};
  }

  void draw_fault() {
    using enum Disturbance;
    const auto kind =
        any_of({store_kill, store_freeze, failover, partition, partition_to, partition_from, delay,
                client_pause, client_pause, client_kill, clock_step, client_clock_step, eviction});
    const auto length =
        any_of<Duration>({20ms, 400ms, std::min<Duration>(load().ttl * 3 / 2, 5s), 3s});
    auto amount = any_of<Duration>({50ms, 400ms, 3s});
    if (one_in(2) && kind != delay) amount = -amount;
    // While the load lasts, if nothing holds it up.
    const double sections = static_cast<double>(*load().iterations) / load().keys;
    const double until = sections * seconds(load().hold.mean() + 1ms) + 0.05;
    const Duration at = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(loadgen::draw_unit(random_) * std::min(until, 10.0)));
    const int nodes = traits_.nodes > 1 ? load().nodes : 1;
    scene_.plan.faults.random.push_back(
        {.kind = kind,
         .share = any_of({0.4, 1.0}),
         .amount = amount,
         .servers = 1 + static_cast<int>(below(static_cast<std::uint64_t>(nodes))),
         .holder = one_in(2) && (kind == client_pause || kind == client_kill),
         .at = at,
         .length = DurationDistribution::constant(length)});
    if (kind == clock_step) scene_.terms.slack += std::chrono::abs(amount);
  }

  const Traits& traits_;
  const bool has_databases_;
  const bool members_agree_;
  Random random_;
  Scene scene_;
};

/// Leaves out what the trial leaves out. Returns the trial with its sizes.
Trial reduce(Scene& scene, Trial trial) {
  loadgen::Workload& load = scene.plan.workload;
  load.clients = std::clamp(trial.clients.value_or(load.clients), 1, load.clients);
  const auto sections = static_cast<int>(*load.iterations);
  load.iterations =
      static_cast<std::uint64_t>(std::clamp(trial.sections.value_or(sections), 1, sections));
  int& changes = scene.plan.orders.changes;
  changes = std::clamp(trial.changes.value_or(changes), 0, changes);
  auto& all = scene.plan.faults.random;
  if (!trial.faults) {
    trial.faults.emplace(all.size());
    std::iota(trial.faults->begin(), trial.faults->end(), 0);
  }
  std::vector<RandomFault> kept;
  for (const int number : *trial.faults) {
    if (number < static_cast<int>(all.size()))
      kept.push_back(all[static_cast<std::size_t>(number)]);
  }
  all = std::move(kept);
  trial.clients = load.clients;
  trial.sections = static_cast<int>(*load.iterations);
  trial.changes = changes;
  return trial;
}

bool read_faults(std::string_view text, Trial& trial) {
  trial.faults.emplace();
  if (text == "none") return true;
  while (true) {
    const std::size_t plus = text.find('+');
    const auto number = parse_number<int>(text.substr(0, plus));
    if (!number || *number < 0) return false;
    trial.faults->push_back(*number);
    if (plus == std::string_view::npos) return true;
    text.remove_prefix(plus + 1);
  }
}

constexpr std::array<std::pair<std::string_view, std::optional<int> Trial::*>, 3> kSizes{
    {{"clients", &Trial::clients}, {"sections", &Trial::sections}, {"changes", &Trial::changes}}};

bool read_part(std::string_view part, Trial& trial) {
  const std::size_t equal = std::min(part.find('='), part.size());
  const std::string_view name = part.substr(0, equal);
  const std::string_view value = part.substr(std::min(equal + 1, part.size()));
  if (name == "faults") return read_faults(value, trial);
  const auto* const size =
      std::ranges::find(kSizes, name, [](const auto& one) { return one.first; });
  const auto number = parse_number<int>(value);
  if (size == kSizes.end() || !number || *number < 0) return false;
  trial.*size->second = number;
  return true;
}

/// The trials that are one step smaller, the much smaller ones first.
std::vector<Trial> smaller_than(const Trial& trial) {
  std::vector<Trial> all;
  const auto less = [&](std::optional<int> Trial::*size, int value, int least) {
    if (value < least || value >= (trial.*size).value_or(0)) return;
    all.push_back(trial);
    all.back().*size = value;
  };
  less(&Trial::sections, *trial.sections / 2, 1);
  less(&Trial::clients, 2, 1);
  less(&Trial::changes, 0, 0);
  for (std::size_t i = 0; i < trial.faults->size(); ++i) {
    all.push_back(trial);
    all.back().faults->erase(all.back().faults->begin() + static_cast<std::ptrdiff_t>(i));
  }
  less(&Trial::clients, *trial.clients - 1, 1);
  less(&Trial::sections, *trial.sections * 3 / 4, 1);
  less(&Trial::sections, *trial.sections - 1, 1);
  less(&Trial::changes, *trial.changes - 1, 0);
  return all;
}

}  // namespace

tl::expected<Trial, std::string> Trial::parse(std::string_view text) {
  const auto wrong = [&] {
    return tl::unexpected(
        fmt::format("\"{}\" is no trial; allowed: SEED, or for less of it "
                    "SEED,clients=N,sections=N,changes=N,faults=N+N (or faults=none)",
                    text));
  };
  std::string_view left = text;
  const auto next = [&] {
    const std::string_view part = left.substr(0, left.find(','));
    left.remove_prefix(std::min(part.size() + 1, left.size()));
    return part;
  };
  const auto seed = parse_number<std::uint64_t>(next());
  if (!seed) return wrong();
  Trial trial{.seed = *seed};
  while (!left.empty()) {
    if (!read_part(next(), trial)) return wrong();
  }
  return trial;
}

std::string Trial::to_string() const {
  std::string text = std::to_string(seed);
  for (const auto& [name, size] : kSizes) {
    if (this->*size) text += fmt::format(",{}={}", name, *(this->*size));
  }
  if (faults) {
    text += faults->empty() ? ",faults=none" : fmt::format(",faults={}", fmt::join(*faults, "+"));
  }
  return text;
}

tl::expected<Verdict, std::string> play(const Descriptor& strategy, const Trial& trial,
                                        const Trace& trace, const std::stop_token& stop) {
  Scene scene = Painter(strategy, trial.seed).paint();
  Verdict verdict{.trial = reduce(scene, trial)};
  std::stop_source end;
  const std::stop_callback pass_on(stop, [&end] { end.request_stop(); });
  Judge judge(strategy, scene.terms, end);
  Descriptor hunted = strategy;
  hunted.make = [&](const Context& context) {
    return std::make_unique<HuntedLock>(context, strategy, scene.uses, judge);
  };
  scene.plan.strategy = &hunted;
  scene.plan.watcher = &judge;
  scene.plan.trace = trace;
  const auto outcome = simulate(scene.plan, trial.seed, end.get_token());
  if (!outcome) return tl::unexpected(outcome.error());
  verdict.finding = judge.finding();
  verdict.sections = outcome->sections;
  return verdict;
}

Verdict shrink(const Descriptor& strategy, Verdict verdict, const std::stop_token& stop) {
  int plays = 0;
  for (bool smaller = true; smaller && plays < kShrinkingPlays && !stop.stop_requested();) {
    smaller = false;
    for (const Trial& trial : smaller_than(verdict.trial)) {
      ++plays;
      auto again = play(strategy, trial, {}, stop);
      if (!again || !again->finding || again->finding->oracle != verdict.finding->oracle) continue;
      verdict = *std::move(again);
      smaller = true;
      break;
    }
  }
  return verdict;
}

}  // namespace lockbench::simulate
