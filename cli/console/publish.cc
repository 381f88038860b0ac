#include "cli/console/publish.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <thread>

#include "cli/console/ranks.h"
#include "results/file/json.h"
#include "results/file/loads.h"
#include "results/file/save.h"
#include "results/stats/figures.h"
#include "results/stats/load_figures.h"
#include "version.h"

namespace lockbench::cli {
namespace {

bool is_exempt(const std::string& name, const std::vector<Selected>& selected) {
  const auto found = std::ranges::find_if(
      selected, [&](const Selected& one) { return one.strategy->name == name; });
  if (found == selected.end() || found->named) return false;
  const Traits& traits = found->strategy->traits;
  return !traits.promises_exclusion || traits.one_process;
}

bool had_errors(const results::Run& run) {
  // A counter that could not be read is an error, though no outcome shows it.
  const bool wrote = run.sections > run.shared_sections;
  const bool unaudited = wrote && run.audit.verdict == results::Verdict::unaudited;
  // With --fault, failed operations are expected.
  if (!run.faults.empty()) return run.audit.resource_failures > 0 || unaudited;
  return !run.errors.empty() || run.outcomes.failed > 0 || run.outcomes.unknown > 0 ||
         run.releases_failed > 0 || run.audit.resource_failures > 0 || unaudited;
}

/// A disturbance of the machine changes such a figure.
bool depends_on_speed(const std::string& figure) {
  return results::compared_figure(figure).unit == results::Unit::seconds ||
         figure.ends_with("_per_second");
}

/// Where a result goes if results/runs cannot be written to.
std::string fallback_path(const results::Result& result) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return (error ? "/tmp" : folder) / fmt::format("lockbench-{}.json", result.id);
}

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t value = line.find(": ");
    if (value != std::string::npos) return line.substr(value + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages < 0 || page_size < 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size);
}

std::tm utc(WallTime time) {
  return fmt::gmtime(std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(time)));
}

}  // namespace

results::KnownFlaws known_flaws(const results::Result& result) {
  results::KnownFlaws flaws;
  for (const results::Run& run : result.runs) {
    const Descriptor* strategy = find_strategy(run.strategy);
    if (strategy == nullptr) continue;
    results::KnownFlaw& flaw = flaws[run.strategy];
    flaw.superseded_by = strategy->superseded_by;
    const auto& hazards = strategy->hazards;
    const auto gravest = std::ranges::max_element(hazards, {}, [](const KnownHazard& hazard) {
      return results::gravity(to_string(hazard.outcome));
    });
    if (gravest == hazards.end() || !results::does_harm(to_string(gravest->outcome))) continue;
    flaw.hazard = gravest->scenario;
  }
  return flaws;
}

results::Look look_of(const OutputOptions& options) {
  return {.format = options.format,
          .style = {.color = may_color(stdout),
                    .ascii = !is_utf8_locale(),
                    .width = output_width(stdout)},
          .columns = options.columns};
}

std::string render(const results::Result& result, const OutputOptions& options) {
  return results::render(result, known_flaws(result), look_of(options)).value();
}

bool print_text(const std::string& given) {
  // A file gets every byte of a result; a terminal would obey control characters.
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const std::string text = terminal ? results::printable_page(given, may_color(stdout)) : given;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return true;
  fmt::print(stderr, "the result could not be written to stdout\n");
  return false;
}

UnkeptThresholds unkept_thresholds(const std::vector<results::Threshold>& thresholds,
                                   const results::Result& result,
                                   const std::vector<Selected>& selected) {
  UnkeptThresholds unkept;
  for (const results::Threshold& threshold : thresholds) {
    for (const results::Run& run : result.runs) {
      const results::ThresholdOutcome outcome = results::evaluate(threshold, run);
      results::Check& check = unkept.checks.emplace_back(results::Check{
          fmt::format("{} (repetition {})", results::name_of(run, result), run.repetition),
          threshold.text});
      if (outcome.kept()) continue;
      using Outcome = results::Check::Outcome;
      if (is_exempt(run.strategy, selected)) {
        check.outcome = Outcome::skipped;
        check.why = "a control, which is exempt unless it is named";
        continue;
      }
      check.why = outcome.reason;
      const bool disturbed = !results::is_of_the_lock(run) && depends_on_speed(threshold.figure);
      if (disturbed) {
        check.why += fmt::format(", but {}", fmt::join(results::disturbances(run), "; "));
      } else if (outcome.is_unknown && !outcome.remedy.empty()) {
        check.why += "; " + outcome.remedy;
      }
      const bool missed = !outcome.is_unknown && !disturbed;
      check.outcome = missed ? Outcome::failed : Outcome::undecided;
      (missed ? unkept.missed : unkept.undecided)
          .push_back(fmt::format("threshold {}: {} by {}: {}", missed ? "missed" : "not decided",
                                 check.name, check.group, check.why));
    }
  }
  return unkept;
}

void ResultFile::keep(const results::Result& result) {
  if (is_stdout()) return;
  const TimePoint began = now_();
  const auto kept = results::replace(path_, results::to_json(result));
  kept_at_ = now_();
  took_ = kept_at_ - began;
  if (kept || failed_) return;
  failed_ = true;
  console_.warn("not saved so far: " + kept.error());
}

bool ResultFile::has_time() const {
  constexpr int kLeastPause = 20;
  return now_() - kept_at_ >= kLeastPause * took_;
}

bool save_file(const std::filesystem::path& path, const std::string& text, Console& console,
               std::string_view what, const std::function<void(const std::string&)>& told) {
  const auto saved = results::save(path, text);
  if (!saved) {
    console.warn(fmt::format("{}not saved: {}", what, saved.error()));
    return false;
  }
  if (!saved->warning.empty()) console.warn(saved->warning);
  if (told) told(saved->path.string());
  return saved->warning.empty();
}

