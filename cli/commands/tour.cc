#include "cli/commands/commands.h"
#include "cli/commands/measurement.h"
#include "hazards/player.h"
#include "results/tables/hazards.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

struct TourOptions {
  static constexpr std::string_view kCommand = "tour";
  std::optional<Duration> each;
  OutputOptions output;

  void declare(OptionList& options) {
    options.add("duration", "D", each, duration(100ms, 1min), "measured time of each of the runs",
                "as `run` has it: 3s, up to 10s");
    options.only({"quiet"}, [&] { output.declare(options); });
  }
};

/// A run, and what its figures say.
struct MeasuredStop {
  std::string_view title;
  std::vector<std::string> command;
  std::string (*said)(const results::Run& run);
};

/// A play, and what remains to be said if the lock failed in it.
struct PlayedStop {
  std::string_view title, scenario, strategy, moral;
};

std::string figure(const results::Distribution& all, std::string_view name, double value) {
  return (all.is_at_least(name) ? "at least " : "") + results::human_seconds(value);
}

std::string said_of_a_free_lock(const results::Run& run) {
  return fmt::format(
      "A client took the free lock {} times, in {} (p50); taking and releasing it costs {} "
      "commands, and the counter that it protects lost {} updates.",
      results::human_count(static_cast<double>(run.sections)),
      figure(run.acquire, "p50", run.acquire.p50), results::human_number(run.commands_per_section),
      run.audit.lost_updates);
}

std::string said_of_contention(const results::Run& run) {
  return fmt::format(
      "{} clients want it at once: {} lost updates in {} contended grants (verdict: {}), but they "
      "wait: p50 {}, p99 {}, longest {}, as the lock has no queue.",
      run.load.clients, run.audit.lost_updates,
      results::human_count(static_cast<double>(run.audit.contended_grants)),
      to_string(run.audit.verdict), figure(run.acquire, "p50", run.acquire.p50),
      figure(run.acquire, "p99", run.acquire.p99), figure(run.acquire, "max", run.acquire.max));
}

const std::vector<MeasuredStop>& measured_stops() {
  static const std::vector<MeasuredStop> stops{
      {"A lock that works", {"redis-set-nx-lua", "--clients", "1"}, said_of_a_free_lock},
      {"The same lock under contention",
       {"redis-set-nx-lua", "--clients", "32"},
       said_of_contention}};
  return stops;
}

constexpr std::array kPlayedStops{
    PlayedStop{"Its holder is paused for longer than the TTL", "pause-holding", "redis-set-nx-lua",
               "No TTL is long enough for every pause."},
    PlayedStop{"The same pause, with fencing numbers", "pause-holding-fenced", "redis-fenced", ""}};

class Tour {
 public:
  explicit Tour(const TourOptions& options)
      : options_(options), style_(look_of(options.output).style), session_(options.output) {}

  int take() {
    for (const MeasuredStop& stop : measured_stops()) {
      if (!session_.stopped()) visit(stop);
    }
    if (!session_.stopped()) visit_plays();
    ending_.interrupted = session_.stopped();
    if (!session_.stopped()) show("What next?\n" + questions(TourOptions::kCommand));
    return exit_code_of(ending_);
  }

 private:
  void visit(const MeasuredStop& stop) {
    std::vector<std::string> words = stop.command;
    if (options_.each) words.insert(words.end(), {"--duration", format_duration(*options_.each)});
    head(stop.title, fmt::format("run {}", fmt::join(words, " ")));
    RunOptions options;
    OptionList list = options_of(options);
    read(options, list, words);
    // Only private servers, even if the environment names others. Nothing is saved.
    for (auto& [store, urls] : options.servers) urls.clear();
    options.output.out = kStdout;
    options.output.quiet = options_.output.quiet;
    Measurement measurement(options, select_for_load(options));
    if (!measurement.deploy(session_)) return;
    Console& console = session_.console();
    ProgressView progress(console, BootClock::now);
    measurement.take(loadgen::run_plans(measurement.plans(), progress, session_.stop()), console);
    const results::Result& result = measurement.result();
    const Ending seen = cli::ending_of(result);
    ending_.errors |= seen.errors || seen.nothing_granted || result.runs.empty();
    ending_.exclusion_broken |= seen.exclusion_broken;
    if (!session_.stopped() && !result.runs.empty()) say(stop.said(result.runs.front()));
  }

  void visit_plays() {
    const auto servers = must(hazards::ServerPool::open({}));
    for (const PlayedStop& stop : kPlayedStops) {
      if (session_.stopped()) return;
      head(stop.title, fmt::format("hazards --explain {}/{}", stop.scenario, stop.strategy));
      visit(stop, *servers);
    }
  }

  void visit(const PlayedStop& stop, hazards::ServerPool& servers) {
    const std::vector cells{
        hazards::make_cell(*hazards::find_scenario(stop.scenario), *find_strategy(stop.strategy))};
    // A busy machine can disturb a play.
    constexpr int kTries = 3;
    hazards::Repeated played{.shown = cells.front()};
    for (int i = 0; i < kTries && (!played.shown.played() || played.shown.disturbed); ++i) {
      std::vector plays = cells;
      play_all(
          servers, plays, 1, [](const hazards::Cell&) {}, session_.stop());
      played = hazards::gather(plays, cells.size()).front();
    }
    if (session_.stopped()) return;
    if (!played.shown.played() || played.shown.disturbed) {
      ending_.errors = true;
      say("It could not be played: " + played.shown.reason);
      return;
    }
    const results::Hazard hazard = to_result(played);
    ending_.exclusion_broken |= !hazard.agrees;
    show(results::timeline_text(hazard.timeline));
    const bool failed = results::does_harm(hazard.observed);
    say(fmt::format("{}: {}.{}{}", hazard.observed, played.shown.reason,
                    failed && !stop.moral.empty() ? " " : "", failed ? stop.moral : ""));
  }

  void head(std::string_view title, const std::string& command) {
    show(fmt::format("{}. {}\n$ lockbench {}\n", ++stops_, title, command));
  }
  void say(const std::string& sentence) { show(results::folded(sentence, style_) + "\n\n"); }
  void show(const std::string& text) {
    session_.console().status("");
    ending_.errors |= !print_text(results::styled(text, style_));
  }

  const TourOptions& options_;
  const results::TextStyle style_;
  Session session_;
  Ending ending_;
  int stops_ = 0;
};

int tour(const TourOptions& options) { return Tour(options).take(); }

}  // namespace

Command tour_command() {
  return make_command<TourOptions>(
      {.task = kMeasure,
       .summary = "Show what locks do and how they break, in a minute on a private Redis.",
       .example = "lockbench tour",
       .asks = "What can go wrong with a lock? Four short experiments on a private Redis:"},
      tour);
}

}  // namespace lockbench::cli
