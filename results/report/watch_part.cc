#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "results/report/limits.h"
#include "results/report/parts.h"
#include "results/tables/observed.h"
#include "results/tables/units.h"

namespace lockbench::results::report {
namespace {

constexpr std::size_t kMostTimelines = 6, kMostMoments = 100, kMostLosses = 6, kMostInHeadline = 4;

/// For a page.
std::string remark_of(const ObservedFinding& finding) {
  std::string text = finding.kind + ": ";
  if (!finding.store.empty()) text += finding.store + " ";
  if (!finding.family.empty()) text += finding.family + " ";
  if (finding.lock) text += fmt::format("(worst: {}) ", *finding.lock);
  text += "– " + finding.evidence + ".";
  if (!finding.advice.empty()) text += fmt::format(" What to do: {}.", finding.advice);
  return text;
}

int change_of_holders(const std::string& what) {
  constexpr std::array<std::string_view, 5> kEnds{"released", "expired", "undecided",
                                                  "session_lost", "owner_changed"};
  if (what == "granted") return 1;
  return std::find(kEnds.begin(), kEnds.end(), what) != kEnds.end() ? -1 : 0;
}

bool is_loss(const std::string& what) {
  return what == "expired" || what == "session_lost" || what == "owner_changed";
}

/// The latest moments of a lock: how many held it and waited for it.
LineChart timeline_of(const ObservedLock& lock) {
  std::vector<ObservedLock::Moment> moments = lock.history;
  if (moments.size() > kMostMoments) {
    moments.erase(moments.begin(), moments.end() - static_cast<std::ptrdiff_t>(kMostMoments));
  }
  std::stable_sort(moments.begin(), moments.end(),
                   [](const auto& a, const auto& b) { return a.t < b.t; });
  LineChart chart{.title = fmt::format("Holders and waiters of {}", lock.lock),
                  .note = fmt::format("The latest {} events that were seen.", moments.size()),
                  .x = {"seconds since the watch began"},
                  .y = {"clients"}};
  chart.table = {.caption = chart.title, .titles = {"at", "what", "client", "waiting"}};
  // Those that held it before its first event that is known.
  int held = 0, fewest = 0;
  for (const auto& moment : moments) {
    held += change_of_holders(moment.what);
    fewest = std::min(fewest, held);
  }
  held = -fewest;
  Line holders{.name = "holders"}, waiters{.name = "waiters", .dashed = true};
  for (const auto& moment : moments) {
    const auto step = [&moment](Line& line, double from, double to) {
      line.points.emplace_back(moment.t, from);
      if (to != from) line.points.emplace_back(moment.t, to);
    };
    const int after = held + change_of_holders(moment.what);
    step(holders, held, after);
    const auto waiting = static_cast<double>(moment.waiting);
    step(waiters, waiters.points.empty() ? waiting : waiters.points.back().second, waiting);
    held = after;
    if (is_loss(moment.what) && chart.marks.size() < kMostLosses) {
      chart.marks.push_back({moment.what, "", moment.t, moment.t});
    }
    chart.table.rows.push_back(
        {{fmt::format("{:.3f} s", moment.t)},
         {moment.what, is_loss(moment.what) ? Tone::bad : Tone::plain},
         {moment.holder},
         {moment.waiting, Tone::plain, human_count(static_cast<double>(moment.waiting))}});
  }
  chart.lines = {std::move(holders), std::move(waiters)};
  return chart;
}

void add_timelines(const std::vector<ObservedLock>& locks, Section& section) {
  std::size_t shown = 0;
  for (const ObservedLock& lock : locks) {
    if (lock.history.size() < 2 || shown == kMostTimelines) continue;
    section.blocks.emplace_back(timeline_of(lock));
    ++shown;
  }
}

}  // namespace

void add_watch_headline(const Result& result, Remarks& headline) {
  if (!result.observed) return;
  if (result.observed->empty()) {
    headline.push_back({Tone::doubtful, "The watch saw no lock."});
  } else {
    std::uint64_t acquisitions = 0, locks = 0;
    bool all_seen = true;
    for (const Observed& family : *result.observed) {
      acquisitions += family.acquisitions;
      locks += family.locks;
      all_seen = all_seen && family.accuracy == "exact";
    }
    headline.push_back(
        {Tone::plain,
         fmt::format("Seen: {}{} acquisitions; {} locks in {} {}.", all_seen ? "" : "at least ",
                     human_count(static_cast<double>(acquisitions)),
                     human_count(static_cast<double>(locks)), result.observed->size(),
                     result.observed->size() == 1 ? "family" : "families")});
    if (result.findings.empty()) {
      headline.push_back({Tone::good, "Nothing was found that hurts."});
    }
  }
  for (std::size_t i = 0; i < std::min(kMostInHeadline, result.findings.size()); ++i) {
    headline.push_back({tone_of(result.findings[i]), remark_of(result.findings[i])});
  }
}

void add_watch_sections(const Result& result, Part& part) {
  if (!result.observed) return;
  Section section{.title = "What the watch saw",
                  .intro =
                      "Locks of running applications, seen read-only. Of figures with ≥ or ~ "
                      "not every change was seen. Clients are shown as hashes."};
  // The headline has the first ones.
  Remarks said;
  for (std::size_t i = kMostInHeadline; i < result.findings.size(); ++i) {
    said.push_back({tone_of(result.findings[i]), remark_of(result.findings[i])});
  }
  if (!said.empty()) section.blocks.emplace_back(std::move(said));
  if (!result.observed->empty()) {
    section.blocks.emplace_back(captioned("Families of locks", shown(observed_table(result))));
  }
  if (!result.locks.empty()) {
    section.blocks.emplace_back(
        captioned("The locks that hurt most", shown(lock_table(result.locks))));
  }
  add_timelines(result.locks, section);
  if (!result.sources.empty()) {
    section.blocks.emplace_back(captioned("How it was seen", source_table(result.sources)));
  }
  Remarks unseen;
  for (const ObservedSource& source : result.sources) {
    for (const std::string& what : source.unseen) {
      unseen.push_back({Tone::plain, fmt::format("{} {}, not seen in full: {}", source.store,
                                                 source.endpoint, what)});
    }
  }
  if (!unseen.empty()) section.blocks.emplace_back(std::move(unseen));
  if (!section.blocks.empty()) part.sections.push_back(std::move(section));
}

}  // namespace lockbench::results::report
