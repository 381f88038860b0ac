#include "watch/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "results/tables/text.h"

namespace lockbench::watch {
namespace {

using results::human_count;
using results::human_seconds;
/// The most harmful kind first. docs/watch.md explains each.
constexpr std::array<std::string_view, 13> kKinds{
    "stolen",      "taken_over", "expired",       "renewal_stopped", "blind",
    "missed",      "no_ttl",     "held_long",     "convoy",          "dead_session",
    "thin_margin", "hog",        "never_released"};

std::string count(std::uint64_t number) { return human_count(static_cast<double>(number)); }
std::string time(Duration duration) { return human_seconds(seconds(duration)); }

/// "1 lock", "3 locks".
std::string counted(std::uint64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", count(number), thing, number == 1 ? "" : "s");
}
std::string counted(std::uint64_t number, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count(number), number == 1 ? one : several);
}

/// How to qualify a count, given the accuracy of its source.
std::string_view bound_of(const FamilyPicture& family) {
  constexpr std::array<std::string_view, 3> kBounds{"", "at least ", "in samples, "};
  return kBounds[static_cast<std::size_t>(family.sight)];
}

/// The findings about one family.
class FamilyFindings {
 public:
  FamilyFindings(const FamilyPicture& family, const Picture& picture)
      : family_(family), picture_(picture) {}

  std::vector<Finding> take() {
    lost();
    held();
    crowded();
    return std::move(found_);
  }

 private:
  void add(std::string kind, std::uint64_t times, std::optional<std::string> lock,
           std::string evidence, std::string advice, bool now = false) {
    found_.push_back({{.kind = std::move(kind),
                       .store = family_.store,
                       .endpoint = family_.endpoint,
                       .family = family_.family,
                       .lock = std::move(lock),
                       .times = times,
                       .evidence = std::move(evidence),
                       .advice = std::move(advice)},
                      now});
    if (!found_.back().lock) {
      const auto latest = family_.latest_lock.find(found_.back().kind);
      if (latest != family_.latest_lock.end()) found_.back().lock = latest->second;
    }
  }

  /// The lock of the family with the highest sum above 0, of those in the picture.
  std::optional<std::string> worst(std::initializer_list<std::uint64_t Figures::*> of_these) const {
    std::optional<std::string> found;
    std::uint64_t highest = 0;
    for (const LockPicture& lock : picture_.worst) {
      if (lock.endpoint != family_.endpoint || lock.family != family_.family) continue;
      std::uint64_t sum = 0;
      for (const auto figure : of_these) sum += lock.figures.*figure;
      if (sum <= highest) continue;
      highest = sum;
      found = lock.lock;
    }
    return found;
  }

  std::string ended_of_all(std::uint64_t number) const {
    return fmt::format("{}{} of {}", bound_of(family_), count(number),
                       counted(family_.ended, "ended holding"));
  }

  void lost() {
    if (family_.owner_changed > 0) {
      add("stolen", family_.owner_changed, worst({&Figures::owner_changed}),
          fmt::format("{} changed owner long before the expiry and without a release: another "
                      "client wrote over the lock",
                      ended_of_all(family_.owner_changed)),
          "look for code that overwrites the lock without comparing the token, or deletes it so: "
          "such a deletion looks like a release, as the store does not show who deletes");
    }
    if (family_.taken_over > 0) {
      add("taken_over", family_.taken_over, worst({&Figures::taken_over}),
          fmt::format("{}{} under another token within a second of the expiry: {}",
                      bound_of(family_), counted(family_.taken_over, "grant"),
                      draws_tokens() ? "two clients may have worked at once, unless the same one "
                                       "came again with a new token"
                                     : "two clients may have worked at once"),
          "check the protected data; use fencing numbers there, and a longer TTL or renewal");
    }
    if (family_.expired_while_held > 0) expired();
    if (family_.session_lost > 0) {
      add("dead_session", family_.session_lost, worst({&Figures::session_lost}),
          fmt::format("{}: the holder's session or connection was lost",
                      ended_of_all(family_.session_lost)),
          "look at the clients' logs at that time: crashes, long pauses, or a session time-out "
          "that is too short for them");
    }
    thin_margin();
  }

