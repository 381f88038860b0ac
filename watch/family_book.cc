#include "watch/family_book.h"

#include <algorithm>
#include <array>

namespace lockbench::watch {
void FamilyBook::take(const Happenings& happenings, const LockRecord& record, std::uint64_t held,
                      std::uint64_t waiting) {
  using Kind = Moment::Kind;
  add(figures_, happenings);
  for (const Happening& event : happenings.list) {
    if (event.lasted) figures_.hold.record(*event.lasted);
    if (event.margin) {
      figures_.smallest_margin =
          std::min(figures_.smallest_margin.value_or(*event.margin), *event.margin);
    }
    if (event.kind == Kind::expired && event.was_renewed) ++figures_.expired_after_renewal;
    if (event.kind != Kind::granted) continue;
    owners_.add(event.owner);
    if (!event.counted) continue;
    acquired_.add(event.at);
    frequent_.add(event.owner);
    if (event.waited) figures_.wait.record(*event.waited);
  }
  if (happenings.unseen_holdings > 0) acquired_.add(record.at, happenings.unseen_holdings);
  coalesced_ = coalesced_ || happenings.coalesced;
  if (const auto changes = happenings.changes_of_holding) {
    changes_per_holding_ =
        changes_per_holding_ == 0 ? *changes : std::min(changes_per_holding_, *changes);
  }
  figures_.held_now += record.holders.size() - held;
  if (record.waiting == waiting) return;
  figures_.waiting_now += record.waiting - waiting;
  figures_.most_waiting = std::max(figures_.most_waiting, figures_.waiting_now);
  queue_.set(record.at, figures_.waiting_now);
}

void FamilyBook::lock_added(std::uint64_t key, bool forgets) {
  locks_.add(key);
  forgot_ = forgot_ || forgets;
  if (!forgot_) ++added_;
}

FamilyPicture FamilyBook::picture(TimePoint now, Accuracy of_source, bool missed) {
  constexpr std::int64_t kPart = 10;
  FamilyPicture picture{.store = store_, .family = family_, .figures = figures_};
  picture.locks = forgot_ ? std::max(added_, locks_.count()) : added_;
  Figures& figures = picture.figures;
  figures.owners = owners_.count();
  if (figures.acquisitions > 0) {
    figures.largest_share =
        static_cast<double>(frequent_.most()) / static_cast<double>(figures.acquisitions);
  }
  figures.acquisitions_per_second = acquired_.rate(now, began_);
  // Where whole holdings were seen and nothing ever came together, each change was seen.
  const bool all_seen = of_source == Accuracy::at_least && !coalesced_ && figures_.hold.count() > 0;
  figures.accuracy = all_seen ? Accuracy::exact : of_source;
  if (missed) figures.accuracy = std::max(of_source, Accuracy::at_least);
  if (queue_.known_for(now, 3 * kPart)) {
    picture.queue = {.oldest = queue_.lowest(now, 3 * kPart, 2 * kPart),
                     .middle = queue_.lowest(now, 2 * kPart, kPart),
                     .latest = queue_.lowest(now, kPart, 0),
                     .known = true};
  }
  return picture;
}

void add(Counts& counts, const Happenings& happenings) {
  // In the order of Moment::Kind; null: not counted, or below.
  static constexpr std::array<std::uint64_t Counts::*, 8> kCounted{nullptr,
                                                                   &Counts::renewals,
                                                                   &Counts::releases,
                                                                   &Counts::expired_while_held,
                                                                   &Counts::undecided,
                                                                   &Counts::session_lost,
                                                                   &Counts::owner_changed,
                                                                   nullptr};
  static_assert(kCounted.size() == static_cast<std::size_t>(Moment::Kind::queue_changed) + 1);
  counts.acquisitions += happenings.unseen_holdings;
  counts.releases += happenings.unseen_holdings;
  for (const Happening& event : happenings.list) {
    counts.without_ttl += event.leaked ? 1 : 0;
    counts.thin_margins += event.thin ? 1 : 0;
    if (const auto count = kCounted[static_cast<std::size_t>(event.kind)]) ++(counts.*count);
    if (event.kind != Moment::Kind::granted) continue;
    counts.acquisitions += event.counted ? 1 : 0;
    counts.taken_over += event.took_over ? 1 : 0;
  }
}

}  // namespace lockbench::watch
