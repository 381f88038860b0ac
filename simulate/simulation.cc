#include "simulate/simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "loadgen/run/live_run.h"
#include "loadgen/run/local_crew.h"
#include "results/stats/statistics.h"
#include "simulate/lock_view.h"
#include "simulate/spoilt_counter.h"
#include "simulate/stores.h"
#include "strategies/registry.h"

namespace lockbench::simulate {
namespace {

using loadgen::Phase;
using loadgen::Timing;

constexpr double kProgressSteps = 100;

RedisSettings redis_settings(const Plan& plan) {
  RedisSettings settings = plan.redis;
  const bool fails_over = plan.faults.any(Disturbance::failover);
  settings.may_die = fails_over || plan.faults.any(Disturbance::store_kill);
  if (!plan.strategy->traits.needs_replicas && !fails_over) settings.replicas = 0;
  return settings;
}

int members_of(const Plan& plan) {
  constexpr int kCluster = 3;
  return plan.faults.any(Disturbance::failover) ? kCluster : plan.members;
}

StoreSettings settings_of(const Plan& plan) {
  return {.redis = redis_settings(plan), .members = members_of(plan)};
}

class Simulation final : public loadgen::ClientHosts {
 public:
  Simulation(const Plan& plan, std::uint64_t seed)
      : plan_(plan),
        run_plan_(run_plan_of(plan, seed)),
        world_(seed, plan.trace),
        network_(world_, plan.workload.rtt,
                 plan.calibration ? std::optional(plan.calibration->delay) : std::nullopt),
        env_(make_system_env(world_.random()())),
        run_(loadgen::make_run(run_plan_, *plan.strategy, 1, 1, {.clients = plan.workload.clients},
                               *env_)),
        locks_(static_cast<std::size_t>(plan.workload.key_count()), LockView(permits())),
        holding_(static_cast<std::size_t>(plan.workload.clients)),
        players_(plan.faults, {world_, network_, nodes_, hosts_,
                               [this](int client) { return holding_[index(client)] > 0; },
                               [this](Disturbance kind, TimePoint until) {
                                 if (plan_.watcher != nullptr) plan_.watcher->struck(kind, until);
                               }}),
        by_region_(std::max<std::size_t>(1, plan.regions.size()), loadgen::HistogramSnapshot()) {
    make_machines();
    run_.hosts = this;
    if (plan.orders.kind != OrderPlan::Kind::drawn) {
      world_.explore(Orders(plan.orders, plan.workload.clients, seed));
    }
  }

  tl::expected<Outcome, std::string> play(const std::stop_token& stop) {
    if (auto ready = loadgen::equip(run_plan_, *env_, run_); !ready) {
      return tl::unexpected(ready.error());
    }
    auto counter = std::make_unique<SpoiltCounter>(plan_.workload.key_count());
    const SpoiltCounter& spoilt = *counter;
    run_.counter = std::move(counter);
    run_.history = plan_.history;
    const std::stop_callback stopped(stop, [this] { early_.request_stop(); });
    world_.after(plan_.most_events, [this] {
      cut_short_ = true;
      early_.request_stop();
    });
    loadgen::LocalCrew crew(run_, *env_, early_.get_token());
    if (auto connected = crew.connect([](int) {}); !connected) {
      return tl::unexpected(connected.error());
    }
    if (plan_.watcher != nullptr) plan_.watcher->begins(world_);
    const TimePoint ended = drive(crew);
    if (plan_.watcher != nullptr) plan_.watcher->ended(nodes_);
    return outcome_of(spoilt, ended);
  }

  // What the run tells.

  std::unique_ptr<Env> make_env(const loadgen::RunShared& /*run*/, int client,
                                std::uint64_t seed) override {
    return std::make_unique<HostEnv>(*hosts_[index(client)], seed, false);
  }
  std::unique_ptr<Services> make_services(loadgen::RunShared& run, int client,
                                          std::uint64_t seed) override {
    Host& host = *hosts_[index(client)];
    auto services = std::make_unique<Services>();
    loadgen::record_services(run, *services, nullptr);
    provide_connections(*services, dialers_[index(client)]);
    const auto make = [this, &host,
                       random = std::make_shared<Random>(seed)]() -> std::unique_ptr<Env> {
      auto env = std::make_unique<HostEnv>(host, (*random)(), true);
      if (plan_.watcher == nullptr) return env;
      return plan_.watcher->watch_service(host.number, std::move(env));
    };
    services->provide<EnvSource>(std::make_shared<EnvSource>(EnvSource{make}));
    return services;
  }
  bool is_dead(int client) const override { return hosts_[index(client)]->dead(); }

