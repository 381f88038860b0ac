#include "history/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <span>

namespace lockbench::history {
namespace {

using Kind = Model::Kind;
using Place = std::uint32_t;
using Places = std::span<Place>;

constexpr std::array<std::string_view, 5> kKinds{"mutex", "reentrant", "shared", "semaphore",
                                                 "fenced"};
constexpr std::string_view kSemaphore = "semaphore:";
constexpr std::size_t kMostPermits = 1'000'000;
// With more conflicting holds, only these are shown.
constexpr std::size_t kMostShown = 16;
constexpr Place kNever = std::numeric_limits<Place>::max();

/// The time during which a process certainly held the lock: from the end of the acquisition to the
/// begin of the release. If no two of these times conflict, all operations are explained: each
/// acquisition may take effect at its end, and each release at its begin.
struct Hold {
  std::int64_t begin = 0, end = kOpen;
  Place acquired = kNever, released = kNever;  ///< its operations
  bool shared = false;
};

/// What a process holds of a key in one mode.
struct Held {
  Hold hold{};
  std::int64_t times = 0;
  Place latest = kNever;  ///< its latest operation
};

/// The hold that ends first is on top.
struct EndsLater {
  bool operator()(const Hold& one, const Hold& other) const { return one.end > other.end; }
};

/// Judges one key after the other.
class Judge {
 public:
  Judge(const History& history, const Model& model)
      : operations_(history.operations), model_(model) {}

  tl::expected<Judgement, std::string> judge(std::size_t keys, std::size_t processes) {
    order_.resize(operations_.size());
    std::iota(order_.begin(), order_.end(), Place{0});
    distribute(processes, &Operation::process);
    distribute(keys, &Operation::key);
    for (auto from = order_.begin(); from != order_.end() && error_.empty();) {
      const auto next = std::find_if(from, order_.end(), [&](Place place) {
        return operations_[place].key != operations_[*from].key;
      });
      const std::uint64_t before = judgement_.contradictions;
      judge_key(Places(from, next));
      if (judgement_.contradictions > before) ++judgement_.keys_contradicted;
      from = next;
    }
    if (!error_.empty()) return tl::unexpected(error_);
    return std::move(judgement_);
  }

 private:
  const Operation& at(Place place) const { return operations_[place]; }

  /// Sorts by counting; keeps the order of equal ones.
  void distribute(std::size_t buckets, std::int32_t Operation::*of) {
    std::vector<Place> next(buckets + 1), sorted(order_.size());
    for (const Operation& one : operations_) ++next[static_cast<std::size_t>(one.*of) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const Place place : order_)
      sorted[next[static_cast<std::size_t>(at(place).*of)]++] = place;
    order_ = std::move(sorted);
  }

  void judge_key(Places key) {
    holds_.clear();
    for (auto from = key.begin(); from != key.end();) {
      const auto next = std::find_if(
          from, key.end(), [&](Place place) { return at(place).process != at(*from).process; });
      judge_process(Places(from, next));
      from = next;
    }
    if (!error_.empty()) return;
    if (model_.kind == Kind::fenced) return judge_numbers(key);
    judge_holds();
  }

  void judge_process(Places places) {
    const auto begins_earlier = [&](Place one, Place other) {
      return at(one).begin < at(other).begin;
    };
    if (!std::ranges::is_sorted(places, begins_earlier)) {
      std::ranges::stable_sort(places, begins_earlier);
    }
    std::array<Held, 2> by_mode;
    const Operation* before = nullptr;
    for (const Place place : places) {
      const Operation& one = at(place);
      if (before != nullptr && before->end > one.begin) {
        return refuse(one, fmt::format("its process still carries out the operation of line {}; "
                                       "after an indefinite one, another process must go on",
                                       before->line));
      }
      before = &one;
      if (is_shared(one.f) && model_.kind != Kind::shared && model_.kind != Kind::fenced) {
        return refuse(one, "operations in shared mode need --model shared");
      }
      if (one.outcome == Outcome::fail || model_.kind == Kind::fenced) continue;
      follow(place, by_mode.at(is_shared(one.f) ? 1 : 0));
    }
    for (const Held& held : by_mode) {
      if (held.times > 0) holds_.push_back(held.hold);
    }
  }

