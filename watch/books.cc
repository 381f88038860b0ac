#include "watch/books.h"

#include <algorithm>
#include <array>

namespace lockbench::watch {
namespace {

/// A lock that expired may be taken over until then.
constexpr Duration kForgetAfter = std::chrono::seconds(10);
/// Places that one addition looks at.
constexpr std::size_t kMostLooks = 256;

/// Each kind of happening, in the order of its enum: its name, and where it is counted, unless that
/// takes more than its kind.
struct Row {
  std::string_view name;
  std::uint64_t Counts::*count;
};
constexpr auto kHappenings = std::to_array<Row>({{"granted", nullptr},
                                                 {"renewed", &Counts::renewals},
                                                 {"released", &Counts::releases},
                                                 {"expired", &Counts::expired_while_held},
                                                 {"undecided", &Counts::undecided},
                                                 {"session_lost", &Counts::session_lost},
                                                 {"owner_changed", &Counts::owner_changed}});
static_assert(kHappenings.size() == static_cast<std::size_t>(Happening::Kind::owner_changed) + 1);

const Row& row_of(Happening::Kind kind) { return kHappenings[static_cast<std::size_t>(kind)]; }

}  // namespace

std::optional<std::size_t> LockTable::find(std::uint64_t key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? std::nullopt : std::optional<std::size_t>(found->second);
}

std::optional<std::size_t> LockTable::add(std::uint64_t key, TimePoint now) {
  std::optional<std::size_t> place;
  if (records_.size() < most_) {
    place = records_.size();
    records_.emplace_back();
  } else {
    place = forget_one(now);
    if (!place) return std::nullopt;
    records_[*place] = LockRecord();
  }
  records_[*place].key = key;
  places_.emplace(key, static_cast<std::uint32_t>(*place));
  return place;
}

std::optional<std::size_t> LockTable::forget_one(TimePoint now) {
  const std::size_t looks = std::min(kMostLooks, records_.size());
  for (std::size_t i = 0; i < looks; ++i) {
    const std::size_t place = hand_;
    hand_ = (hand_ + 1) % records_.size();
    const LockRecord& record = records_[place];
    if (!record.is_free() || now - record.at < kForgetAfter) continue;
    places_.erase(record.key);
    forgot_any_ = true;
    return place;
  }
  return std::nullopt;
}

Histories::History* Histories::find(std::size_t place) {
  const auto found = std::ranges::find(all_, place, [](const auto& one) { return one.first; });
  return found == all_.end() ? nullptr : &found->second;
}

void Histories::forget(std::size_t place) {
  for (auto& one : all_) {
    if (one.first == place) one = {SIZE_MAX, {}};
  }
}

void add(Histories::History& history, const Happenings& happenings, const LockRecord& record,
         TimePoint began) {
  constexpr std::size_t kLongest = 256;
  const auto add_one = [&](TimePoint at, std::string_view what, std::string holder) {
    if (history.size() == kLongest) history.pop_front();
    history.push_back({.t = std::max(0.0, seconds(at - began)),
                       .what = std::string(what),
                       .holder = std::move(holder),
                       .waiting = record.waiting});
  };
  for (const Happening& event : happenings.list) {
    add_one(event.at, row_of(event.kind).name, shown_hash(event.owner));
  }
  if (happenings.list.empty()) add_one(record.at, "queue_changed", "");
}

FamilyBook::FamilyBook(std::string store, std::string family, TimePoint began) : began_(began) {
  known_.store = std::move(store);
  known_.family = std::move(family);
}

void FamilyBook::take(const Happenings& happenings, const LockRecord& record, std::uint64_t held,
                      std::uint64_t waiting) {
  using Kind = Happening::Kind;
  add(known_, happenings);
  for (const Happening& event : happenings.list) {
    if (event.lasted) known_.holds.record(*event.lasted);
    if (event.margin) {
      const double margin = seconds(*event.margin);
      known_.margin_min = std::min(known_.margin_min.value_or(margin), margin);
    }
    if (event.kind == Kind::expired && event.was_renewed) ++known_.expired_after_renewal;
    if (event.kind != Kind::granted) continue;
    owners_.add(event.owner);
    if (!event.counted) continue;
    acquired_.add(event.at);
    frequent_.add(event.owner);
    if (event.waited) known_.waits.record(*event.waited);
  }
  if (happenings.unseen_holdings > 0) acquired_.add(record.at, happenings.unseen_holdings);
  coalesced_ = coalesced_ || happenings.coalesced;
  if (const auto changes = happenings.changes_of_holding) {
    changes_per_holding_ =
        changes_per_holding_ == 0 ? *changes : std::min(changes_per_holding_, *changes);
  }
  known_.held_now += record.holders.size() - held;
  if (record.waiting == waiting) return;
  known_.waiting_now = known_.waiting_now.value_or(0) + record.waiting - waiting;
  known_.most_waiting = std::max(known_.most_waiting, *known_.waiting_now);
  queue_.set(record.at, *known_.waiting_now);
}

void FamilyBook::waits_known() {
  if (!known_.waiting_now) known_.waiting_now = 0;
}

void FamilyBook::lock_added(std::uint64_t key, bool forgets) {
  locks_.add(key);
  forgot_ = forgot_ || forgets;
  if (!forgot_) ++known_.locks;
}

FamilyPicture FamilyBook::picture(TimePoint now, Accuracy of_source, std::uint64_t missed) {
  FamilyPicture picture = known_;
  if (forgot_) picture.locks = std::max(picture.locks, locks_.count());
  picture.owners = owners_.count();
  if (picture.acquisitions > 0) {
    picture.largest_share =
        static_cast<double>(frequent_.most()) / static_cast<double>(picture.acquisitions);
  }
  picture.acquisitions_per_second = acquired_.rate(now, began_);
  picture.hold = loadgen::to_distribution(picture.holds);
  if (picture.waiting_now) picture.wait = loadgen::to_distribution(picture.waits);
  // Where whole holdings were seen and nothing ever came together, each change was seen.
  const bool all_seen = of_source == Accuracy::at_least && !coalesced_ && picture.holds.count() > 0;
  picture.sight = all_seen ? Accuracy::exact : of_source;
  picture.missed = missed;
  if (missed > 0) picture.sight = std::max(of_source, Accuracy::at_least);
  picture.accuracy = name_of(picture.sight);
  if (const auto parts = queue_.parts(now)) {
    picture.queue = {
        .oldest = (*parts)[0], .middle = (*parts)[1], .latest = (*parts)[2], .known = true};
  }
  return picture;
}

void add(Counts& counts, const Happenings& happenings) {
  counts.acquisitions += happenings.unseen_holdings;
  counts.releases += happenings.unseen_holdings;
  for (const Happening& event : happenings.list) {
    counts.without_ttl += event.leaked ? 1 : 0;
    counts.thin_margins += event.thin ? 1 : 0;
    if (const auto count = row_of(event.kind).count) ++(counts.*count);
    if (event.kind != Happening::Kind::granted) continue;
    counts.acquisitions += event.counted ? 1 : 0;
    counts.taken_over += event.took_over ? 1 : 0;
  }
}

}  // namespace lockbench::watch