  void asks(int client, int key) override {
    locks_[index(key)].asks(world_.now());
    if (world_.traced()) world_.trace("client", client, fmt::format("asks for lock {}", key));
  }
  void granted(int client, int key, const Lease& lease, Duration waited, Duration hold) override {
    const TimePoint now = world_.now();
    ++holding_[index(client)];
    const bool measured = run_.phase_at(now) == Phase::measured;
    if (world_.traced()) {
      world_.trace("client", client,
                   fmt::format("is granted lock {}{}", key,
                               lease.fencing ? fmt::format(", number {}", *lease.fencing) : ""));
    }
    const auto* const rival = locks_[index(key)].granted({client, lease.mode, now, lease.state});
    if (measured) by_region_[region_index(client)].record(waited);
    if (rival != nullptr && measured) {
      ++violations_;
      const std::string cause = cause_of(*rival);
      ++causes_[cause];
      if (world_.traced()) {
        world_.trace("client", client,
                     fmt::format("holds lock {} beside client-{}: {}", key, rival->client, cause));
      }
    }
    hosts_[index(client)]->holds(hold);
  }
  void gave_up(int client, int key) override {
    locks_[index(key)].gave_up(world_.now());
    if (world_.traced()) world_.trace("client", client, fmt::format("gives lock {} up", key));
  }
  void leaves(int client, int key) override {
    --holding_[index(client)];
    locks_[index(key)].leaves(client, world_.now());
    if (world_.traced()) world_.trace("client", client, fmt::format("leaves lock {}", key));
  }

 private:
  int permits() const { return holders_at_once(plan_.strategy->traits, plan_.workload.strategy); }
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  static loadgen::RunPlan run_plan_of(const Plan& plan, std::uint64_t seed) {
    loadgen::RunPlan run{.run_id = "simulation", .strategies = {plan.strategy}};
    run.workload = plan.workload;
    run.workload.seed = seed;
    const int nodes = plan.strategy->traits.nodes > 1 ? plan.workload.nodes : 1;
    auto& urls = run.endpoints[server_set(*plan.strategy)];
    for (int node = 0; node < nodes; ++node) {
      urls.push_back(find_simulated_store(plan.strategy->backend)->url_of(node));
    }
    return run;
  }

  Clock draw_clock() {
    const auto either_way = [this] { return 2 * loadgen::draw_unit(world_.random()) - 1; };
    const auto most = static_cast<double>(plan_.faults.clock_offset.count());
    const Duration offset(static_cast<Duration::rep>(either_way() * most));
    const double drift = plan_.faults.clock_drift * loadgen::draw_unit(world_.random());
    return {world_.random(), drift, offset};
  }

  std::size_t region_index(int client) const { return index(client) % by_region_.size(); }
  int region_of(int number) const {
    return plan_.regions.empty() ? kLocalRegion
                                 : plan_.regions[index(number) % plan_.regions.size()];
  }

  void make_machines() {
    const std::size_t nodes = run_plan_.endpoints.begin()->second.size();
    for (std::size_t node = 0; node < nodes; ++node) {
      const int number = static_cast<int>(node);
      nodes_.push_back(find_simulated_store(plan_.strategy->backend)
                           ->make(world_, network_, number, region_of(number), settings_of(plan_)));
      nodes_.back()->clock = draw_clock();
      if (plan_.calibration) nodes_.back()->per_request = plan_.calibration->per_request;
      servers_.push_back(nodes_.back().get());
    }
    for (int client = 0; client < plan_.workload.clients; ++client) {
      hosts_.push_back(
          std::make_unique<Host>(world_, client, region_of(client), draw_clock(), plan_.pauses));
      dialers_.push_back(std::make_shared<SimulatedDialer>(*hosts_.back(), network_, servers_));
    }
  }

