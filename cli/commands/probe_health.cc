#include "cli/commands/probe_health.h"

#include <fmt/format.h>

#include <utility>

#include "cli/console/facts.h"

namespace lockbench::cli {

void ProbeHealth::on_progress(const loadgen::Progress& progress) {
  if (progress.phase == loadgen::Progress::Phase::connecting) sections_ = failed_ = timed_out_ = 0;
  const bool failed = progress.failed > std::exchange(failed_, progress.failed);
  const bool timed_out = progress.in_vain > std::exchange(timed_out_, progress.in_vain);
  const bool worked = progress.sections > std::exchange(sections_, progress.sections);
  if (failed) {
    fails("acquisitions fail");
  } else if (timed_out) {
    fails("uncontended locks are not granted");
  } else if (worked) {
    works();
  }
}

void ProbeHealth::on_warning(const std::string& line) { console_.warn("warning: " + line); }

void ProbeHealth::on_unreachable(const std::string& why) { fails(why); }

void ProbeHealth::fails(const std::string& how) {
  if (failing_since_) return;
  failing_since_ = TimePoint::clock::now();
  console_.warn(
      fmt::format("{} {}: failing: {}", rfc3339(std::chrono::system_clock::now()), strategy_, how));
}

void ProbeHealth::works() {
  if (!failing_since_) return;
  const Duration failed = TimePoint::clock::now() - *failing_since_;
  failing_since_.reset();
  console_.warn(fmt::format("{} {}: working again after {:.0f} s",
                            rfc3339(std::chrono::system_clock::now()), strategy_, seconds(failed)));
}

}  // namespace lockbench::cli
