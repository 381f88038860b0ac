#include "cli/console/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "results/tables/units.h"

namespace lockbench::cli {
namespace {

constexpr std::chrono::seconds kBetweenLines{5};

std::string_view name_of(loadgen::Progress::Phase phase) {
  constexpr std::array<std::string_view, 4> kNames{"connecting", "warming_up", "measuring",
                                                   "draining"};
  return kNames.at(static_cast<std::size_t>(phase));
}

std::string phase_text(const loadgen::Progress& progress) {
  using Phase = loadgen::Progress::Phase;
  if (progress.phase == Phase::connecting) {
    return fmt::format("connecting {}/{} clients", progress.clients_connected, progress.clients);
  }
  if (progress.phase == Phase::draining) return "draining";
  return fmt::format("{} {:.0f} %", progress.phase == Phase::measuring ? "measuring" : "warming up",
                     std::clamp(progress.done, 0.0, 1.0) * 100);
}

}  // namespace

std::string progress_text(const loadgen::Progress& progress) {
  std::string text =
      fmt::format("{}{}{} ({}/{}) {}", progress.strategy, progress.load.empty() ? "" : " ",
                  progress.load, progress.run, progress.runs, phase_text(progress));
  if (progress.phase != loadgen::Progress::Phase::connecting) {
    text += fmt::format(", {} sections/s", results::human_number(progress.sections_per_second));
  }
  if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
  return text;
}

void ProgressView::on_progress(const loadgen::Progress& progress) {
  std::string line;
  if (console_.terminal()) {
    // Some terminals wrap the line when the last column is written.
    const int columns = std::max(console_.width() - 1, 0);
    console_.status(progress_text(progress).substr(0, static_cast<std::size_t>(columns)));
  } else if (const TimePoint now = now_(); now >= next_line_) {
    next_line_ = now + kBetweenLines;
    line = progress_text(progress);
  }
  console_.event("progress",
                 {{"strategy", std::string(progress.strategy)},
                  {"load", std::string(progress.load)},
                  {"run", std::int64_t{progress.run}},
                  {"runs", std::int64_t{progress.runs}},
                  {"phase", std::string(name_of(progress.phase))},
                  {"done", std::clamp(progress.done, 0.0, 1.0)},
                  {"clients_connected", std::int64_t{progress.clients_connected}},
                  {"sections_per_second", progress.sections_per_second},
                  {"failed", static_cast<std::int64_t>(progress.failed)}},
                 line);
}

void ProgressView::on_warning(const std::string& line) { console_.warn("warning: " + line); }

}  // namespace lockbench::cli
