// How a round of votes is gone through; what becomes of the votes stands in redlock_lock.cc.

#include <algorithm>

#include "strategies/redis/client/quorum.h"
#include "strategies/redis/redlock_lock.h"

namespace lockbench::redis {

RedlockLock::Votes RedlockLock::ask_nodes(const QuestionPtr& question, const Patience& patience) {
  Votes votes;
  choose_nodes(patience.per_node);
  if (asking_ == Asking::one_by_one) {
    ask_one_by_one(question, patience, votes);
  } else {
    ask_all_at_once(question, patience, votes);
  }
  for (QuorumNode& node : nodes_) node.stop_waiting();
  return votes;
}

void RedlockLock::choose_nodes(Duration per_node) {
  chosen_.assign(nodes_.size(), false);
  int ready = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    chosen_[node] = nodes_[node].ready(per_node);
    ready += chosen_[node] ? 1 : 0;
  }
  if (is_majority(ready)) return;
  // Without a majority there is nothing to be saved by leaving any alone. All connect side by side.
  const TimePoint until = env_.now() + per_node;
  for (const bool wait : {false, true}) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (chosen_[node]) continue;
      const Duration longest = wait ? std::max(until - env_.now(), Duration::zero()) : Duration();
      chosen_[node] = nodes_[node].revive(longest);
    }
  }
}

void RedlockLock::ask_one_by_one(const QuestionPtr& question, const Patience& patience,
                                 Votes& votes) {
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const TimePoint asked_at = env_.now();
    const bool in_time = asked_at < patience.until && !patience.stop.stop_requested();
    if (!chosen_[node] || !in_time) {
      pass_over(node, question, votes);
      continue;
    }
    nodes_[node].ask(question);
    const TimePoint give_up_at = std::min(asked_at + patience.per_node, patience.until);
    bool heard = false, over = false;
    while (!over && !heard) {
      Watched watched{.descriptor = nodes_[node].descriptor()};
      const Duration left = std::max(give_up_at - env_.now(), Duration::zero());
      wait_for_any({&watched, 1}, left, patience.stop);
      heard = hear(node, votes);
      over = left == Duration::zero() || patience.stop.stop_requested();
    }
    if (!heard) miss(node, give_up_at - asked_at, votes);
  }
}

void RedlockLock::ask_all_at_once(const QuestionPtr& question, const Patience& patience,
                                  Votes& votes) {
  awaited_.clear();
  const TimePoint asked_at = env_.now();
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (chosen_[node]) {
      nodes_[node].ask(question);
      awaited_.push_back(node);
    } else {
      pass_over(node, question, votes);
    }
  }
  const auto decided = [&] {
    return is_majority(votes.granted) || is_majority(votes.refused) ||
           is_blocking(votes.refused + votes.failed());
  };
  const TimePoint give_up_at = std::min(asked_at + patience.per_node, patience.until);
  bool over = false;
  while (!over && !awaited_.empty() && !decided()) {
    watched_.clear();
    for (const std::size_t node : awaited_) {
      watched_.push_back({.descriptor = nodes_[node].descriptor()});
    }
    // What is there when the time is up still counts: it was not late, but we were.
    const Duration left = std::max(give_up_at - env_.now(), Duration::zero());
    wait_for_any(watched_, left, patience.stop);
    auto watched = watched_.begin();
    std::erase_if(awaited_,
                  [&](std::size_t node) { return (watched++)->ready && hear(node, votes); });
    over = left == Duration::zero() || patience.stop.stop_requested();
  }
  if (decided()) return;  // what is still to come is read later
  for (const std::size_t node : awaited_) miss(node, give_up_at - asked_at, votes);
}

void RedlockLock::pass_over(std::size_t node, const QuestionPtr& question, Votes& votes) {
  nodes_[node].pass_over(question);
  ++votes.no_effect;
  if (votes.reason.empty()) votes.reason = nodes_[node].failure();
}

bool RedlockLock::hear(std::size_t node, Votes& votes) {
  const auto answer = nodes_[node].answer();
  if (!answer) return false;
  votes.granted += answer->vote == Vote::granted ? 1 : 0;
  votes.refused += answer->vote == Vote::refused ? 1 : 0;
  if (answer->vote != Vote::failed) return true;
  ++(answer->perhaps ? votes.unanswered : votes.no_effect);
  if (votes.reason.empty()) votes.reason = nodes_[node].failure();
  return true;
}

void RedlockLock::miss(std::size_t node, Duration waited, Votes& votes) {
  nodes_[node].miss(waited);
  ++votes.unanswered;
  if (votes.reason.empty()) votes.reason = nodes_[node].failure();
}

bool RedlockLock::is_majority(int votes) const { return votes >= majority_of(nodes()); }

bool RedlockLock::is_blocking(int votes) const { return votes > nodes() - majority_of(nodes()); }

}  // namespace lockbench::redis
