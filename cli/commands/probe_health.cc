#include "cli/commands/probe_health.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "cli/console/publish.h"

namespace lockbench::cli {
namespace {

using loadgen::FailureReason;

// A store that fails in changing ways must not fill the log.
constexpr Duration kBetweenReasons = std::chrono::seconds(10);

constexpr std::pair<std::uint64_t ProbeFindings::*, const char*> kFindings[] = {
    {&ProbeFindings::overlaps, "two holders at once"},
    {&ProbeFindings::lost_updates, "lost updates"},
    {&ProbeFindings::fence_resets, "fencing numbers that went back"},
    {&ProbeFindings::leases_lost, "leases lost while held"},
    {&ProbeFindings::fence_regressions, "grants with old fencing numbers"}};

}  // namespace

bool ProbeFindings::any() const {
  return std::ranges::any_of(kFindings, [&](const auto& one) { return this->*one.first > 0; });
}

ProbeFindings& ProbeFindings::operator+=(const ProbeFindings& more) {
  for (const auto& [count, what] : kFindings) this->*count += more.*count;
  return *this;
}

ProbeFindings ProbeFindings::operator-(const ProbeFindings& less) const {
  ProbeFindings rest = *this;
  for (const auto& [count, what] : kFindings) rest.*count -= less.*count;
  return rest;
}

std::string ProbeFindings::to_string() const {
  std::vector<std::string> parts;
  for (const auto& [count, what] : kFindings) {
    if (this->*count > 0) parts.push_back(fmt::format("{}: {}", what, this->*count));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

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
  // An error explains the many abandoned sections, which count as slow.
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

void ProbeHealth::on_findings(const ProbeFindings& found, const std::string& cause, bool at_once) {
  if (found.any()) cause_ = cause;
  unsaid_ += found;
  const TimePoint now = now_();
  const bool too_soon = found_said_at_ && now - *found_said_at_ < kBetweenReasons && !at_once;
  if (!unsaid_.any() || too_soon) return;
  say(fmt::format("{}: {}", std::exchange(unsaid_, {}).to_string(), cause_));
  found_said_at_ = now;
}

void ProbeHealth::on_connect(const std::optional<std::string>& failure) {
  if (connects_ == !failure) return;
  connects_ = !failure;
  say(failure ? "a new connection failed, while open ones still work: " + *failure
              : "new connections work again");
}

void ProbeHealth::say(const std::string& what) {
  console_.warn(
      fmt::format("{} {}: {}", rfc3339(std::chrono::system_clock::now()), strategy_, what));
}

}  // namespace lockbench::cli
