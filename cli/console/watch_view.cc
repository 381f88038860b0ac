#include "cli/console/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "cli/console/watch_text.h"
#include "results/tables/text.h"
#include "results/tables/units.h"
#include "watch/findings.h"
#include "watch/record.h"

namespace lockbench::cli {
namespace {

using results::Tone;
using watch::FamilyPicture;
using watch::LockPicture;
using watch::Picture;

constexpr std::size_t kLeastName = 16, kMostHash = 8;

/// With what was cut off in the middle: names of locks mostly differ at their ends.
std::string shortened(std::string_view name, std::size_t width, bool ascii) {
  std::string shown = results::printable(name);
  if (ascii) shown = results::ascii(shown);
  const std::size_t columns = results::display_width(shown);
  if (columns <= width || width < 3) return shown;
  const std::size_t head = width / 3, cut = columns - width + 1;
  std::string kept;
  std::size_t column = 0;
  for (const char byte : shown) {
    const bool begins = (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
    if (begins) ++column;
    const bool inside = column > head && column <= head + cut;
    if (!inside) kept += byte;
    if (inside && begins && column == head + 1) kept += ascii ? "~" : "…";
  }
  return kept;
}

/// A column of figures to the right of a name; the first ones stay longest on a narrow screen.
template <class Row>
struct ViewColumn {
  std::string_view title;
  std::size_t width;
  std::function<std::string(const Row&)> text;
};

/// Exactly so wide.
std::string fitted(std::string_view text, std::size_t width, bool ascii, bool right) {
  std::string shown = results::printable(text);
  if (ascii) shown = results::ascii(shown);
  if (results::display_width(shown) > width) {
    shown = ascii ? shown.substr(0, width) : results::clip(shown, width);
  }
  const std::size_t missing = width - results::display_width(shown);
  return right ? std::string(missing, ' ') + shown : shown + std::string(missing, ' ');
}

/// Rows of names and figures, as many columns as there is room for.
template <class Row>
class ViewTable {
 public:
  ViewTable(const std::vector<ViewColumn<Row>>& columns, std::size_t longest_name,
            std::size_t width, bool ascii)
      : ascii_(ascii) {
    std::size_t left = width > kLeastName ? width - kLeastName : 0;
    for (const ViewColumn<Row>& column : columns) {
      if (column.width + 1 > left) break;
      left -= column.width + 1;
      columns_.push_back(&column);
    }
    name_width_ = std::min(
        width, kLeastName + std::min(left, std::max(longest_name, kLeastName) - kLeastName));
  }

  std::string head(std::string_view name) const {
    std::string text = fitted(name, name_width_, ascii_, false);
    for (const auto* column : columns_) {
      text += ' ' + fitted(column->title, column->width, ascii_, true);
    }
    return text;
  }
  std::string row(std::string_view name, const Row& row) const {
    std::string text = fitted(shortened(name, name_width_, ascii_), name_width_, ascii_, false);
    for (const auto* column : columns_) {
      text += ' ' + fitted(column->text(row), column->width, ascii_, true);
    }
    return text;
  }

 private:
  const bool ascii_;
  std::size_t name_width_ = 0;
  std::vector<const ViewColumn<Row>*> columns_;
};

std::string quantile_text(const loadgen::HistogramSnapshot& histogram, double q) {
  if (histogram.count() == 0) return "–";
  return results::human_seconds(seconds(histogram.percentile(q)));
}

std::string waiting_text(const watch::Figures& figures) {
  return figures.waits_known ? std::to_string(figures.waiting_now) : "?";
}

const std::vector<ViewColumn<FamilyPicture>>& family_columns() {
  static const std::vector<ViewColumn<FamilyPicture>> columns = {
      {"held", 6, [](const auto& f) { return std::to_string(f.figures.held_now); }},
      {"waiting", 7, [](const auto& f) { return waiting_text(f.figures); }},
      {"acq/s", 7,
       [](const auto& f) { return results::human_number(f.figures.acquisitions_per_second); }},
      {"expired", 8,
       [](const auto& f) { return count_text(f.figures.expired_while_held, f.figures.accuracy); }},
      {"no TTL", 6, [](const auto& f) { return std::to_string(f.figures.without_ttl_now); }},
      {"hold p50", 8, [](const auto& f) { return quantile_text(f.figures.hold, 0.5); }},
      {"hold p99", 8, [](const auto& f) { return quantile_text(f.figures.hold, 0.99); }},
      {"oldest", 8, [](const auto& f) { return duration_text(f.figures.oldest_hold); }},
      {"wait p99", 8, [](const auto& f) { return quantile_text(f.figures.wait, 0.99); }},
      {"margin", 8, [](const auto& f) { return duration_text(f.figures.smallest_margin); }},
      {"taken over", 10,
       [](const auto& f) { return count_text(f.figures.taken_over, f.figures.accuracy); }},
      {"acquired", 9,
       [](const auto& f) { return count_text(f.figures.acquisitions, f.figures.accuracy); }},
      {"locks", 7,
       [](const auto& f) { return results::human_count(static_cast<double>(f.locks)); }},
  };
  return columns;
}

std::string ttl_text(const LockPicture& lock) {
  if (!lock.holder) return "–";
  return lock.figures.without_ttl_now > 0 ? "none" : duration_text(lock.ttl_left);
}

std::string short_hash(const std::string& hash) { return hash.substr(0, kMostHash); }

const std::vector<ViewColumn<LockPicture>>& lock_columns() {
  static const std::vector<ViewColumn<LockPicture>> columns = {
      {"trouble", 15, [](const auto& lock) { return std::string(trouble_of(lock)); }},
      {"held for", 8, [](const auto& lock) { return duration_text(lock.figures.oldest_hold); }},
      {"TTL left", 8, ttl_text},
      {"waiting", 7, [](const auto& lock) { return waiting_text(lock.figures); }},
      {"holder", kMostHash,
       [](const auto& lock) { return lock.holder ? short_hash(*lock.holder) : "free"; }},
      {"acquired", 9,
       [](const auto& lock) {
         return count_text(lock.figures.acquisitions, lock.figures.accuracy);
       }},
      {"expired", 8,
       [](const auto& lock) {
         return count_text(lock.figures.expired_while_held, lock.figures.accuracy);
       }},
      {"margin", 8, [](const auto& lock) { return duration_text(lock.figures.smallest_margin); }},
  };
  return columns;
}

Tone tone_of(const watch::Figures& figures) {
  if (figures.renewal_stopped_now + figures.taken_over + figures.owner_changed > 0) {
    return Tone::bad;
  }
  const bool doubtful =
      figures.held_long_now + figures.without_ttl_now + figures.expired_while_held > 0;
  return doubtful ? Tone::doubtful : Tone::plain;
}

Tone tone_of(watch::Finding::Kind kind) {
  using Kind = watch::Finding::Kind;
  constexpr std::array kGrave = {Kind::taken_over, Kind::stolen, Kind::renewal_stopped,
                                 Kind::blind};
  return std::find(kGrave.begin(), kGrave.end(), kind) != kGrave.end() ? Tone::bad : Tone::doubtful;
}

/// An order of families and locks.
struct RowOrder {
  std::string_view name;
  double (*figure)(const watch::Figures&);  ///< the highest first; null: as the picture has them
};

constexpr auto kOrders = std::to_array<RowOrder>({
    {"what hurts most", nullptr},
    {"held for longest",
     [](const watch::Figures& its) { return its.oldest_hold ? seconds(*its.oldest_hold) : -1.0; }},
    {"most waiting",
     [](const watch::Figures& its) { return static_cast<double>(its.waiting_now); }},
    {"most acquired",
     [](const watch::Figures& its) { return static_cast<double>(its.acquisitions); }},
    {"most expired",
     [](const watch::Figures& its) { return static_cast<double>(its.expired_while_held); }},
});

/// The highest figure first; those that are equal stay as they are.
template <class Row, class Figure>
void sort_by(std::vector<const Row*>& rows, const Figure& figure) {
  std::ranges::stable_sort(rows,
                           [&](const Row* a, const Row* b) { return figure(*a) > figure(*b); });
}

std::size_t longest(std::size_t so_far, std::string_view name) {
  return std::max(so_far, results::display_width(name));
}

}  // namespace

std::vector<Key> read_keys(std::string_view bytes) {
  struct Code {
    std::string_view bytes;
    Key key;
  };
  // The longer ones first: Escape alone begins others.
  static constexpr auto kCodes = std::to_array<Code>({
      {"\x1b[A", Key::up},
      {"\x1bOA", Key::up},
      {"\x1b[B", Key::down},
      {"\x1bOB", Key::down},
      {"\x1b[C", Key::open},
      {"\x1bOC", Key::open},
      {"\x1b[D", Key::back},
      {"\x1bOD", Key::back},
      {"k", Key::up},
      {"j", Key::down},
      {"\r", Key::open},
      {"\n", Key::open},
      {"\x7f", Key::back},
      {"\b", Key::back},
      {"s", Key::order},
      {"q", Key::quit},
  });
  std::vector<Key> keys;
  while (!bytes.empty()) {
    const auto code = std::find_if(kCodes.begin(), kCodes.end(),
                                   [&](const Code& one) { return bytes.starts_with(one.bytes); });
    if (code != kCodes.end()) {
      keys.push_back(code->key);
      bytes.remove_prefix(code->bytes.size());
      continue;
    }
    const bool sequence = bytes.starts_with("\x1b[") || bytes.starts_with("\x1bO");
    if (sequence) {  // of a key that means nothing here: up to its last byte
      const std::size_t end = bytes.find_first_not_of("0123456789;?", 2);
      bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    } else {
      if (bytes.front() == '\x1b') keys.push_back(Key::back);
      bytes.remove_prefix(1);
    }
  }
  return keys;
}

bool WatchView::press(Key key, const Picture& picture) {
  const auto locks = locks_in_order(picture);
  const auto select = [&](std::size_t place) {
    selected_ = Name{locks[place]->endpoint, locks[place]->name};
  };
  const std::size_t place = place_of_selected(locks);
  switch (key) {
    case Key::up:
      if (!locks.empty()) select(place > 0 ? place - 1 : 0);
      break;
    case Key::down:
      if (!locks.empty()) select(std::min(place + 1, locks.size() - 1));
      break;
    case Key::open:
      if (locks.empty()) break;
      select(place);
      opened_ = true;
      break;
    case Key::back:
      opened_ = false;
      break;
    case Key::order:
      order_ = (order_ + 1) % kOrders.size();
      break;
    case Key::quit:
      if (!opened_) return false;
      opened_ = false;
      break;
  }
  return true;
}

std::vector<ScreenLine> WatchView::lines(const Picture& picture, ScreenSize size) const {
  std::vector<ScreenLine> all =
      opened_ && selected_ ? one_lock(picture, size) : overview(picture, size);
  if (all.size() > size.lines) all.resize(size.lines);
  return all;
}

std::vector<const LockPicture*> WatchView::locks_in_order(const Picture& picture) const {
  std::vector<const LockPicture*> locks;
  for (const LockPicture& lock : picture.worst) locks.push_back(&lock);
  if (const auto figure = kOrders[order_].figure) {
    sort_by(locks, [figure](const LockPicture& lock) { return figure(lock.figures); });
  }
  return locks;
}

std::vector<const FamilyPicture*> WatchView::families_in_order(const Picture& picture) const {
  std::vector<const FamilyPicture*> families;
  for (const FamilyPicture& family : picture.families) families.push_back(&family);
  sort_by(families,
          [](const FamilyPicture& family) { return family.figures.acquisitions_per_second; });
  if (const auto figure = kOrders[order_].figure) {
    sort_by(families, [figure](const FamilyPicture& family) { return figure(family.figures); });
    return families;
  }
  // Findings come with the worst first.
  sort_by(families, [&](const FamilyPicture& family) {
    const auto finding = std::ranges::find_if(picture.findings, [&](const watch::Finding& one) {
      return one.store == family.store && one.family == family.family;
    });
    return picture.findings.end() - finding;
  });
  return families;
}

std::size_t WatchView::place_of_selected(const std::vector<const LockPicture*>& locks) const {
  const auto found = std::ranges::find_if(locks, [&](const LockPicture* lock) {
    return selected_ == Name{lock->endpoint, lock->name};
  });
  return found == locks.end() ? 0 : static_cast<std::size_t>(found - locks.begin());
}

ScreenLine WatchView::line(std::string_view text, std::size_t width, Tone tone) const {
  std::string shown = fitted(text, width, ascii_, false);
  shown.erase(shown.find_last_not_of(' ') + 1);
  return {.text = std::move(shown), .tone = tone};
}

void WatchView::add_head(const Picture& picture, std::size_t width,
                         std::vector<ScreenLine>& lines) const {
  constexpr std::size_t kMostSources = 3;
  std::size_t held = 0, families = picture.families.size();
  for (const FamilyPicture& family : picture.families) held += family.figures.held_now;
  std::string title = fmt::format("lockbench watch  {}  {} held in {} {}",
                                  results::human_seconds(seconds(picture.watched)), held, families,
                                  families == 1 ? "family" : "families");
  if (picture.locks_unfollowed > 0) {
    title += fmt::format("  {} locks not followed", picture.locks_unfollowed);
  }
  lines.push_back(line(title, width));
  lines.back().heading = true;
  for (std::size_t i = 0; i < std::min(picture.sources.size(), kMostSources); ++i) {
    const watch::SourcePicture& source = picture.sources[i];
    lines.push_back(line(source_text(source), width, source.sees ? Tone::plain : Tone::bad));
  }
  if (picture.sources.size() > kMostSources) {
    lines.push_back(
        line(fmt::format("and {} more servers", picture.sources.size() - kMostSources), width));
  }
}

void WatchView::add_findings(const Picture& picture, std::size_t width, std::size_t room,
                             std::vector<ScreenLine>& lines) const {
  if (room < 3) return;
  lines.push_back({});
  const std::size_t first = lines.size();
  for (const watch::Finding& finding : picture.findings) {
    lines.push_back(line(finding_text(finding), width, tone_of(finding.kind)));
    if (!finding.advice.empty()) lines.push_back(line("  " + finding.advice, width));
  }
  if (picture.findings.empty()) lines.push_back(line("nothing found", width, Tone::good));
  if (lines.size() - first < room) return;
  lines.resize(first + room - 2);
  const auto shown = static_cast<std::size_t>(
      std::count_if(lines.begin() + static_cast<std::ptrdiff_t>(first), lines.end(),
                    [](const ScreenLine& one) { return one.tone != Tone::plain; }));
  lines.push_back(line(fmt::format("and {} more", picture.findings.size() - shown), width));
}

void WatchView::add_families(const Picture& picture, std::size_t width, std::size_t room,
                             std::vector<ScreenLine>& lines) const {
  if (room < 3) return;
  const auto families = families_in_order(picture);
  const bool one_store = picture.sources.size() < 2;
  const auto name = [&](const FamilyPicture& family) {
    return one_store ? family.family : family.store + " " + family.family;
  };
  std::size_t longest_name = 0;
  for (const FamilyPicture* family : families) {
    longest_name = longest(longest_name, name(*family));
  }
  const ViewTable<FamilyPicture> table(family_columns(), longest_name, width, ascii_);
  lines.push_back({});
  lines.push_back(line(table.head("FAMILY"), width));
  lines.back().heading = true;
  for (std::size_t i = 0; i < std::min(families.size(), room - 2); ++i) {
    const FamilyPicture& family = *families[i];
    lines.push_back(line(table.row(name(family), family), width, tone_of(family.figures)));
  }
  if (!families.empty()) return;
  if (picture.proposals.empty()) {
    lines.push_back(line("no lock was seen yet", width));
    return;
  }
  lines.push_back(line("these keys look like locks: name them with --locks", width));
  for (std::size_t i = 0; i + 4 < room && i < picture.proposals.size(); ++i) {
    lines.push_back(line("  " + picture.proposals[i], width));
  }
}

void WatchView::add_locks(const Picture& picture, std::size_t width, std::size_t room,
                          std::vector<ScreenLine>& lines) const {
  const auto locks = locks_in_order(picture);
  if (room < 3 || locks.empty()) return;
  std::size_t longest_name = 0;
  for (const LockPicture* lock : locks) longest_name = longest(longest_name, lock->name);
  const ViewTable<LockPicture> table(lock_columns(), longest_name, width, ascii_);
  lines.push_back({});
  lines.push_back(line(table.head("LOCK"), width));
  lines.back().heading = true;
  const std::size_t shown = std::min(locks.size(), room - 2), place = place_of_selected(locks);
  const std::size_t first = place < shown ? 0 : place - shown + 1;
  for (std::size_t i = first; i < first + shown; ++i) {
    const LockPicture& lock = *locks[i];
    lines.push_back(line(table.row(lock.name, lock), width, tone_of(lock.figures)));
    lines.back().selected = i == place;
  }
}

std::vector<ScreenLine> WatchView::overview(const Picture& picture, ScreenSize size) const {
  // Some terminals scroll when the last column of the last line is written.
  const std::size_t width = size.columns > 1 ? size.columns - 1 : size.columns;
  std::vector<ScreenLine> lines;
  add_head(picture, width, lines);
  const std::size_t body = size.lines > lines.size() + 1 ? size.lines - lines.size() - 1 : 0;
  const std::size_t head = lines.size();
  const auto left = [&] { return body - std::min(body, lines.size() - head); };
  add_findings(picture, width, std::min<std::size_t>(body / 3, 2 * picture.findings.size() + 3),
               lines);
  const std::size_t for_locks = std::min(left() / 2, picture.worst.size() + 2);
  add_families(picture, width, left() - for_locks, lines);
  add_locks(picture, width, left(), lines);
  lines.resize(size.lines > 0 ? size.lines - 1 : 0);
  lines.push_back(
      line(fmt::format("q quit   s order: {}   arrows choose a lock   enter its history",
                       kOrders[order_].name),
           width));
  lines.back().heading = true;
  return lines;
}

std::vector<ScreenLine> WatchView::one_lock(const Picture& picture, ScreenSize size) const {
  const std::size_t width = size.columns > 1 ? size.columns - 1 : size.columns;
  std::vector<ScreenLine> lines;
  const auto add = [&](const std::string& text, Tone tone = Tone::plain) {
    lines.push_back(line(text, width, tone));
  };
  add(selected_->lock);
  lines.back().heading = true;
  const auto found = std::ranges::find_if(picture.worst, [&](const LockPicture& lock) {
    return selected_ == Name{lock.endpoint, lock.name};
  });
  if (found == picture.worst.end()) {
    add("It is no longer among the locks that hurt most.");
  } else {
    const LockPicture& lock = *found;
    const watch::Figures& figures = lock.figures;
    add(fmt::format("{} {} {}: {}", lock.store, lock.endpoint, lock.family,
                    watch::name_of(lock.shape)));
    add(lock.holder
            ? fmt::format("held by {} for {}; TTL left: {}; waiting: {}", *lock.holder,
                          duration_text(figures.oldest_hold), ttl_text(lock), waiting_text(figures))
            : fmt::format("free; waiting: {}", waiting_text(figures)));
    if (const auto trouble = trouble_of(lock); !trouble.empty()) {
      add(std::string(trouble), tone_of(figures));
    }
    add(
        fmt::format("acquired {}, released {}, renewed {}, expired {}, taken over {}, owner "
                    "changed {}",
                    count_text(figures.acquisitions, figures.accuracy),
                    count_text(figures.releases, figures.accuracy), figures.renewals,
                    figures.expired_while_held, figures.taken_over, figures.owner_changed));
    add(fmt::format("smallest margin {}; renewed each {}; most waiting {}",
                    duration_text(figures.smallest_margin), duration_text(lock.renewal_interval),
                    figures.most_waiting));
    lines.push_back({});
    add(fmt::format("{:>12}  {:<16} {:<{}}  {}", "AGO", "WHAT", "HOLDER", kMostHash, "WAITING"));
    lines.back().heading = true;
    for (auto moment = lock.history.rbegin(); moment != lock.history.rend(); ++moment) {
      const bool bad = moment->kind == watch::Moment::Kind::expired ||
                       moment->kind == watch::Moment::Kind::session_lost ||
                       moment->kind == watch::Moment::Kind::owner_changed;
      add(fmt::format("{:>12}  {:<16} {:<{}}  {}", duration_text(picture.at - moment->at),
                      watch::name_of(moment->kind), short_hash(moment->holder), kMostHash,
                      moment->waiting),
          bad ? Tone::bad : Tone::plain);
    }
    if (lock.history.empty()) add("nothing has happened to it since the watch began");
  }
  lines.resize(size.lines > 0 ? size.lines - 1 : 0);
  lines.push_back(line("q or Esc back   arrows another lock", width));
  lines.back().heading = true;
  return lines;
}

}  // namespace lockbench::cli