  void refuse(const Operation& operation, std::string_view why) {
    if (error_.empty()) error_ = fmt::format("{}: {}", operation.line, why);
  }

  /// An indefinite acquisition counts as without effect, an indefinite release as early as
  /// possible: both are the last operations of their process.
  void follow(Place place, Held& held) {
    const Operation& one = at(place);
    const bool definite = one.outcome == Outcome::ok;
    if (acquires(one.f) && !definite) return;
    if (acquires(one.f) && held.times > 0 && model_.kind != Kind::reentrant) {
      contradict("the process acquires what it holds already", {held.latest, place});
    } else if (acquires(one.f)) {
      if (held.times++ == 0)
        held.hold = {.begin = one.end, .acquired = place, .shared = is_shared(one.f)};
    } else if (held.times == 0) {
      if (definite) contradict("the process releases what it does not hold", {held.latest, place});
    } else if (--held.times == 0) {
      held.hold.end = one.begin;
      held.hold.released = place;
      holds_.push_back(held.hold);
    }
    held.latest = place;
  }

  /// Counts the holds that begin during others that exclude them. One that begins when another one
  /// ends does not overlap with it.
  void judge_holds() {
    std::ranges::sort(holds_, [](const Hold& one, const Hold& other) {
      return std::pair(one.begin, one.end) < std::pair(other.begin, other.end);
    });
    std::vector<Hold> exclusive, sharing;  // under way, as heaps
    std::int64_t full_until = std::numeric_limits<std::int64_t>::min(), shared_until = full_until;
    for (const Hold& hold : holds_) {
      end_before(exclusive, hold.begin);
      end_before(sharing, hold.begin);
      const bool beside_sharers = !hold.shared && !sharing.empty();
      if (exclusive.size() >= model_.permits || beside_sharers) {
        contradict_hold(hold, exclusive.empty() ? sharing : exclusive, model_.permits);
      }
      const Operation& acquired = at(hold.acquired);
      const std::int64_t taken_until =
          hold.shared ? full_until : std::max(full_until, shared_until);
      ++judgement_.granted;
      if (acquired.begin < taken_until) ++judgement_.contended;
      std::vector<Hold>& mine = hold.shared ? sharing : exclusive;
      mine.push_back(hold);
      std::ranges::push_heap(mine, EndsLater());
      if (hold.shared) {
        shared_until = std::max(shared_until, hold.end);
      } else if (exclusive.size() >= model_.permits) {
        full_until = std::max(full_until, exclusive.front().end);
      }
    }
  }

  static void end_before(std::vector<Hold>& holds, std::int64_t time) {
    while (!holds.empty() && holds.front().end <= time) {
      std::ranges::pop_heap(holds, EndsLater());
      holds.pop_back();
    }
  }

  /// `most`: of the other holds are shown.
  void contradict_hold(const Hold& hold, const std::vector<Hold>& others, std::size_t most) {
    std::vector<Place> places{hold.acquired, hold.released};
    for (std::size_t i = 0; i < std::min({others.size(), most, kMostShown}); ++i) {
      places.insert(places.end(), {others[i].acquired, others[i].released});
    }
    contradict(model_.kind == Kind::semaphore
                   ? fmt::format("more than {} processes hold permits at once", model_.permits)
                   : "two processes hold the lock at once",
               std::move(places));
  }

