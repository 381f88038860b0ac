#include "cli/commands/probe_health.h"

#include <fmt/format.h>

#include <utility>

#include "cli/console/facts.h"

namespace lockbench::cli {

void ProbeHealth::on_progress(const loadgen::Progress& progress) {
  if (progress.phase == loadgen::Progress::Phase::connecting) sections_ = failed_ = in_vain_ = 0;
  const bool failed = progress.failed > std::exchange(failed_, progress.failed);
  const bool in_vain = progress.in_vain > std::exchange(in_vain_, progress.in_vain);
  const bool worked = progress.sections > std::exchange(sections_, progress.sections);
  if (failed) {
    fails("acquisitions fail");
  } else if (in_vain) {
    fails("locks that nobody else wants are not granted");
  } else if (worked) {
    works();
  }
}

void ProbeHealth::on_warning(const std::string& line) { console_.warn("warning: " + line); }

void ProbeHealth::not_reached(const std::string& why) { fails(why); }

void ProbeHealth::fails(const std::string& how) {
  if (failing_since_) return;
  failing_since_ = TimePoint::clock::now();
  console_.warn(
      fmt::format("{} {}: fails: {}", rfc3339(std::chrono::system_clock::now()), strategy_, how));
}

void ProbeHealth::works() {
  if (!failing_since_) return;
  const Duration failed = TimePoint::clock::now() - *failing_since_;
  failing_since_.reset();
  console_.warn(fmt::format("{} {}: works again after {:.0f} s",
                            rfc3339(std::chrono::system_clock::now()), strategy_, seconds(failed)));
}

}  // namespace lockbench::cli
