#include "cli/commands/choose_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "choose/race.h"
#include "cli/commands/measurement.h"
#include "cli/commands/run_plan.h"
#include "cli/console/progress.h"
#include "cli/console/ranks.h"
#include "loadgen/run/runner.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "results/tables/units.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kShortestRun = 1s, kLongestRun = 5s;
/// Each run has so many sections of a client in a row.
constexpr int kHolds = 20;
/// The time suffices for so many rounds of all.
constexpr int kRoundsOfAll = 3;

/// A strategy in the race.
struct Entrant {
  const Descriptor* strategy = nullptr;
  loadgen::Workload workload;
  std::vector<double> values{};  ///< of valid runs, the lower the better
  bool keeps_up = true;          ///< in the last of them
  bool in = true;
};

class RaceRunner {
 public:
  RaceRunner(const choose::Answer& answer, const RunOptions& common,
             const deployment::Deployment& servers, ResultFile& file, Session& session, Race& race)
      : answer_(answer),
        common_(common),
        servers_(servers),
        file_(file),
        stop_(session.stop()),
        progress_(session.console(), BootClock::now),
        race_(race) {}

  void enter(Entrant entrant) { entrants_.push_back(std::move(entrant)); }

  void run(Duration time) {
    const TimePoint until = BootClock::now() + time;
    const auto starters = static_cast<int>(entrants_.size());
    const Duration share = time / (kRoundsOfAll * std::max(1, starters));
    const Duration warmup = common_.workload.warmup;
    duration_ = std::clamp<Duration>(share - warmup - kBesidesLoad, kShortestRun, kLongestRun);
    duration_ = std::max<Duration>(duration_, kHolds * common_.workload.hold.mean());
    for (int round = 1; !over(until, round); ++round) {
      // There and back, so that a drift of the machine affects all alike.
      for (std::size_t i = 0; i < entrants_.size(); ++i) {
        Entrant& entrant = entrants_[round % 2 == 1 ? i : entrants_.size() - 1 - i];
        if (entrant.in && !over(until, round)) run_once(entrant, round);
      }
      judge();
      if (settled_) break;
    }
    for (const Entrant& entrant : entrants_) {
      if (!entrant.in) race_.dropped.emplace(entrant.strategy->name);
    }
  }

 private:
  /// The first round measures each of them, however long connecting takes.
  bool over(TimePoint until, int round) const {
    if (stop_.stop_requested()) return true;
    return round > 1 && BootClock::now() + common_.workload.warmup + duration_ > until;
  }

  void run_once(Entrant& entrant, int round) {
    loadgen::RunPlan plan = plan_on(servers_, race_.result.id + "-" + std::to_string(round));
    plan.strategies = {entrant.strategy};
    plan.workload = entrant.workload;
    plan.workload.duration = duration_;
    plan.workload.seed += static_cast<std::uint64_t>(round);
    plan.maker = maker_of(file_.path(), race_.result);
    loadgen::RunReport report = loadgen::run_plan(plan, progress_, stop_);
    for (results::Skipped& one : report.not_started) {
      entrant.in = false;
      race_.errors = true;
      file_.console().warn(fmt::format("did not start: {}: {}", one.strategy, one.reason));
      race_.result.skipped.push_back(std::move(one));
    }
    if (report.interrupted) return;
    for (results::Run& run : report.runs) {
      run.repetition = round;
      const auto value = results::figure(run, answer_.ranked_by.figure);
      // A disturbed run says nothing of the lock, but that it is broken.
      if (value && results::is_of_the_lock(run)) {
        entrant.values.push_back(answer_.ranked_by.higher_is_better ? 1 / std::max(*value, 1e-9)
                                                                    : *value);
        entrant.keeps_up = results::served_share({&run}).value_or(1) >= results::kServed;
      }
      const bool broken = run.audit.verdict == results::Verdict::violated;
      entrant.in = entrant.in && value && !broken;
      race_.result.runs.push_back(std::move(run));
      file_.keep(race_.result);
    }
  }

