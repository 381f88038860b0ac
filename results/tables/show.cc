#include "results/tables/show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/stats/load_figures.h"
#include "results/tables/observed.h"

namespace lockbench::results {
namespace {

constexpr std::size_t kMostNames = 3, kMostKinds = 20;

using Sentences = std::vector<Sentence>;

int repetitions(const Result& result) {
  int most = 1;
  for (const Run& run : result.runs) most = std::max(most, run.repetition);
  return most;
}

std::string run_name(const Run& run, const Result& result) {
  const std::string name = name_of(run, result);
  return repetitions(result) > 1 ? fmt::format("{}, repetition {}", name, run.repetition) : name;
}

std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return text;
}

using Texts = std::vector<std::string>;

/// Adds a line for each kind of text about runs; texts that differ only in numbers are of one kind:
/// "RUN: TEXT", or "RUN, RUN and 7 more: TEXT (the first of 9)".
template <class TextsOf>
void add_notes(std::string_view what, const Result& result, const TextsOf& texts_of,
               Sentences& lines) {
  struct Note {
    std::string text;
    const Run* run;
  };
  std::vector<Note> notes;
  for (const Run& run : result.runs) {
    for (const std::string& text : texts_of(run)) notes.push_back({text, &run});
  }
  const auto kinds = grouped(notes, [](const Note& note) { return without_numbers(note.text); });
  for (std::size_t i = 0; i < std::min(kinds.size(), kMostKinds); ++i) {
    const std::vector<const Note*>& its = kinds[i].second;
    const auto& [text, run] = *its.front();
    const auto name = [&](const Note* note) { return name_of(*note->run, result); };
    const Texts names = keys_of(grouped(its, name));
    const std::string line = its.size() == 1
                                 ? fmt::format("{}: {}: {}", what, run_name(*run, result), text)
                                 : fmt::format("{}: {}: {} (the first of {})", what,
                                               listed(names, kMostNames), text, its.size());
    lines.emplace_back(Tone::doubtful, line);
  }
  if (kinds.size() > kMostKinds) {
    lines.emplace_back(
        fmt::format("{}: and {} more, see the result file", what, kinds.size() - kMostKinds));
  }
}

Texts why_invalid(const Run& run) {
  if (run.generator.valid) return {};
  return run.generator.reasons.empty() ? Texts{"no reason given"} : run.generator.reasons;
}

/// A run without any grant has no figures to show.
Texts why_ungranted(const Run& run) {
  const Outcomes& seen = run.outcomes;
  const bool tried =
      seen.refused + seen.timed_out + seen.failed + seen.unknown + seen.abandoned > 0;
  // A window that is shorter than a wait has no grant of its own.
  const bool granted = seen.acquired > 0 || run.acquire.count > 0;
  if (run.sections_per_second > 0 || granted || !tried) return {};
  return {fmt::format("{} refused, {} timed out, {} failed, {} unknown, {} abandoned", seen.refused,
                      seen.timed_out, seen.failed, seen.unknown, seen.abandoned)};
}

/// Ranks whose waits differ from those of most ranks.
Texts outliers(const Run& run) {
  Texts texts;
  for (const Rank& rank : run.ranks) {
    if (!rank.outlier) continue;
    texts.push_back(fmt::format("rank {} on {} has unusual waits: p50 {}, p99 {}", rank.rank,
                                rank.host, human_seconds(rank.acquire_p50),
                                human_seconds(rank.acquire_p99)));
  }
  return texts;
}

/// The effect of a fault on the load: "throughput fell to 4 % and recovered 120 ms after healing".
std::string effect_of(const FaultMark& mark) {
  if (!std::isfinite(mark.lowest_share)) return "too few grants before it to compare with";
  std::string effect =
      fmt::format("throughput fell to {:.0f} %", 100 * std::min(mark.lowest_share, 1.0));
  if (!mark.recovery_seconds) return effect + " and did not recover before the run ended";
  // Throughput is read at this interval or a longer one.
  constexpr double kPrecision = 0.01;
  const std::string recovered = *mark.recovery_seconds < kPrecision
                                    ? "within " + human_seconds(kPrecision)
                                    : human_seconds(*mark.recovery_seconds);
  return fmt::format("{} and recovered {} {} {}", effect, recovered,
                     *mark.recovery_seconds < kPrecision ? "of" : "after",
                     mark.healed_seconds ? "healing" : "the fault");
}

void add_faults(const Result& result, Sentences& lines) {
  for (const Run& run : result.runs) {
    for (const FaultMark& mark : run.faults) {
      // Times as --fault gives them.
      const auto at = [&](double time) { return human_seconds(time - run.warmup_seconds); };
      const std::string healed =
          mark.healed_seconds ? ", healed at " + at(*mark.healed_seconds) : "";
      const std::string_view doubt =
          run.generator.valid ? " (the run was cut short)" : " (the run is invalid)";
      const bool lost = std::isfinite(mark.lowest_share) && !mark.recovery_seconds;
      const bool valid = is_of_the_lock(run);
      const Tone tone = lost && valid ? Tone::bad : valid ? Tone::plain : Tone::doubtful;
      lines.push_back(
          {tone, fmt::format("fault: {}: {} at {}{}: {}{}", run_name(run, result), mark.fault,
                             at(mark.at_seconds), healed, effect_of(mark), valid ? "" : doubt)});
    }
  }
}

/// Strategies with the same reason share a line.
void add_skipped(const Result& result, Sentences& lines) {
  for (const auto& [reason, skipped] : grouped(result.skipped, &Skipped::reason)) {
    lines.emplace_back(Tone::plain,
                       fmt::format("skipped: {}: {}",
                                   fmt::join(each_of(skipped, &Skipped::strategy), ", "), reason));
  }
}

/// The violations of exclusion of each strategy, added up over its repetitions.
void add_violations(const Result& result, Sentences& lines) {
  for (auto& [strategy, runs] : grouped(result.runs, &Run::strategy)) {
    std::erase_if(runs, [](const Run* run) { return run->audit.verdict != Verdict::violated; });
    if (runs.empty()) continue;
    std::string said = fmt::format("violated exclusion: {}", strategy);
    std::string_view before = ": ";
    for (const auto& [figure, what] :
         {std::pair("audit.lost_updates", "lost updates"),
          std::pair("audit.overlaps", "overlaps of two holders"),
          std::pair("audit.fence_regressions", "fencing numbers that did not increase")}) {
      const double count = sum_of_figure(runs, figure).value_or(0);
      if (count == 0) continue;
      said += fmt::format("{}{} {}", std::exchange(before, ", "), what, human_count(count));
    }
    lines.push_back({Tone::bad, said});
  }
}

/// Locks that cannot carry the rate that was asked for.
void add_full(const Result& result, Sentences& lines) {
  Texts names;
  for (const auto& [strategy, runs] : grouped(result.runs, &Run::strategy)) {
    if (runs.front()->load.rate && is_full(runs)) names.push_back(strategy);
  }
  if (names.empty()) return;
  lines.push_back({Tone::bad, fmt::format("full: {}: no time of the lock is left at this rate, so "
                                          "waits only grow with the length of the run",
                                          listed(names))});
}

/// A line for each finding of a watch, and for everything that cannot be seen of a server.
void add_observed(const Result& result, Sentences& lines) {
  for (const ObservedFinding& finding : result.findings) {
    const std::string advised = finding.advice.empty() ? "" : ": " + finding.advice;
    lines.push_back({tone_of(finding), sentence_of(finding) + advised});
  }
  for (const ObservedSource& source : result.sources) {
    for (const std::string& unseen : source.unseen) {
      lines.push_back({Tone::plain,
                       fmt::format("{} {}: cannot see {}", source.store, source.endpoint, unseen)});
    }
  }
}

/// Of the worst locks, at most ten that are in trouble, held, or waited for.
std::vector<ObservedLock> worth_a_look(std::vector<ObservedLock> locks) {
  constexpr std::size_t kMost = 10;
  std::erase_if(locks, [](const ObservedLock& lock) {
    return lock.trouble.empty() && !lock.holder && lock.waiting_now.value_or(0) == 0;
  });
  if (locks.size() > kMost) locks.resize(kMost);
  return locks;
}

Sentences made_printable(Sentences lines) {
  for (Sentence& line : lines) line.text = printable(line.text);
  return lines;
}

enum class Kind { runs, hazards, capacity, simulation, observed };

Kind kind_of(const Result& result) {
  if (!result.runs.empty()) return Kind::runs;
  if (result.hazards) return Kind::hazards;
  if (result.observed) return Kind::observed;
  if (result.simulation) return Kind::simulation;
  return result.capacity ? Kind::capacity : Kind::runs;
}

/// The table for people.
Table main_table(const Result& result, const KnownFlaws& flaws) {
  const Kind kind = kind_of(result);
  if (kind == Kind::observed) return observed_table(result);
  if (kind == Kind::simulation) return simulation_table(*result.simulation);
  return kind == Kind::capacity ? capacity_table(*result.capacity) : run_table(result, flaws);
}

/// The table for CSV: one row for each item that was measured.
Table complete_table(const Result& result, const KnownFlaws& flaws) {
  const Kind kind = kind_of(result);
  if (kind == Kind::hazards) return hazard_table(*result.hazards);
  return kind == Kind::runs ? table_of_each_run(result, flaws) : main_table(result, flaws);
}

std::vector<Sentence> sentences_of(const Result& result, const KnownFlaws& flaws) {
  std::vector<Sentence> lines = advice(result, flaws);
  for (Sentence& note : notes(result)) lines.push_back(std::move(note));
  return lines;
}

/// For a terminal: as many strategies as fit next to the scenarios' names.
MatrixStyle matrix_for(const Result& result, const Look& look) {
  if (!result.hazards || look.format == Format::markdown) return {};
  constexpr std::size_t kColumn = 12;  // the widest outcome with its marks, and the gap
  std::size_t names = 0;
  for (const Hazard& hazard : *result.hazards) {
    names = std::max(names, display_width(hazard.scenario));
  }
  const std::size_t width = look.style.width.value_or(static_cast<std::size_t>(-1));
  return {.columns = (width - std::min(names, width)) / kColumn, .numbered = true};
}

std::string written(const Block& block, const Look& look) {
  return look.format == Format::markdown ? to_markdown(block) : to_text(block, look.style);
}

}  // namespace

