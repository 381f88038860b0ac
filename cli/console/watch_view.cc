#include "cli/console/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "results/tables/observed.h"
#include "results/tables/show.h"

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

std::string families_in(const Picture& picture) {
  const std::size_t families = picture.families.size();
  return fmt::format("{} {}", families, families == 1 ? "family" : "families");
}

std::string summary_of(const Picture& picture) {
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
      "{}{}: {} held, {} waiting, {} acquisitions/s, {} expired while held, {} without TTL",
      blind ? "BLIND: last seen: " : "", families_in(picture), sum.held_now,
      sum.waiting_now ? std::to_string(*sum.waiting_now) : "?",
      results::human_number(sum.acquisitions_per_second), sum.expired_while_held,
      sum.without_ttl_now);
  const auto worst = std::ranges::find_if(
      picture.worst, [](const watch::LockPicture& lock) { return !lock.trouble.empty(); });
  if (worst != picture.worst.end()) {
    text += fmt::format("; worst: {} ({})", results::printable(worst->lock), worst->trouble);
  }
  return picture.deployment.empty() ? text : fmt::format("{}: {}", picture.deployment, text);
}

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

using Lines = std::vector<std::string>;

std::string line(std::string_view text, const results::TextStyle& style,
                 results::Tone tone = results::Tone::plain) {
  const std::size_t width = style.width.value_or(std::string_view::npos);
  return results::colored(results::styled(results::clip(results::printable(text), width), style),
                          tone, style);
}

/// Cut in the middle, as names of locks mostly differ at their ends.
std::string shortened(const std::string& name, std::size_t width) {
  std::string shown = results::printable(name);
  const std::size_t columns = results::display_width(shown);
  if (columns <= width) return shown;
  const std::size_t head = width / 3, cut = columns - width + 1;
  std::string kept;
  std::size_t column = 0;
  for (const char byte : shown) {
    const bool begins = (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
    if (begins) ++column;
    const bool inside = column > head && column <= head + cut;
    if (!inside) kept += byte;
    if (inside && begins && column == head + 1) kept += "…";
  }
  return kept;
}

/// Adds as much of a block as there is room for, below an empty line.
void add(Lines& lines, Lines block, std::size_t room) {
  constexpr std::size_t kLeast = 4;  // the titles of a table, and a row
  if (block.empty() || room < kLeast) return;
  if (block.size() + 1 > room) {
    const std::size_t more = block.size() - (room - 2);
    block.resize(room - 2);
    block.push_back(fmt::format("and {} more lines", more));
  }
  lines.emplace_back();
  lines.insert(lines.end(), std::make_move_iterator(block.begin()),
               std::make_move_iterator(block.end()));
}

Lines head_of(const watch::Picture& picture, const results::TextStyle& style) {
  constexpr std::size_t kMostSources = 3;
  std::uint64_t held = 0;
  for (const watch::FamilyPicture& family : picture.families) held += family.held_now;
  std::string title =
      fmt::format("lockbench watch  {}{}  {} held in {}  Ctrl-C ends it",
                  picture.deployment.empty() ? "" : picture.deployment + "  ",
                  results::human_seconds(seconds(picture.watched)), held, families_in(picture));
  if (picture.locks_unfollowed > 0) {
    title += fmt::format("  {} locks not followed", picture.locks_unfollowed);
  }
  Lines head{line(title, style)};
  for (const watch::SourcePicture& source : picture.sources) {
    if (head.size() > kMostSources) {
      const std::size_t more = picture.sources.size() - kMostSources;
      head.push_back(line(fmt::format("and {} more servers", more), style));
      break;
    }
    const auto tone = source.sees ? results::Tone::plain : results::Tone::bad;
    head.push_back(line(source_text(source), style, tone));
  }
  return head;
}

Lines lines_of(const results::Block& block, results::TextStyle style) {
  style.remedy = "a wider terminal shows them";
  Lines lines;
  const auto add_rows = [&](const std::string& text, results::Tone tone) {
    std::istringstream rows(text);
    for (std::string row; std::getline(rows, row);) {
      lines.push_back(results::colored(row, tone, style));
    }
  };
  for (const results::Sentence& one : block.lines) {
    add_rows(results::folded(one.text, style), one.tone);
  }
  add_rows(results::to_text({.table = block.table}, style), results::Tone::plain);
  return lines;
}

/// Includes the columns that are useful only while the watch goes on.
results::Table families_of(const results::Result& seen) {
  results::Table table = results::observed_table(seen);
  for (results::Column& column : table.columns) {
    const bool live =
        column.key == "acquisitions_per_second" || column.key == "oldest_hold_seconds";
    if (live) column.show = results::Show::always;
  }
  return results::shown(table);
}

/// Families with findings first, in the order of the findings, then the busiest.
void sort_families(results::Result& seen) {
  const auto first_finding = [&](const results::Observed& family) {
    return std::ranges::find_if(seen.findings, [&](const results::ObservedFinding& one) {
      return one.endpoint == family.endpoint && one.family == family.family;
    });
  };
  std::ranges::stable_sort(*seen.observed, [&](const auto& a, const auto& b) {
    const auto of_a = first_finding(a), of_b = first_finding(b);
    return of_a != of_b ? of_a < of_b : a.acquisitions_per_second > b.acquisitions_per_second;
  });
}

}  // namespace

std::vector<std::string> watch_view(const watch::Picture& picture, std::size_t lines,
                                    const results::TextStyle& style,
                                    const std::vector<std::string>& messages) {
  results::Result seen;
  watch::add_to(seen, picture);
  std::erase_if(seen.findings, [](const results::ObservedFinding& one) { return one.over; });
  sort_families(seen);
  const std::size_t longest_name = std::max<std::size_t>(style.width.value_or(120) / 3, 16);
  for (results::Observed& family : *seen.observed) {
    family.family = shortened(family.family, longest_name);
  }
  for (results::ObservedLock& lock : seen.locks) lock.lock = shortened(lock.lock, longest_name);

  Lines view = head_of(picture, style);
  for (const std::string& message : messages) {
    view.push_back(line(message, style, results::Tone::doubtful));
  }
  const auto left = [&] { return lines - std::min(lines, view.size()); };
  std::vector<results::Block> blocks = results::blocks_of(seen, {});
  results::Block& main = blocks.front();
  if (main.lines.empty()) main.lines.emplace_back(results::Tone::good, "nothing found");
  add(view, lines_of({.lines = std::exchange(main.lines, {})}, style), left() / 3);
  if (!main.table.rows.empty()) main.table = families_of(seen);
  Lines locks;
  if (blocks.size() > 1) locks = lines_of({.table = blocks.back().table}, style);
  const std::size_t for_locks = locks.empty() ? 0 : std::min(left() / 2, locks.size() + 1);
  add(view, lines_of({.table = main.table}, style), left() - for_locks);
  add(view, std::move(locks), left());
  if (view.size() > lines) view.resize(lines);
  return view;
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
    // A server that was not reached at the start has not told it yet.
    const bool news = !source.facts.unseen.empty() && told_unseen_.insert(known->first).second;
    if (!news || !tells_unseen_) continue;
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
  if (picture.at >= sum_up_at_) {
    sum_up_at_ = picture.at + kBetweenSummaries;
    const std::string before = std::exchange(summary_, summary_of(picture));
    if (summary_ != before) lines.push_back(summary_);
  }
  return lines;
}

}  // namespace lockbench::cli
