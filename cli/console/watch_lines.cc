#include "cli/console/watch_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "results/tables/observed.h"

namespace lockbench::cli {
namespace {

using watch::FamilyPicture;
using watch::Picture;
using watch::SourcePicture;

constexpr Duration kBetweenSummaries = std::chrono::seconds(10);
/// A finding that returns after so long is reported again.
constexpr Duration kForgotten = std::chrono::seconds(60);
/// A finding that goes on is repeated this often.
constexpr Duration kBetweenRepeats = std::chrono::minutes(10);

/// What each Accuracy means for the counts.
constexpr std::array<std::string_view, 3> kMeanings{"exact", "counts are lower bounds", "sampled"};

/// "redis redis://h:6379: CLIENT TRACKING, exact; waiters: LLEN of queues; 12 commands"
std::string source_text(const SourcePicture& source) {
  const watch::SourceFacts& facts = source.facts;
  if (!source.sees) {
    return fmt::format("{} {}: BLIND for {}: {}", facts.store, facts.endpoint,
                       results::human_seconds(source.blind_for), source.blind_reason);
  }
  std::string text =
      fmt::format("{} {}: {}, {}; waiters: {}; {} commands", facts.store, facts.endpoint, facts.way,
                  kMeanings[static_cast<std::size_t>(facts.accuracy)],
                  facts.waiters.empty() ? "not seen" : facts.waiters,
                  results::human_count(static_cast<double>(source.commands)));
  if (!facts.progress.empty()) text += "; first look: " + facts.progress;
  if (source.no_locks > 0) {
    text += fmt::format("; {} {} no {}, such as {}",
                        results::human_count(static_cast<double>(source.no_locks)),
                        source.no_locks == 1 ? "key is" : "keys are",
                        source.no_locks == 1 ? "lock" : "locks", source.a_no_lock);
  }
  if (source.missed > 0) {
    text += fmt::format("; {} change{} missed", source.missed, source.missed == 1 ? "" : "s");
  }
  if (source.blind_seconds > 0) {
    text += fmt::format("; was blind for {}", results::human_seconds(source.blind_seconds));
  }
  return text;
}

}  // namespace

std::string summary_of(const Picture& picture) {
  const std::size_t families = picture.families.size();
  FamilyPicture sum;
  for (const FamilyPicture& family : picture.families) {
    sum.held_now += family.held_now;
    if (family.waiting_now) sum.waiting_now = sum.waiting_now.value_or(0) + *family.waiting_now;
    sum.acquisitions_per_second += family.acquisitions_per_second;
    sum.expired_while_held += family.expired_while_held;
    sum.without_ttl_now += family.without_ttl_now;
  }
  const bool blind = std::ranges::any_of(picture.families, &FamilyPicture::blind);
  std::string text = fmt::format(
      "{}{} {}: {} held, {} waiting, {} acquisitions/s, {} expired while held, {} without TTL",
      blind ? "BLIND: last seen: " : "", families, families == 1 ? "family" : "families",
      sum.held_now, sum.waiting_now ? std::to_string(*sum.waiting_now) : "?",
      results::human_number(sum.acquisitions_per_second), sum.expired_while_held,
      sum.without_ttl_now);
  const auto worst = std::ranges::find_if(
      picture.worst, [](const watch::LockPicture& lock) { return !lock.trouble.empty(); });
  if (worst != picture.worst.end()) {
    text += fmt::format("; worst: {} ({})", results::printable(worst->lock), worst->trouble);
  }
  return picture.deployment.empty() ? text : fmt::format("{}: {}", picture.deployment, text);
}

std::vector<std::string> WatchLines::lines(const Picture& picture) {
  std::vector<std::string> lines;
  for (const SourcePicture& source : picture.sources) {
    // A new reason is news too.
    const std::string sight = source.sees ? "" : source.blind_reason;
    const auto [known, fresh] = saw_.try_emplace(source.facts.endpoint, sight);
    if (!fresh && known->second == sight) continue;
    known->second = sight;
    lines.push_back(source_text(source));
    if (!fresh || !tells_unseen_) continue;
    for (const std::string& unseen : source.facts.unseen) lines.push_back("cannot see " + unseen);
  }
  for (const watch::Finding& finding : picture.findings) {
    if (finding.over) continue;
    const auto [known, fresh] =
        said_.try_emplace({finding.kind, finding.store, finding.family, finding.endpoint});
    Said& said = known->second;
    const bool back = picture.at - std::exchange(said.there_at, picture.at) > kForgotten;
    const bool goes_on = finding.times != said.times && picture.at - said.at > kBetweenRepeats;
    if (!fresh && !back && !goes_on) continue;
    said.at = picture.at;
    said.times = finding.times;
    const std::string advice = finding.advice.empty() ? "" : ": " + finding.advice;
    lines.push_back(results::sentence_of(finding) + advice);
  }
  if (sums_up_ && picture.at >= sum_up_at_) {
    sum_up_at_ = picture.at + kBetweenSummaries;
    const std::string before = std::exchange(summary_, summary_of(picture));
    if (summary_ != before) lines.push_back(summary_);
  }
  return lines;
}

}  // namespace lockbench::cli
