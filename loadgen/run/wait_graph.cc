#include "loadgen/run/wait_graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace lockbench::loadgen {

void WaitGraph::begin(int client) {
  const std::scoped_lock guard(mutex_);
  at(client).begun = ++begun_;
}

bool WaitGraph::waits(int client, const Wanted& wanted, OnDeadlock on_deadlock) {
  const std::scoped_lock guard(mutex_);
  const Claim mine{.client = client, .mode = wanted.mode};
  std::vector<Claim>& all = claims_[wanted.key];
  const auto comes_first = [&](const Claim& other) {
    return other.excludes(mine) && begun(other.client) < begun(client);
  };
  // Nothing is left behind by the refusal: whoever comes first has a claim on the key.
  const bool dies = on_deadlock == OnDeadlock::wait_die;
  if (dies && std::any_of(all.begin(), all.end(), comes_first)) return false;
  all.push_back(mine);
  at(client).waits_for = wanted.key;
  return true;
}

void WaitGraph::granted(int client) {
  const std::scoped_lock guard(mutex_);
  const int key = std::exchange(at(client).waits_for, kNothing);
  for (Claim& claim : claims_[key]) claim.has = claim.has || claim.client == client;
}

void WaitGraph::gave_up(int client) {
  const std::scoped_lock guard(mutex_);
  drop(client, std::exchange(at(client).waits_for, kNothing));
}

void WaitGraph::released(int client, int key) {
  const std::scoped_lock guard(mutex_);
  drop(client, key);
}

bool WaitGraph::in_cycle(int client) const {
  const std::scoped_lock guard(mutex_);
  std::vector<int> to_visit{client};
  std::unordered_set<int> visited;
  while (!to_visit.empty()) {
    const int waiting = to_visit.back();
    to_visit.pop_back();
    const int key = clients_[static_cast<std::size_t>(waiting)].waits_for;
    const Claim* const wanted = key == kNothing ? nullptr : find(waiting, key);
    if (wanted == nullptr) continue;
    for (const Claim& other : claims(key)) {
      const bool comes_first = other.has || (queues_ && &other < wanted);
      if (!comes_first || !other.excludes(*wanted)) continue;
      if (other.client == client) return true;
      if (visited.insert(other.client).second) to_visit.push_back(other.client);
    }
  }
  return false;
}

const std::vector<WaitGraph::Claim>& WaitGraph::claims(int key) const {
  static const std::vector<Claim> none;
  const auto found = claims_.find(key);
  return found == claims_.end() ? none : found->second;
}

const WaitGraph::Claim* WaitGraph::find(int client, int key) const {
  const std::vector<Claim>& all = claims(key);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Claim& claim) { return claim.client == client; });
  return found == all.end() ? nullptr : &*found;
}

void WaitGraph::drop(int client, int key) {
  const auto found = claims_.find(key);
  if (found == claims_.end()) return;
  std::erase_if(found->second, [&](const Claim& claim) { return claim.client == client; });
  if (found->second.empty()) claims_.erase(found);
}

}  // namespace lockbench::loadgen