  /// Whether nearly each acquisition has a token of its own, so that tokens do not tell clients.
  bool draws_tokens() const { return 2 * family_.owners > family_.acquisitions; }

  void expired() {
    std::string evidence =
        fmt::format("{} ended by expiry and not by a release: the holder died or overran",
                    ended_of_all(family_.expired_while_held));
    if (family_.expired_after_renewal > 0) {
      evidence += fmt::format("; {} had been renewed before, so the holder died or hung",
                              count(family_.expired_after_renewal));
    }
    if (family_.hold.any()) {
      evidence +=
          fmt::format("; holds last {} (p50) to {} (p99)", time(family_.holds.percentile(0.5)),
                      time(family_.holds.percentile(0.99)));
    }
    add("expired", family_.expired_while_held, worst({&Figures::expired_while_held}),
        std::move(evidence),
        "if holders overran, renew the lock or give it a TTL of three times the hold's p99; if "
        "they died, find out why");
  }

  void thin_margin() {
    if (family_.thin_margins + family_.undecided == 0) return;
    std::string evidence;
    if (family_.thin_margins > 0) {
      evidence = fmt::format(
          "{}{} with less than a tenth of the TTL left, the closest {} before the expiry",
          bound_of(family_),
          counted(family_.thin_margins, "release or renewal", "releases or renewals"),
          human_seconds(family_.margin_min.value_or(0)));
    }
    if (family_.undecided > 0) {
      evidence += fmt::format(
          "{}{} within 100 ms of the expiry: released late or expired cannot be told apart",
          evidence.empty() ? "" : "; ",
          counted(family_.undecided, "holding ended", "holdings ended"));
    }
    add("thin_margin", family_.thin_margins + family_.undecided,
        worst({&Figures::thin_margins, &Figures::undecided}), std::move(evidence),
        "give the lock a longer TTL, or renew it earlier");
  }

  void held() {
    if (family_.renewal_stopped_now > 0) {
      add("renewal_stopped", family_.renewal_stopped_now, worst({&Figures::renewal_stopped_now}),
          fmt::format("the renewal of {} is overdue by more than half of the interval",
                      counted(family_.renewal_stopped_now, "lock")),
          "look at the holder now: it hangs, is cut off, or died; the lock expires soon", true);
      found_.back().times = std::max(family_.renewals_stopped, family_.renewal_stopped_now);
    }
    if (family_.held_long_now > 0) {
      add("held_long", std::max(family_.held_long, family_.held_long_now),
          worst({&Figures::held_long_now}),
          fmt::format("{} held for too long, up to {}{}", counted(family_.held_long_now, "lock"),
                      human_seconds(family_.oldest_hold),
                      family_.long_from ? "; long is more than " + time(*family_.long_from) : ""),
          "look at what the holder does; if it hangs, end it rather than delete its lock", true);
    }
    if (family_.without_ttl + family_.without_ttl_now > 0) {
      add("no_ttl", family_.without_ttl + family_.without_ttl_now,
          worst({&Figures::without_ttl, &Figures::without_ttl_now}),
          fmt::format("{} without TTL, {} of them held now: such a lock stays if its holder dies",
                      counted(family_.without_ttl + family_.without_ttl_now, "holding"),
                      count(family_.without_ttl_now)),
          no_ttl_advice(), family_.without_ttl_now > 0);
    }
    if (family_.lapsed > 0) {
      add("never_released", family_.lapsed, std::nullopt,
          fmt::format("{}{} ended by expiry, and none was seen to end otherwise", bound_of(family_),
                      counted(family_.expired_while_held + family_.lapsed, "holding")),
          "if that is by design, as with a schedule, declare the family with --never-released; "
          "else its holders always overrun or die");
    }
  }

  std::string no_ttl_advice() const {
    if (family_.store == "redis") {
      return "set the TTL in the command that takes the lock (SET key token NX PX ms)";
    }
    if (family_.store == "etcd") return "put the key with a lease";
    if (family_.store == "zookeeper") return "make the node ephemeral";
    return "give the lock an end";
  }