std::vector<Block> blocks_of(const Result& result, const KnownFlaws& flaws,
                             const MatrixStyle& matrix) {
  const Kind kind = kind_of(result);
  std::vector<Block> blocks;
  if (kind == Kind::hazards) {
    blocks = hazard_blocks(*result.hazards, matrix);
    // Numbered columns are for terminals, which show no single plays.
    if (matrix.numbered) blocks.push_back({.lines = hazard_failures(*result.hazards)});
    blocks.push_back({.lines = notes(result)});
    return blocks;
  }
  if (has_several_loads(result)) {
    blocks = load_tables(result, flaws);
    blocks.push_back({.lines = advice(result, flaws)});
    blocks.push_back({.lines = notes(result)});
    return blocks;
  }
  Block& main = blocks.emplace_back();
  main.table = shown(main_table(result, flaws));
  if (main.table.rows.empty()) {
    const std::string what = kind == Kind::runs       ? "no runs"
                             : kind == Kind::observed ? "no locks were seen"
                                                      : "no points";
    main = {.lines = {{Tone::doubtful, what}}};
    if (kind == Kind::observed && !result.proposals.empty()) {
      main = {.lines = {{Tone::plain, "these keys look like locks: name them with --locks"}}};
      for (const std::string& one : result.proposals)
        main.lines.emplace_back(printable("  " + one));
    }
  }
  for (Sentence& one : sentences_of(result, flaws)) main.lines.push_back(std::move(one));
  // With several runs, the notes name the outliers among the ranks.
  if (kind == Kind::runs && result.runs.size() == 1 && !result.runs.front().ranks.empty()) {
    blocks.push_back({.table = shown(rank_table(result))});
  }
  if (kind == Kind::observed) {
    if (const Table worst = shown(lock_table(worth_a_look(result.locks))); !worst.rows.empty()) {
      blocks.push_back({.title = "The locks that hurt most", .table = worst});
    }
  }
  if (kind != Kind::capacity) return blocks;
  for (const Capacity& capacity : *result.capacity) {
    const std::vector<std::string> found = findings(capacity);
    blocks.push_back({.title = capacity.strategy, .lines = {found.begin(), found.end()}});
  }
  return blocks;
}

