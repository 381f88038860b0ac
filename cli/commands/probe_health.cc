#include "cli/commands/probe_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/console/facts.h"

namespace lockbench::cli {
namespace {

using loadgen::FailureReason;

// A store that fails in changing ways must not fill the log.
constexpr Duration kBetweenReasons = std::chrono::seconds(10);

}  // namespace

void ProbeHealth::on_progress(const loadgen::Progress& progress) {
  if (progress.phase == loadgen::Progress::Phase::connecting) {
    sections_ = 0;
    failures_ = {};
  }
  const bool worked = progress.sections > std::exchange(sections_, progress.sections);
  Failures lately = progress.failures;
  for (std::size_t i = 0; i < lately.values.size(); ++i) lately.values[i] -= failures_.values[i];
  failures_ = progress.failures;
  if (const auto reason = main_reason(lately)) {
    fails(*reason, progress.messages[*reason]);
  } else if (progress.stuck > 0) {
    fails(FailureReason::taken, {});
  } else if (worked) {
    works();
  }
}

void ProbeHealth::on_warning(const std::string& line) { console_.warn("warning: " + line); }

void ProbeHealth::on_unreachable(const std::string& why) { fails(loadgen::reason_of(why), why); }

std::optional<FailureReason> ProbeHealth::main_reason(Failures failures) {
  // Sections that were never begun are many, and an error says why.
  Failures errors = failures;
  errors[FailureReason::taken] = errors[FailureReason::slow] = 0;
  if (std::ranges::max(errors.values) > 0) failures[FailureReason::slow] = 0;
  const auto most = std::ranges::max_element(failures.values);
  if (*most == 0) return std::nullopt;
  return static_cast<FailureReason>(most - failures.values.begin());
}

void ProbeHealth::fails(FailureReason reason, const std::string& message) {
  const TimePoint now = now_();
  report_(reason);
  calm_since_.reset();
  const bool begins = !said_;
  if (begins) failing_since_ = now;
  const bool too_soon = now - said_at_ < kBetweenReasons && said_ != FailureReason::slow;
  if (!begins && (said_ == reason || too_soon)) return;
  said_ = reason;
  said_at_ = now;
  const loadgen::FailureReasonInfo& info = loadgen::info_of(reason);
  say(fmt::format("{}failing: {}: {}", begins ? "" : "still ", info.name,
                  message.empty() ? info.meaning : message));
}

void ProbeHealth::works() {
  if (!std::exchange(proven_, true) && !said_) report_(std::nullopt);
  if (!said_) return;
  const TimePoint now = now_();
  if (!calm_since_) calm_since_ = now;
  if (now - *calm_since_ < calm_) return;
  said_.reset();
  report_(std::nullopt);
  say(fmt::format("working again after {:.0f} s", seconds(*calm_since_ - failing_since_)));
}

void ProbeHealth::say(const std::string& what) {
  console_.warn(
      fmt::format("{} {}: {}", rfc3339(std::chrono::system_clock::now()), strategy_, what));
}

}  // namespace lockbench::cli