  /// Returns the end of the measured part.
  TimePoint drive(loadgen::LocalCrew& crew) {
    const loadgen::Workload& workload = plan_.workload;
    run_.load_start = env_->now();
    run_.measure_start = run_.load_start + workload.warmup;
    run_.measure_end = run_.measure_start.load() + workload.duration;
    run_.started = true;
    players_.begin(run_.measure_start);
    if (plan_.on_progress) show_progress(1);
    crew.begin();
    crew.wait(run_.measure_end);
    const TimePoint ended = std::min(env_->now(), run_.measure_end.load());
    run_.measure_end = ended;
    crew.run_out(ended + workload.longest_run_out());
    run_.load_end = env_->now();
    run_.over.request_stop();
    crew.drain(cut_short_ ? std::optional(Duration::zero()) : std::nullopt);
    crew.count_never_begun(run_.load_end);
    return ended;
  }

  void show_progress(double step) {
    const auto part =
        std::chrono::duration_cast<Duration>(plan_.workload.duration / kProgressSteps);
    world_.at(run_.measure_start.load() + part * static_cast<Duration::rep>(step), [this, step] {
      plan_.on_progress(step / kProgressSteps);
      if (step < kProgressSteps) show_progress(step + 1);
    });
  }

  std::string cause_of(const LockView::Inside& rival) const {
    const Host& host = *hosts_[index(rival.client)];
    if (host.paused_since(rival.since)) return "client-pause";
    if (const auto fault = players_.latest_since(rival.since))
      return std::string(to_string(*fault));
    const bool ended = host.clock.now(world_.now()) >= rival.lease->valid_until();
    if (ended) return "held longer than it was valid";
    // The client's clock stays wrong.
    const auto wrong_clock = Disturbance::client_clock_step;
    return players_.has_struck(wrong_clock) ? std::string(to_string(wrong_clock)) : "unexplained";
  }

  Outcome outcome_of(const SpoiltCounter& spoilt, TimePoint ended) {
    const auto& histograms = run_.recorder.histograms(Phase::measured);
    Outcome outcome{.sections = run_.recorder.total(loadgen::Count::sections, Phase::measured),
                    .simulated = std::max(ended - run_.measure_start.load(), Duration::zero()),
                    .violations = violations_,
                    .causes = causes_,
                    .lost = permits() > 1 ? 0 : spoilt.lost(),
                    .lost_fenced = spoilt.lost_fenced(),
                    .acquired = histograms[Timing::acquired].snapshot(),
                    .cut = run_.recorder.censored(Phase::measured, Timing::acquired),
                    .released = histograms[Timing::release].snapshot(),
                    .by_region = by_region_,
                    .errors = run_.recorder.failures()};
    for (LockView& lock : locks_) {
      if (lock.wanted()) lock.end_outage(ended);
      outcome.outage += lock.outage();
      outcome.longest_outage = std::max(outcome.longest_outage, lock.longest());
    }
    for (const auto& node : nodes_) outcome.servers_worked += node->worked();
    if (plan_.summarises) loadgen::summarise(run_, outcome.simulated, outcome.run.emplace());
    return outcome;
  }