tl::expected<std::string, std::string> render(const Block& block, const Look& look) {
  const bool csv = look.format == Format::csv;
  Block picked = block;
  if (!look.columns.empty()) {
    auto asked = chosen(block.table, look.columns);
    if (!asked) return tl::unexpected(asked.error());
    picked.table = *std::move(asked);
  } else {
    picked.table = csv ? csv_columns(block.table) : shown(block.table);
  }
  return csv ? to_csv(picked.table) : written(picked, look);
}

tl::expected<std::string, std::string> render(const Result& result, const KnownFlaws& flaws,
                                              const Look& look) {
  if (look.format == Format::json) {
    if (look.columns.empty()) return to_json(result);
    return tl::unexpected(std::string("JSON has no columns to choose: use --format csv"));
  }
  if (look.format == Format::junit) {
    if (look.columns.empty()) return to_junit("lockbench", checks_of(result));
    return tl::unexpected(std::string("JUnit has no columns to choose: use --format csv"));
  }
  // A matrix has no columns to choose from, but the list of its cells has.
  const bool list = kind_of(result) == Kind::hazards && !look.columns.empty();
  if (look.format == Format::csv || list) {
    return render({.table = complete_table(result, flaws)}, look);
  }
  if (!look.columns.empty()) {
    return render({.table = main_table(result, flaws), .lines = sentences_of(result, flaws)}, look);
  }
  std::string text;
  for (const Block& block : blocks_of(result, flaws, matrix_for(result, look))) {
    const std::string part = written(block, look);
    text += (text.empty() || part.empty() ? "" : "\n") + part;
  }
  return text;
}