  void crowded() {
    constexpr std::uint64_t kFewestWaiting = 3, kFewestAcquisitions = 100, kFewestOwners = 3;
    constexpr double kMostShare = 0.8;
    const Lows::Parts queue = family_.queue.value_or(Lows::Parts());
    if (std::ranges::is_sorted(queue) && queue.back() >= kFewestWaiting + queue.front() &&
        is_no_chance(queue.back() - queue.front())) {
      std::optional<std::string> lock;
      if (!family_.most_waited_for.empty()) lock = family_.most_waited_for;
      add("convoy", std::max(family_.waiting_now.value_or(0), queue.back()), std::move(lock),
          fmt::format("the queue keeps growing: at least {} waited, then {}, {} periods of 10 s "
                      "later at least {}",
                      count(queue.front()), count(queue[queue.size() / 2]), queue.size() - 1,
                      count(queue.back())),
          "more is asked of the lock than it can grant: hold it for less time, or split it into "
          "several locks",
          true);
    }
    // Of all acquisitions: who was not looked at may be anybody.
    const double seen_share = family_.largest_share * family_.owner_share;
    if (family_.most_waiting > 0 && family_.acquisitions >= kFewestAcquisitions &&
        family_.owners >= kFewestOwners && seen_share >= kMostShare) {
      add("hog", 1, std::nullopt,
          fmt::format("one of {} owners has {:.0f} % of {} acquisitions", count(family_.owners),
                      100 * seen_share, count(family_.acquisitions)),
          "if others starve, use a lock that serves in order", true);
    }
  }

  /// Whether a queue grew by more than a stationary one does: after n grants, its length is a
  /// random walk of n arrivals and n departures, with a standard deviation of sqrt(2 n).
  bool is_no_chance(std::uint64_t growth) const {
    constexpr double kDeviations = 3;
    const auto grants = static_cast<double>(family_.acquired_meanwhile);
    return static_cast<double>(growth) > kDeviations * std::sqrt(2 * grants);
  }

  const FamilyPicture& family_;
  const Picture& picture_;
  std::vector<Finding> found_;
};

std::optional<Finding> blindness_of(const SourcePicture& source) {
  std::string evidence;
  if (!source.sees) {
    evidence = fmt::format("{} has not been seen for {} ({})", source.facts.endpoint,
                           human_seconds(source.blind_for), source.blind_reason);
  }
  if (source.blind_seconds > source.blind_for) {
    const std::string reason = source.sees ? source.blind_reason : "";
    evidence += fmt::format("{}{} was not seen for {} in total{}", evidence.empty() ? "" : "; ",
                            source.facts.endpoint, human_seconds(source.blind_seconds),
                            reason.empty() ? "" : fmt::format(" (the last time: {})", reason));
  }
  if (evidence.empty()) return std::nullopt;
  return Finding{{.kind = "blind",
                  .store = source.facts.store,
                  .endpoint = source.facts.endpoint,
                  .times = std::max<std::uint64_t>(1, source.outages),
                  .evidence = std::move(evidence),
                  .advice = "events during that time are missing from the figures"},
                 !source.sees};
}

std::optional<Finding> missed_by(const SourcePicture& source) {
  if (source.missed == 0) return std::nullopt;
  return Finding{
      {.kind = "missed",
       .store = source.facts.store,
       .endpoint = source.facts.endpoint,
       .times = source.missed,
       .evidence = fmt::format(
           "{} of {} not looked at{}", counted(source.missed, "change", "changes"),
           source.facts.endpoint + (source.missed == 1 ? " was" : " were"),
           source.missed_reason.empty() ? "" : fmt::format(" ({})", source.missed_reason)),
       .advice = "raise --budget, or watch fewer keys"}};
}

results::ObservedSource source_of(const SourcePicture& source, const Picture& picture) {
  return {.store = source.facts.store,
          .endpoint = source.facts.endpoint,
          .way = source.facts.way,
          .accuracy = std::string(name_of(source.facts.accuracy)),
          .waiters = source.facts.waiters,
          .unseen = source.facts.unseen,
          .no_locks = source.no_locks,
          .watched_seconds = seconds(picture.watched),
          .blind_seconds = source.blind_seconds,
          .missed = source.missed,
          .commands = source.commands};
}

}  // namespace