  void judge() {
    std::vector<Entrant*> left;
    for (Entrant& entrant : entrants_) {
      if (entrant.in) left.push_back(&entrant);
    }
    if (std::any_of(left.begin(), left.end(), [](const Entrant* entrant) {
          return entrant->keeps_up && !entrant->values.empty();
        })) {
      for (Entrant* entrant : left) entrant->in = entrant->keeps_up;
      std::erase_if(left, [](const Entrant* entrant) { return !entrant->in; });
    }
    std::vector<std::vector<double>> values;
    values.reserve(left.size());
    for (const Entrant* entrant : left) values.push_back(entrant->values);
    settled_ = choose::is_settled(values);
    const std::vector<bool> in = choose::still_in(values);
    for (std::size_t i = 0; i < left.size(); ++i) left[i]->in = in[i];
  }

  const choose::Answer& answer_;
  const RunOptions& common_;
  const deployment::Deployment& servers_;
  ResultFile& file_;
  const std::stop_token stop_;
  ProgressView progress_;
  Race& race_;
  std::vector<Entrant> entrants_;
  Duration duration_{};
  bool settled_ = false;
};

/// Settings that differ between strategies are no settings of the whole result.
void disown(std::map<std::string, results::OptionValue>& workload,
            const std::vector<choose::Setting>& settings) {
  for (const choose::Setting& one : settings) {
    if (one.value.empty()) continue;
    std::string key = one.option.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    if (const auto found = workload.find(key); found != workload.end()) found->second = nullptr;
  }
}

/// The options of `run` for the load that was asked for, with these of one lock.
RunOptions run_options(const ChooseOptions& options, const std::vector<std::string>& strategies,
                       const std::vector<std::string>& lock) {
  RunOptions values;
  values.servers = options.servers;
  values.tls = options.tls;
  OptionList list = options_of(values);
  // `options` has the servers of the environment already, unless others were given in their place.
  for (Option& option : list.all()) option.given = option.secret;
  std::vector<std::string> args = strategies;
  for (const auto& more : {choose::load_options(options.requirements), lock}) {
    args.insert(args.end(), more.begin(), more.end());
  }
  read(values, list, args);
  return values;
}

}  // namespace

std::optional<Race> measure_candidates(const ChooseOptions& options, const choose::Answer& answer,
                                       const choose::Evidence& evidence, results::Result result,
                                       ResultFile& file, Session& session) {
  std::vector<std::string> names;
  for (const choose::Ranked& one : answer.ranked) {
    names.emplace_back(one.candidate->strategy->name);
  }
  const RunOptions common = run_options(options, names, {});
  std::vector<Selected> selected = select_for_load(common);
  for (Selected& one : selected) one.named = false;

  const Duration run = std::max<Duration>(kShortestRun, kHolds * common.workload.hold.mean());
  const Duration least = (run + common.workload.warmup) * static_cast<int>(names.size());
  if (least > options.measure_time) {
    throw UsageError("--measure-time: {} strategies need {} for one run of each", names.size(),
                     results::human_seconds(seconds(least)));
  }
  Race race{.result = std::move(result)};
  race.result.workload = workload_record(common);
  session.console().note(fmt::format("measuring {} strategies: this takes up to {}", names.size(),
                                     results::human_seconds(seconds(options.measure_time))));
  const auto deployment = session.deploy(common, selected, race.result.skipped);
  if (!deployment) return std::nullopt;
  race.result.environment.servers = deployment->facts;
  race.result.interrupted = true;  // until it is over

  RaceRunner runner(answer, common, *deployment, file, session, race);
  const auto basis = evidence.basis_for(options.requirements);
  for (const choose::Ranked& one : answer.ranked) {
    const Descriptor& strategy = *one.candidate->strategy;
    const bool runs = std::any_of(selected.begin(), selected.end(), [&](const Selected& other) {
      return other.strategy == &strategy;
    });
    if (!runs) continue;
    auto settings = choose::settings_for(strategy, options.requirements, evidence, basis);
    const RunOptions own =
        run_options(options, {std::string(strategy.name)}, choose::lock_options(settings));
    runner.enter({.strategy = &strategy, .workload = own.workload});
    disown(race.result.workload, settings);
    race.settings.emplace(strategy.name, std::move(settings));
  }
  runner.run(options.measure_time);
  race.result.interrupted = session.stopped();
  note_lost_ranks(file.path(), race.result, session.console());
  file.keep(race.result);
  return race;
}

}  // namespace lockbench::cli