std::vector<Sentence> advice(const Result& result, const KnownFlaws& flaws) {
  Sentences lines;
  if (has_several_loads(result)) {
    for (const std::string& one : conclusions(result, flaws)) lines.emplace_back(one);
  } else {
    add_full(result, lines);
  }
  add_violations(result, lines);
  for (const std::string& found : experiment_findings(result)) lines.emplace_back(found);
  if (result.simulation) {
    for (const std::string& best : sweep_findings(*result.simulation)) lines.emplace_back(best);
    for (const Simulation& one : *result.simulation) {
      for (const std::string& found : findings(one)) lines.emplace_back(found);
    }
  }
  add_observed(result, lines);
  return made_printable(std::move(lines));
}

std::vector<Sentence> notes(const Result& result) {
  Sentences lines;
  if (result.interrupted) {
    lines.push_back({Tone::doubtful, "interrupted: these are the figures up to then"});
  }
  if (repetitions(result) > 1) {
    lines.push_back(
        {Tone::plain,
         "repeated: figures are medians over the valid repetitions, counts are sums, max is the "
         "largest; ± shows the repetition farthest from the median"});
  }
  add_notes("invalid", result, why_invalid, lines);
  add_notes("nothing granted", result, why_ungranted, lines);
  add_faults(result, lines);
  add_notes("outlier", result, outliers, lines);
  if (std::ranges::any_of(result.runs, [](const Run& run) { return !run.ranks.empty(); })) {
    lines.push_back(
        {Tone::plain,
         "ranks: handoffs, overtakings, contended grants, overlaps and fencing order are counted "
         "within each rank; lost updates and stale writes over all ranks"});
  }
  add_notes(
      "failure", result, [](const Run& run) { return run.errors; }, lines);
  add_skipped(result, lines);
  return made_printable(std::move(lines));
}

}  // namespace lockbench::results