std::string_view name_of(Accuracy accuracy) {
  constexpr std::array<std::string_view, 3> kNames{"exact", "at_least", "sampled"};
  return kNames[static_cast<std::size_t>(accuracy)];
}

const ShapeFacts& facts_of(Shape shape) {
  // In the order of Shape.
  static constexpr auto kShapes = std::to_array<ShapeFacts>({{"unknown"},
                                                             {"token", true},
                                                             {"redisson_hash", true},
                                                             {"etcd_queue", true, true, true},
                                                             {"etcd_key", true, true},
                                                             {"sequence_nodes", true, true, true},
                                                             {"ephemeral_node", false, true, true},
                                                             {"advisory"},
                                                             {"table_row", true},
                                                             {"record"},
                                                             {"permits", true, true, true}});
  static_assert(kShapes.size() == static_cast<std::size_t>(Shape::permits) + 1);
  return kShapes[static_cast<std::size_t>(shape)];
}

std::vector<Finding> findings_of(const Picture& picture) {
  std::vector<Finding> findings;
  for (const SourcePicture& source : picture.sources) {
    for (auto& finding : {blindness_of(source), missed_by(source)}) {
      if (finding) findings.push_back(*finding);
    }
  }
  if (picture.locks_unfollowed > 0) {
    findings.push_back({{.kind = "missed",
                         .times = picture.locks_unfollowed,
                         .evidence = fmt::format("{} not followed for want of memory",
                                                 counted(picture.locks_unfollowed, "lock")),
                         .advice = "watch fewer locks, by a narrower pattern"}});
  }
  for (const FamilyPicture& family : picture.families) {
    for (Finding& finding : FamilyFindings(family, picture).take()) {
      findings.push_back(std::move(finding));
    }
  }
  const auto order_of = [](const Finding& finding) {
    return std::pair(std::ranges::find(kKinds, finding.kind), ~finding.times);
  };
  std::ranges::stable_sort(findings, {}, order_of);
  return findings;
}

std::vector<Finding> FindingLog::take(std::vector<Finding> found, TimePoint at, TimePoint began) {
  const double now = std::max(0.0, seconds(at - began));
  for (Finding& finding : found) {
    const auto is_same = [&](const Finding& one) {
      return std::tie(one.kind, one.store, one.endpoint, one.family) ==
             std::tie(finding.kind, finding.store, finding.endpoint, finding.family);
    };
    const auto known = std::ranges::find_if(known_, is_same);
    finding.first_seconds = finding.last_seconds = now;
    if (known == known_.end()) {
      known_.push_back(std::move(finding));
      continue;
    }
    const bool is_seen = finding.now || finding.times != known->times;
    if (!is_seen) finding.last_seconds = known->last_seconds;
    if (!is_seen || !known->over) finding.first_seconds = known->first_seconds;
    *known = std::move(finding);
  }
  for (Finding& finding : known_) {
    finding.over = now - finding.last_seconds > seconds(kOverAfter);
  }
  const auto order_of = [](const Finding& finding) {
    return std::tuple(finding.over, std::ranges::find(kKinds, finding.kind), ~finding.times);
  };
  std::ranges::stable_sort(known_, {}, order_of);
  return known_;
}

void add_to(results::Result& result, const Picture& picture) {
  result.observed.emplace(picture.families.begin(), picture.families.end());
  result.locks.assign(picture.worst.begin(), picture.worst.end());
  result.findings.assign(picture.findings.begin(), picture.findings.end());
  result.proposals = picture.proposals;
  result.sources.clear();
  for (const SourcePicture& source : picture.sources) {
    result.sources.push_back(source_of(source, picture));
  }
}

}  // namespace lockbench::watch