  void judge_numbers(Places key) {
    const std::uint64_t before = judgement_.contradictions;
    constexpr std::string_view kNotHigher = "a later grant's fencing number is not higher";
    std::vector<Place> by_end;
    for (const Place place : key) {
      const Operation& one = at(place);
      if (!acquires(one.f) || one.outcome != Outcome::ok) continue;
      if (one.value < 0 || one.value > kOpen / 4) {
        return refuse(one, "a grant without a fencing number, which --model fenced needs");
      }
      // Also if one begins when the other ends: they are the same process's.
      if (!by_end.empty() && at(by_end.back()).process == one.process &&
          at(by_end.back()).end == one.begin && number(place) < floor_after(by_end.back())) {
        contradict(std::string(kNotHigher), {by_end.back(), place});
      }
      by_end.push_back(place);
    }
    judgement_.granted += by_end.size();
    judgement_.contended += by_end.empty() ? 0 : by_end.size() - 1;
    std::vector<Place> by_begin = by_end, by_number = by_end;
    std::ranges::sort(by_begin, {}, [&](Place place) { return at(place).begin; });
    std::ranges::sort(by_end, {}, [&](Place place) { return at(place).end; });
    Place highest = kNever;  // of the grants that had ended
    auto ended = by_end.begin();
    for (const Place place : by_begin) {
      for (; ended != by_end.end() && at(*ended).end < at(place).begin; ++ended) {
        if (highest == kNever || floor_after(*ended) > floor_after(highest)) highest = *ended;
      }
      if (highest == kNever || number(place) >= floor_after(highest)) continue;
      contradict(std::string(kNotHigher), {highest, place});
    }
    if (judgement_.contradictions > before) return;
    std::ranges::sort(by_number, {}, [&](Place place) { return number(place); });
    for (std::size_t i = 1; i < by_number.size(); ++i) {
      if (number(by_number[i]) >= floor_after(by_number[i - 1])) continue;
      contradict("two grants have the same fencing number", {by_number[i - 1], by_number[i]});
    }
  }

  /// A grant needs a number of at least the floor that earlier ones leave. Only grants in shared
  /// mode may have the same.
  std::int64_t number(Place place) const {
    return 2 * at(place).value + (is_shared(at(place).f) ? 1 : 0);
  }
  std::int64_t floor_after(Place place) const {
    return 2 * at(place).value + (is_shared(at(place).f) ? 1 : 2);
  }

  void contradict(std::string why, std::vector<Place> places) {
    ++judgement_.contradictions;
    std::erase(places, kNever);
    std::ranges::sort(places, {}, [&](Place place) { return at(place).begin; });
    // An operation is known to be wrong when the last one of the others has ended.
    const auto known_at = [&](const std::vector<Place>& known) { return at(known.back()).begin; };
    std::optional<Contradiction>& first = judgement_.first;
    if (first && known_at(first->operations) <= known_at(places)) return;
    first = {std::move(why), std::move(places)};
  }

  const std::vector<Operation>& operations_;
  const Model model_;
  std::vector<Place> order_;  ///< by key, and then by process
  Judgement judgement_;
  std::string error_;
  std::vector<Hold> holds_;  ///< of the current key
};

}  // namespace

tl::expected<Model, std::string> parse_model(const std::string& text) {
  Model model;
  const auto known = std::ranges::find(kKinds, text);
  model.kind = static_cast<Kind>(known - kKinds.begin());
  if (known != kKinds.end() && model.kind != Kind::semaphore) return model;
  model.kind = Kind::semaphore;
  const char* const end = text.data() + text.size();
  const char* const number = text.data() + std::min(kSemaphore.size(), text.size());
  const auto [rest, wrong] = std::from_chars(number, end, model.permits);
  const bool in_range = model.permits >= 1 && model.permits <= kMostPermits;
  if (text.starts_with(kSemaphore) && wrong == std::errc() && rest == end && in_range) return model;
  return tl::unexpected(
      fmt::format("\"{}\" is not a model; allowed: mutex, reentrant, shared, semaphore:N (N from 1 "
                  "to {}), fenced",
                  text, kMostPermits));
}

std::string to_string(const Model& model) {
  if (model.kind == Kind::semaphore) return fmt::format("{}{}", kSemaphore, model.permits);
  return std::string(kKinds.at(static_cast<std::size_t>(model.kind)));
}

tl::expected<Judgement, std::string> judge(const History& history, const Model& model) {
  return Judge(history, model).judge(history.keys.size(), history.processes.size());
}

}  // namespace lockbench::history