bool close_history(history::Log& history, Console& console) {
  const auto closed = history.close();
  if (!closed) console.warn("--history: " + closed.error());
  return closed.has_value();
}

bool ResultFile::save(const results::Result& result) {
  if (is_stdout()) return print_text(results::to_json(result));
  return save_file(path_, results::to_json(result), console_, "", [&](const std::string& path) {
    console_.event("saved", {{"file", path}}, "saved in " + path);
  });
}

int gravest(int a, int b) {
  using namespace exit_code;
  for (const int code :
       {kInterrupted, kExclusionBroken, kErrors, kInvalid, kThresholdMissed, kUndecided}) {
    if (a == code || b == code) return code;
  }
  return std::max(a, b);
}

int exit_code_of(const Ending& ending) {
  if (ending.interrupted && !ending.rank_lost) return exit_code::kInterrupted;
  if (ending.exclusion_broken) return exit_code::kExclusionBroken;
  if (ending.planned_too_high) return exit_code::kThresholdMissed;
  if (ending.errors || ending.rank_lost || ending.nothing_granted) return exit_code::kErrors;
  if (ending.invalid && ending.strict) return exit_code::kInvalid;
  if (ending.threshold_missed) return exit_code::kThresholdMissed;
  if (ending.undecided) return exit_code::kUndecided;
  return exit_code::kFine;
}

Ending ending_of(const results::Result& result) {
  Ending ending{.interrupted = result.interrupted, .rank_lost = result.exit_code.has_value()};
  for (const results::Run& run : result.runs) {
    // An unknown strategy is expected to promise exclusion.
    const Descriptor* strategy = find_strategy(run.strategy);
    const bool promised =
        strategy == nullptr || strategy->traits.promises_exclusion || strategy->traits.updates;
    ending.exclusion_broken |= promised && run.audit.verdict == results::Verdict::violated;
    ending.errors |= had_errors(run);
    // A window that is shorter than a wait has no grant of its own.
    ending.nothing_granted |= run.outcomes.acquired == 0 && run.acquire.count == 0;
    ending.invalid |= !run.generator.valid;
  }
  return ending;
}

void add_to(Ending& ending, const results::Capacity& capacity) {
  ending.invalid |= capacity.limit == "generator";
  ending.planned_too_high |= capacity.planned_too_high();
  // Without a planned rate, any rate that is kept will do.
  const auto& planned = capacity.planned_rate;
  const bool shown = planned ? *planned <= capacity.lowest : capacity.lowest > 0;
  ending.threshold_missed |= !shown && !planned && std::isfinite(capacity.highest);
  ending.undecided |= !shown;
}

results::Build build_facts() { return {LOCKBENCH_VERSION, LOCKBENCH_COMMIT, LOCKBENCH_BUILD_TYPE}; }

std::string build_line(const results::Build& build) {
  return fmt::format("{} ({}, {})", build.version, build.commit, build.build_type);
}

std::string rfc3339(WallTime time) { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc(time)); }

std::string run_id(WallTime time, std::uint32_t random) {
  return fmt::format("{:%Y%m%dT%H%M%SZ}-{:06x}", utc(time), random & 0xffffffU);
}

results::Result begin_result(const OutputOptions& options) {
  const WallTime now = std::chrono::system_clock::now();
  return {.id = run_id(now, std::random_device()()),
          .started_at = rfc3339(now),
          .command = options.command,
          .lockbench = build_facts(),
          .environment = {.cpu = cpu_model(),
                          .cores = static_cast<int>(std::thread::hardware_concurrency()),
                          .kernel = kernel(),
                          .memory_bytes = memory_bytes()}};
}

void check_output(const OutputOptions& options, const results::Result& result) {
  must(results::render(result, {}, look_of(options)), "--columns");
  if (!options.report.empty()) must(results::check_writable(options.report), "--report");
}

std::string out_path(const OutputOptions& options, const results::Result& result) {
  check_output(options, result);
  std::string out =
      options.out.empty() ? fmt::format("results/runs/{}.json", result.id) : options.out;
  if (out != kStdout) {
    auto writable = results::check_writable(out);
    if (!writable && options.out.empty()) {
      out = fallback_path(result);
      writable = results::check_writable(out);
    }
    must(std::move(writable), "--out");
  }
  return out;
}

int finish(results::Result& result, const OutputOptions& options, ResultFile& file, Ending ending,
           const std::optional<std::string>& text) {
  Console& console = file.console();
  console.status("");
  ending.interrupted |= result.interrupted;
  ending.rank_lost |= warn_of_lost_ranks(file.path(), console);
  if (ending.rank_lost && !result.exit_code) {
    result.exit_code = static_cast<std::uint64_t>(exit_code_of(ending));
  }
  if (file.path() == fallback_path(result)) console.warn("results/runs cannot be written to here");
  const bool saved = file.save(result);
  const bool reported = save_report(result, options.report, file.path(), console);
  const bool silent = file.is_stdout() || options.events == kStdout;
  const bool printed = silent || print_text(text ? *text : render(result, options));
  ending.errors |= !saved || !reported || !printed;
  return exit_code_of(ending);
}

bool save_page(const std::string& page, const std::string& path, Console& console) {
  return save_file(path, page, console, "the report was ",
                   [&](const std::string& place) { console.note("report in " + place); });
}

bool save_report(const results::Result& result, const std::string& page, const std::string& out,
                 Console& console) {
  if (page.empty()) return true;
  const results::report::Source source{out, result, known_flaws(result)};
  return save_page(results::report::to_page(std::span(&source, 1), results::report::make_nonce()),
                   page, console);
}

}  // namespace lockbench::cli
