#include "cli/console/watch_text.h"

#include <fmt/format.h>

#include <array>

#include "results/tables/observed.h"
#include "results/tables/units.h"
#include "watch/record.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using watch::FamilyPicture;
using watch::Picture;
using watch::SourcePicture;

constexpr Duration kBetweenSummaries = 10s;
/// A finding that was away for so long is told again.
constexpr Duration kForgotten = 60s;

/// What each Accuracy means for the counts.
constexpr std::array<std::string_view, 3> kMeanings{"exact", "counts are lower bounds", "sampled"};

std::string summary(const Picture& picture) {
  watch::Figures sum;
  for (const FamilyPicture& family : picture.families) {
    const watch::Figures& figures = family.figures;
    sum.held_now += figures.held_now;
    sum.waiting_now += figures.waiting_now;
    sum.waits_known = sum.waits_known || figures.waits_known;
    sum.acquisitions_per_second += figures.acquisitions_per_second;
    sum.expired_while_held += figures.expired_while_held;
    sum.without_ttl_now += figures.without_ttl_now;
  }
  return fmt::format(
      "{} families: {} held, {} waiting, {} acquisitions/s, {} expired while held, {} without TTL",
      picture.families.size(), sum.held_now,
      sum.waits_known ? std::to_string(sum.waiting_now) : "?",
      results::human_number(sum.acquisitions_per_second), sum.expired_while_held,
      sum.without_ttl_now);
}

}  // namespace

std::string source_text(const SourcePicture& source) {
  const watch::SourceFacts& facts = source.facts;
  if (!source.sees) {
    return fmt::format("{} {}: BLIND: {}", facts.store, facts.endpoint, source.blind_reason);
  }
  std::string text =
      fmt::format("{} {}: {}, {}; waiters: {}; {} commands", facts.store, facts.endpoint, facts.way,
                  kMeanings[static_cast<std::size_t>(facts.accuracy)],
                  facts.waiters.empty() ? "not seen" : facts.waiters,
                  results::human_count(static_cast<double>(source.commands)));
  if (source.missed > 0) text += fmt::format("; {} changes missed", source.missed);
  if (source.blind_seconds > 0) {
    text += fmt::format("; was blind for {}", results::human_seconds(source.blind_seconds));
  }
  return text;
}

std::vector<std::string> WatchLines::lines(const Picture& picture) {
  std::vector<std::string> lines;
  for (const SourcePicture& source : picture.sources) {
    const auto [known, fresh] = saw_.try_emplace(source.facts.endpoint, source.sees);
    if (!fresh && known->second == source.sees) continue;
    known->second = source.sees;
    lines.push_back(source_text(source));
    if (!fresh) continue;
    for (const std::string& unseen : source.facts.unseen) lines.push_back("cannot see " + unseen);
  }
  for (const watch::Finding& finding : picture.findings) {
    const auto [known, fresh] = said_.try_emplace(
        {finding.kind, finding.store, finding.family, finding.endpoint}, picture.at);
    const bool again = picture.at - known->second > kForgotten;
    known->second = picture.at;
    if (!fresh && !again) continue;
    const std::string advice = finding.advice.empty() ? "" : ": " + finding.advice;
    lines.push_back(results::sentence_of(watch::finding_of(finding)) + advice);
  }
  if (!summed_up_) summed_up_ = picture.at;
  if (picture.at - *summed_up_ >= kBetweenSummaries) {
    summed_up_ = picture.at;
    lines.push_back(summary(picture));
  }
  return lines;
}

}  // namespace lockbench::cli
