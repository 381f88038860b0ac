#include "cli/commands/hunt.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <mutex>

#include "cli/console/session.h"
#include "results/tables/formats.h"
#include "results/tables/hazards.h"
#include "results/tables/text.h"
#include "strategies/number.h"

namespace lockbench::cli {
namespace {

using simulate::Trial;
using simulate::Verdict;

/// What was played of one strategy.
struct Bag {
  std::optional<Verdict> found;
  std::uint64_t seeds = 0, sections = 0;
  double took = 0;  ///< seconds

  std::string text() const {
    return fmt::format("{} seeds, {} sections, {:.0f} s, {:.0f} seeds a second", seeds, sections,
                       took, static_cast<double>(seeds) / std::max(took, 1e-3));
  }
};

/// Plays one seed after the other, several at once, until something is found or the time is over.
class Search {
 public:
  Search(const Descriptor& strategy, const HuntOptions& options, std::uint64_t first,
         Console& console)
      : strategy_(strategy), minutes_(options.minutes), next_(first), console_(console) {}

  Bag run(int jobs, const std::stop_token& stop) {
    const std::stop_callback pass_on(stop, [this] { over_.request_stop(); });
    {
      std::vector<Thread> threads;
      threads.reserve(static_cast<std::size_t>(jobs));
      for (int i = 0; i < jobs; ++i) {
        threads.push_back(must(Thread::start([this](const std::stop_token&) { work(); },
                                             [this](const std::string& why) { fail(why); })));
      }
      for (Thread& thread : threads) thread.finish();
    }
    console_.status("");
    if (!failure_.empty()) throw UsageError("{}: {}", strategy_.name, failure_);
    bag_.took = seconds(BootClock::now() - began_);
    return std::move(bag_);
  }

 private:
  double left() const { return 60 * minutes_ - seconds(BootClock::now() - began_); }

  void work() {
    while (!over_.stop_requested() && left() > 0) {
      auto verdict = simulate::play(strategy_, {.seed = next_++}, {}, over_.get_token());
      if (verdict) {
        note(*std::move(verdict));
      } else if (!over_.stop_requested()) {
        return fail(verdict.error());
      }
    }
  }

  void note(Verdict verdict) {
    const std::scoped_lock lock(mutex_);
    ++bag_.seeds;
    bag_.sections += verdict.sections;
    bag_.took = seconds(BootClock::now() - began_);
    console_.status(fmt::format("{}: {}, {} left", strategy_.name, bag_.text(),
                                results::human_seconds(std::max(left(), 0.0))));
    if (!verdict.finding || bag_.found) return;
    bag_.found = std::move(verdict);
    over_.request_stop();
  }

  void fail(const std::string& why) {
    const std::scoped_lock lock(mutex_);
    failure_ = why;
    over_.request_stop();
  }

