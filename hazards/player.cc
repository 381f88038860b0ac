#include "hazards/player.h"

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <random>

#include "strategies/redis/client/connection.h"
#include "strategies/thread.h"

namespace lockbench::hazards {
namespace {

using Started = tl::expected<std::shared_ptr<PrivateStore>, NotStarted>;

constexpr int kNodes = 5, kMembers = 3, kReplicas = 2;

Started start_store(const Descriptor& strategy, testbed::Testbed& host, Setup setup) {
  const auto* const kind = deployment::find_private_store_kind(strategy.backend);
  if (kind == nullptr && setup != Setup::shared) {
    return tl::unexpected(NotStarted{"it has no server", NotStarted::Why::never_needed});
  }
  if (kind == nullptr) return std::make_shared<PrivateStore>(strategy.backend);
  return deployment::start_private_store(*kind, host, request_of(strategy, setup));
}

/// The cell has this outcome without a verdict of its play.
void settle(Cell& cell, HazardOutcome outcome, std::string why) {
  cell.expected = outcome;
  cell.observed = outcome;
  cell.reason = std::move(why);
}

/// Whether `cell` is more informative than the play shown so far.
bool is_more_informative(const Cell& cell, const Cell& shown) {
  if (!shown.played()) return cell.played() || (cell.failed && !shown.failed);
  if (shown.disturbed) return cell.played() && !cell.disturbed;
  return cell.played() && !cell.agrees() && shown.agrees();
}

}  // namespace

deployment::StoreRequest request_of(const Descriptor& strategy, Setup setup) {
  const auto* const kind = deployment::find_private_store_kind(strategy.backend);
  const bool cluster =
      kind != nullptr && kind->clusters && (setup == Setup::replicated || setup == Setup::split);
  return {.setup = setup,
          .nodes = strategy.traits.nodes > 1 ? kNodes : 1,
          .members = cluster ? kMembers : 1,
          .replicas = strategy.traits.needs_replicas ? kReplicas : 0,
          .sharded = setup == Setup::sharded};
}

tl::expected<std::unique_ptr<ServerPool>, std::string> ServerPool::open(Options options) {
  std::unique_ptr<ServerPool> pool(new ServerPool);
  pool->client_program_ =
      options.client_program.empty() ? "/proc/self/exe" : std::move(options.client_program);
  pool->history_ = options.history;
  return deployment::attempt([&] {
    pool->host_ = need(testbed::Testbed::start(options.tls));
    const auto& redis = *deployment::find_private_store_kind("redis");
    pool->counter_ = redis.start(*pool->host_, {.setup = Setup::shared});
    return std::move(pool);
  });
}

Started ServerPool::store(const Descriptor& strategy, Setup setup) {
  if (setup != Setup::shared) return start_store(strategy, *host_, setup);
  const std::string kind = server_set(strategy) + (strategy.traits.nodes > 1 ? "-quorum" : "");
  const std::scoped_lock lock(mutex_);
  auto found = shared_.find(kind);
  if (found == shared_.end()) {
    found = shared_.emplace(kind, start_store(strategy, *host_, setup)).first;
  }
  return found->second;
}

std::uint64_t ServerPool::counter(const std::string& key) {
  const auto env = make_system_env(0);
  const auto endpoint = redis::parse_endpoint(counter_url());
  const auto connection =
      redis::make_connection_factory()->make(*endpoint, std::chrono::seconds(5), *env);
  const auto value = need(connection->call({"GET", key}));
  return value.is_nil() ? 0 : std::stoull(value.text);
}

std::string ServerPool::fresh_key() {
  static std::atomic<unsigned> plays{0};
  static const unsigned process = std::random_device()();
  return fmt::format("lockbench:{:08x}:{{{}", process, ++plays);
}

std::optional<std::string> not_applicable(const Scenario& scenario, const Descriptor& strategy) {
  if (strategy.traits.updates) return "a control without a lock: nobody holds anything";
  if (!scenario.for_controls) {
    if (!strategy.traits.promises_exclusion) return "a control: it promises no exclusion";
    if (strategy.traits.one_process) return "it works within one process only";
  }
  return scenario.exempts ? scenario.exempts(strategy) : std::nullopt;
}

bool never_gets_there(const Scenario& scenario, const Traits& traits) {
  using Needs = Scenario::Needs;
  if (scenario.needs == Needs::nothing) return false;
  if (traits.expiry == Expiry::none || traits.ends_with_connection) return true;
  return scenario.needs == Needs::expiry_despite_contenders && traits.prolonged_by_contenders;
}

HazardOutcome expected_outcome(const Scenario& scenario, const Descriptor& strategy) {
  if (never_gets_there(scenario, strategy.traits)) return HazardOutcome::not_applicable;
  for (const std::string_view name : {scenario.name, scenario.like}) {
    for (const KnownHazard& known : strategy.hazards) {
      if (known.scenario == name) return known.outcome;
    }
  }
  return scenario.default_outcome;
}

Cell make_cell(const Scenario& scenario, const Descriptor& strategy) {
  Cell cell{.scenario = &scenario,
            .strategy = &strategy,
            .expected = expected_outcome(scenario, strategy)};
  if (auto why = not_applicable(scenario, strategy)) {
    settle(cell, HazardOutcome::not_applicable, *std::move(why));
  } else if (scenario.by_key && !strategy.program.empty()) {
    settle(cell, HazardOutcome::not_played,
           "the fault must find the lock in the store, whose form only the library knows");
  }
  return cell;
}

Cell play(Venue& venue, const Scenario& scenario, const Descriptor& strategy) {
  Cell cell = make_cell(scenario, strategy);
  if (cell.played()) return cell;
  cell.began = PlayClock::now();
  std::optional<Play> play;
  try {
    auto store = venue.store(strategy, scenario.setup);
    cell.began = PlayClock::now();
    if (store) {
      play.emplace(venue, *std::move(store), strategy);
      play->set_name(fmt::format("{}/{}", scenario.name, strategy.name));
      Verdict verdict = scenario.play(*play);
      cell.observed = verdict.outcome;
      cell.reason = std::move(verdict.reason);
    } else if (store.error().why == NotStarted::Why::failed) {
      cell.reason = store.error().reason;
    } else {
      const bool unplayable = store.error().why == NotStarted::Why::unplayable;
      settle(cell, unplayable ? HazardOutcome::not_played : HazardOutcome::not_applicable,
             store.error().reason);
    }
  } catch (const NotPlayable& why) {
    settle(cell, HazardOutcome::not_played, why.what());
    cell.disturbed = dynamic_cast<const Disturbed*>(&why) != nullptr;
  } catch (const std::exception& failure) {
    cell.reason = failure.what();
    cell.failed = true;
  }
  if (play) {
    cell.evidence = play->evidence();
    cell.timeline = play->timeline();
  }
  // Never zero, which would mean that it was not played.
  cell.took = std::max(PlayClock::now() - cell.began, Duration(1));
  return cell;
}

void play_all(const PlayCell& play_one, std::vector<Cell>& cells, int at_once,
              const std::function<void(const Cell&)>& on_done, const std::stop_token& stop) {
  std::mutex reporting;
  std::atomic<std::size_t> next{0};
  const auto take_turns = [&] {
    while (!stop.stop_requested()) {
      const std::size_t index = next++;
      if (index >= cells.size()) return;
      Cell& cell = cells[index];
      if (!cell.played()) cell = play_one(cell);
      const std::scoped_lock lock(reporting);
      on_done(cell);
    }
  };
  std::vector<std::future<void>> workers;
  workers.reserve(static_cast<std::size_t>(at_once));
  for (int worker = 0; worker < at_once; ++worker) workers.push_back(in_background(take_turns));
  for (auto& worker : workers) worker.get();
}

bool Repeated::unstable() const {
  return outcomes.size() > 1U + outcomes.count(HazardOutcome::not_played);
}

std::string Repeated::tally() const {
  std::string text;
  for (const auto& [outcome, seen] : outcomes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(outcome),
                        seen == 1 ? "once" : fmt::format("{} times", seen));
  }
  return text;
}

std::vector<Cell> repeated(const std::vector<Cell>& cells, int times) {
  std::vector<Cell> plays;
  plays.reserve(cells.size() * static_cast<std::size_t>(times));
  for (int round = 0; round < times; ++round) {
    for (const Cell& cell : cells) plays.emplace_back(cell).round = round;
  }
  return plays;
}

std::vector<Repeated> gather(const std::vector<Cell>& plays, std::size_t cells) {
  std::vector<Repeated> all;
  all.reserve(cells);
  std::size_t place = 0;
  for (const Cell& play : plays) {
    if (all.size() < cells) all.push_back({.shown = play});
    Repeated& cell = all.at(place);
    place = place + 1 < cells ? place + 1 : 0;
    if (is_more_informative(play, cell.shown)) cell.shown = play;
    if (play.played()) ++cell.outcomes[*play.observed];
    if (play.failed) cell.failures.push_back(play.reason);
  }
  return all;
}

}  // namespace lockbench::hazards