  const Plan& plan_;
  const loadgen::RunPlan run_plan_;
  std::stop_source early_;  ///< ends the run
  bool cut_short_ = false;  ///< by the limit of events
  World world_;
  Network network_;
  const std::unique_ptr<Env> env_;
  Nodes nodes_;
  std::vector<Server*> servers_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::shared_ptr<SimulatedDialer>> dialers_;  ///< of the hosts
  loadgen::RunShared run_;                                 ///< its services use the machines
  std::vector<LockView> locks_;
  std::vector<int> holding_;  ///< locks, by client
  FaultPlayer players_;
  std::uint64_t violations_ = 0;
  std::map<std::string, std::uint64_t> causes_;
  std::vector<loadgen::HistogramSnapshot> by_region_;
};

/// A rate, with the interval of 95 % that the number of events and their scatter over the seeds
/// allow.
results::Estimate estimate(std::span<const Outcome> outcomes, double events, double per) {
  if (!(per > 0)) return {};
  double scatter = 1;
  if (outcomes.size() > 1 && events > 0) {
    std::vector<double> counts;
    for (const Outcome& one : outcomes) counts.push_back(static_cast<double>(one.violations));
    const double deviation = results::stddev(counts).value_or(0);
    scatter = std::max(1.0, deviation * deviation / (events / static_cast<double>(counts.size())));
  }
  const auto [low, high] = results::poisson_interval(events / scatter);
  return {.value = events / per, .low = low * scatter / per, .high = high * scatter / per};
}

}  // namespace

std::string why_not(const Descriptor& strategy) {
  if (!strategy.not_built.empty()) return std::string(strategy.not_built);
  if (!strategy.program.empty()) return "it is a client program";
  if (strategy.traits.updates) return "it takes no lock that a fault could break";
  if (find_simulated_store(strategy.backend) != nullptr) return "";
  std::vector<std::string_view> stores;
  for (const SimulatedStore& store : simulated_stores()) stores.push_back(store.backend);
  return fmt::format("only strategies on {} can be simulated", fmt::join(stores, ", "));
}

tl::expected<Outcome, std::string> simulate(const Plan& plan, std::uint64_t seed,
                                            const std::stop_token& stop) {
  if (find_simulated_store(plan.strategy->backend) == nullptr)
    return tl::unexpected(why_not(*plan.strategy));
  fibers::Stacks stacks(fibers::StackSize{.bytes = std::size_t{128} * 1024});
  auto scheduler = fibers::Scheduler::make(stacks, fibers::Time::virtual_time);
  if (!scheduler) return tl::unexpected(scheduler.error());
  tl::expected<Outcome, std::string> outcome = tl::unexpected(std::string("it did not begin"));
  const auto task =
      (*scheduler)
          ->start([&](const std::stop_token&) { outcome = Simulation(plan, seed).play(stop); },
                  [&](const std::string& why) { outcome = tl::unexpected(why); });
  if (!task) return tl::unexpected(task.error());
  (*scheduler)->finish();
  (*scheduler)->run();
  return outcome;
}

std::optional<results::Run> rehearse(Plan plan, std::uint64_t most_events,
                                     const std::stop_token& stop) {
  constexpr std::uint64_t kSeed = 1, kFewestWaits = 300;
  plan.workload.resource = loadgen::Resource::memory;
  plan.most_events = most_events;
  plan.summarises = true;
  auto outcome = simulate(plan, kSeed, stop);
  const bool shows = outcome && outcome->acquired.count() + outcome->cut.count() >= kFewestWaits;
  return shows && !stop.stop_requested() ? std::move(outcome->run) : std::nullopt;
}

results::Simulation summarise(const Plan& plan, std::uint64_t first_seed,
                              std::span<const Outcome> outcomes) {
  const loadgen::Workload& load = plan.workload;
  results::Simulation all{.strategy = std::string(plan.strategy->name),
                          .clients = static_cast<std::uint64_t>(load.clients),
                          .keys = static_cast<std::uint64_t>(load.key_count()),
                          .seeds = outcomes.size(),
                          .first_seed = first_seed};
  loadgen::HistogramSnapshot acquired, cut;
  std::vector<loadgen::HistogramSnapshot> by_region(plan.regions.size());
  Duration outage{}, longest{};
  std::set<std::string> errors;
  for (const Outcome& one : outcomes) {
    all.sections += one.sections;
    all.simulated_seconds += seconds(one.simulated);
    all.violations += one.violations;
    all.lost_updates += one.lost;
    all.lost_updates_fenced += one.lost_fenced;
    for (const auto& [cause, count] : one.causes) all.causes[cause] += count;
    outage += one.outage;
    longest = std::max(longest, one.longest_outage);
    acquired.merge(one.acquired);
    cut.merge(one.cut);
    for (std::size_t i = 0; i < by_region.size(); ++i) by_region[i].merge(one.by_region[i]);
    errors.insert(one.errors.begin(), one.errors.end());
  }
  constexpr double kMillion = 1e6, kYear = 365.25 * 24 * 3600;
  const auto violations = static_cast<double>(all.violations);
  all.per_million = estimate(outcomes, violations, static_cast<double>(all.sections) / kMillion);
  all.per_year = estimate(outcomes, violations, all.simulated_seconds / kYear);
  const double wanted = all.simulated_seconds * static_cast<double>(all.keys);
  all.availability = wanted > 0 ? std::max(0.0, 1 - seconds(outage) / wanted) : std::nan("");
  all.longest_outage_seconds = seconds(longest);
  all.acquire = loadgen::to_distribution(acquired, cut);
  for (std::size_t i = 0; i < by_region.size(); ++i) {
    all.regions.push_back(
        {std::string(region_name(plan.regions[i])), loadgen::to_distribution(by_region[i])});
  }
  constexpr std::size_t kMostErrors = 10;
  for (const std::string& error : errors) {
    if (all.errors.size() < kMostErrors) all.errors.push_back(error);
  }
  return all;
}

}  // namespace lockbench::simulate