  const Descriptor& strategy_;
  const double minutes_;
  std::atomic<std::uint64_t> next_;
  Console& console_;
  const TimePoint began_ = BootClock::now();
  std::stop_source over_;
  std::mutex mutex_;
  Bag bag_;
  std::string failure_;
};

std::string finding_text(const Descriptor& strategy, const Verdict& verdict) {
  return fmt::format("{}: {}: {}\nagain: lockbench simulate {} --replay {}\n", strategy.name,
                     to_string(verdict.finding->oracle), verdict.finding->what, strategy.name,
                     verdict.trial.to_string());
}

Verdict smallest(const Descriptor& strategy, Verdict verdict, const HuntOptions& options,
                 Session& session) {
  if (!options.shrink) return verdict;
  session.console().status(fmt::format("{}: shrinking", strategy.name));
  verdict = simulate::shrink(strategy, std::move(verdict), session.stop());
  session.console().status("");
  return verdict;
}

/// A line of a trace: "12.000300000 client-3 is granted ...".
results::HazardEvent event_of(std::string_view line) {
  const std::size_t first = line.find(' '), second = line.find(' ', first + 1);
  std::string_view who = line.substr(first + 1, second - first - 1);
  // There is only one of these.
  for (const std::string_view one : {"fault", "judge"}) {
    if (who.starts_with(one)) who = one;
  }
  return {.t = parse_number<double>(line.substr(0, first)).value_or(0),
          .who = std::string(who),
          .what = std::string(line.substr(second + 1))};
}

/// Plays the trial as a timeline. Broken exclusion: something was found.
Ending replay(const Descriptor& strategy, const HuntOptions& options, const std::string& trace_out,
              Session& session) {
  std::ofstream trace;
  if (!trace_out.empty()) {
    trace.open(trace_out);
    if (!trace) throw UsageError("--trace-out: {} cannot be written", trace_out);
  }
  Trial trial = *options.replay;
  if (options.shrink) {
    Verdict whole = must(simulate::play(strategy, trial, {}, session.stop()));
    if (whole.finding) trial = smallest(strategy, std::move(whole), options, session).trial;
  }
  std::vector<results::HazardEvent> events;
  const auto note = [&](const std::string& line) {
    events.push_back(event_of(line));
    if (trace.is_open()) trace << line << '\n';
  };
  const Verdict verdict = must(simulate::play(strategy, trial, note, session.stop()));
  std::string text = results::timeline_text(events);
  text += verdict.finding
              ? finding_text(strategy, verdict)
              : fmt::format("{}: nothing found in trial {}\n", strategy.name, trial.to_string());
  const bool printed = print_text(results::printable_page(text, false));
  const bool failed = (trace.is_open() && !trace.flush()) || !printed;
  if (failed) session.console().warn("not everything could be written");
  return {.exclusion_broken = verdict.finding.has_value(), .errors = failed};
}

}  // namespace

void HuntOptions::declare(OptionList& options) {
  options.heading("Hunt");
  options.add_flag("hunt", hunt,
                   "play seeds, each with its own order of events and its own faults, until a lock "
                   "breaks a promise; exit 3 if one does");
  options.add("minutes", "M", minutes, number(0.01, 10'000), "how long to hunt with each strategy");
  options.add(
      "replay", "TRIAL", replay, parsed(Trial::parse, &Trial::to_string),
      "show each event of a trial of --hunt, one per line: a seed, or what --shrink left of "
      "it",
      "none");
  options.add_flag(
      "shrink", shrink,
      "remove clients, sections, faults and changes of priorities from the trial as long "
      "as it breaks the same promise");
  for (const char* const name : {"hunt", "minutes", "replay", "shrink"}) {
    options.at(name).effect = Effect::command;
  }
}

void HuntOptions::complete(const OptionList& options) const {
  if (hunt && replay) throw UsageError("--hunt cannot be combined with --replay");
  options.needs("minutes", hunt, "--hunt");
  options.needs("shrink", given(), "--hunt or --replay");
  if (!given()) return;
  if (hunt) options.needs("trace-out", false, "--replay");
  constexpr std::array<std::string_view, 10> kOwn{"strategies", "hunt",  "minutes", "replay",
                                                  "shrink",     "seed",  "jobs",    "trace-out",
                                                  "quiet",      "events"};
  for (const Option& option : options.all()) {
    const bool own = option.name == "config" || std::ranges::count(kOwn, option.name) > 0;
    if (option.given && !own) {
      throw UsageError(
          "--{} cannot be combined with --hunt or --replay, which draw the load and "
          "the faults from the seed",
          option.name);
    }
  }
}

int hunt(const LoadOptions& load, const HuntOptions& options, int jobs,
         const std::string& trace_out) {
  const std::vector<Selected> selected = select_for_load(load);
  std::vector<const Descriptor*> strategies;
  for (const auto& [strategy, named] : selected) {
    const std::string why = simulate::why_not(*strategy);
    if (!why.empty() && named) throw UsageError("{}: {}", strategy->name, why);
    if (why.empty()) strategies.push_back(strategy);
  }
  if (strategies.empty()) throw UsageError("none of these strategies can be simulated");
  if (options.replay && strategies.size() > 1) throw UsageError("--replay needs one strategy");
  Session session(load.output);
  Ending ending;
  if (options.replay) ending = replay(*strategies.front(), options, trace_out, session);
  for (const Descriptor* strategy : strategies) {
    if (options.replay || session.stopped()) break;
    Bag bag =
        Search(*strategy, options, load.workload.seed, session.console()).run(jobs, session.stop());
    std::string text = fmt::format("{}: {}: {}\n", strategy->name,
                                   bag.found ? "found" : "nothing found", bag.text());
    if (bag.found) {
      ending.exclusion_broken = true;
      text += finding_text(*strategy, smallest(*strategy, *std::move(bag.found), options, session));
    }
    ending.errors |= !print_text(results::printable_page(text, false));
  }
  ending.interrupted = session.stopped();
  return exit_code_of(ending);
}

}  // namespace lockbench::cli
