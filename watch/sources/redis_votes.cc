#include "watch/sources/redis_votes.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace lockbench::watch {
namespace {

struct Leader {
  std::string owner;
  std::size_t votes = 0;
};

template <class AllVotes>
Leader leader_of(const AllVotes& votes) {
  Leader leader;
  for (const auto& vote : votes) {
    if (vote.owner.empty()) continue;
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(votes, [&](const auto& other) { return other.owner == vote.owner; }));
    if (count > leader.votes) leader = {vote.owner, count};
  }
  return leader;
}

}  // namespace

bool Votes::is_blind() const {
  const auto lost = static_cast<std::size_t>(std::ranges::count(sight_, Sight::none));
  return nodes_ - lost < majority();
}

bool Votes::may_hold(std::size_t votes) const {
  const auto known = static_cast<std::size_t>(std::ranges::count(sight_, Sight::all));
  return votes + (nodes_ - known) >= majority();
}

std::optional<TimePoint> Votes::end_of(const Lock& lock, const std::string& owner) const {
  // It is lost when the last one that a majority needs ends.
  std::vector<TimePoint> ends;
  for (const Vote& vote : lock.votes) {
    if (vote.owner == owner) ends.push_back(vote.ends.value_or(TimePoint::max()));
  }
  if (ends.size() < majority()) return std::nullopt;
  std::ranges::sort(ends, std::greater<>());
  const TimePoint end = ends[majority() - 1];
  return end == TimePoint::max() ? std::nullopt : std::optional(end);
}

std::optional<Sighting> Votes::seen(std::size_t node, const Sighting& sighting) {
  if (node >= nodes_) return std::nullopt;
  auto found = locks_.find(sighting.lock);
  if (found == locks_.end()) {
    if (sighting.holders.empty() || locks_.size() >= most_) return std::nullopt;
    found =
        locks_.emplace(sighting.lock, Lock{.votes = std::vector<Vote>(nodes_), .holder = {}}).first;
  }
  Lock& lock = found->second;
  Vote& vote = lock.votes[node];
  const bool gave_up = !lock.holder.empty() && vote.owner == lock.holder;
  vote = {};
  if (!sighting.holders.empty()) {
    vote.owner = sighting.holders.front().owner;
    if (sighting.ttl_left) vote.ends = sighting.at + *sighting.ttl_left;
  }
  const Leader leader = leader_of(lock.votes);
  const bool held = leader.votes >= majority() && leader.owner != lock.left;
  const std::string holder = held ? leader.owner : std::string();
  const auto ends = held ? end_of(lock, holder) : std::nullopt;
  if (held || leader.votes == 0) {
    lock.minority_since = TimePoint::max();
  } else if (lock.minority_since == TimePoint::max()) {
    lock.minority_since = sighting.at;
  }
  // The nodes are asked one after the other.
  constexpr Duration kRenewed = std::chrono::milliseconds(20);
  const bool renewed = held && ends && lock.ends && *ends > *lock.ends + kRenewed;
  // A node that is not wholly seen may have the vote that its holder lacks.
  const bool still_held = leader.owner == lock.holder && may_hold(leader.votes);
  const bool changed = holder != lock.holder && !still_held;
  const bool minority_left = lock.minority_told && leader.votes == 0;
  if (!changed && !renewed && !minority_left) {
    if (leader.votes == 0) locks_.erase(found);
    return std::nullopt;
  }
  Sighting told = sighting;
  told.shape = Shape::quorum;
  told.holders.clear();
  // One at most: each node tells of the same one. A minority that leaves was no holding.
  told.changes = minority_left ? 0 : std::min<std::uint64_t>(sighting.changes, 1);
  told.votes = leader.votes;
  told.nodes = nodes_;
  told.ttl_left.reset();
  if (held) {
    told.holders.push_back({.owner = holder});
    if (ends) told.ttl_left = *ends - sighting.at;
    told.no_ttl = !ends;
    told.ended.reset();
  }
  lock.left = gave_up && holder != lock.holder ? lock.holder : std::string();
  lock.holder = holder;
  lock.ends = ends;
  lock.minority_told = false;
  if (leader.votes == 0) locks_.erase(found);
  return told;
}

std::vector<Sighting> Votes::settled(TimePoint now) {
  constexpr Duration kSettles = std::chrono::milliseconds(100);
  std::vector<Sighting> told;
  for (auto& [name, lock] : locks_) {
    if (lock.minority_since == TimePoint::max() || now - lock.minority_since < kSettles) continue;
    lock.minority_since = now;
    lock.left.clear();
    const Leader leader = leader_of(lock.votes);
    if (may_hold(leader.votes)) continue;
    lock.minority_told = true;
    lock.holder.clear();
    Sighting minority;
    minority.lock = name;
    minority.at = now;
    minority.shape = Shape::quorum;
    minority.holders.push_back({.owner = leader.owner});
    minority.votes = leader.votes;
    minority.nodes = nodes_;
    told.push_back(std::move(minority));
  }
  return told;
}

void Votes::blind(std::size_t node) {
  sight_[node] = Sight::none;
  const bool all_is_lost = is_blind();
  for (auto& [name, lock] : locks_) {
    lock.votes[node] = {};
    // Who holds it is not known any more: the next majority is a new beginning, and that none is
    // seen is no release.
    if (all_is_lost) lock.votes = std::exchange(lock, {}).votes;
  }
  std::erase_if(locks_, [](const auto& one) {
    const auto& [name, lock] = one;
    return lock.holder.empty() && leader_of(lock.votes).votes == 0;
  });
}

}  // namespace lockbench::watch
