#include "watch/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "results/tables/units.h"

namespace lockbench::watch {
namespace {

using results::human_count;
using results::human_seconds;
using Kind = Finding::Kind;

struct Named {
  Kind kind;
  std::string_view name;
  int weight;  ///< what hurts more stands first
};
constexpr std::array<Named, 11> kKinds{{{Kind::stolen, "stolen", 100},
                                        {Kind::taken_over, "taken_over", 95},
                                        {Kind::expired, "expired", 85},
                                        {Kind::renewal_stopped, "renewal_stopped", 80},
                                        {Kind::blind, "blind", 75},
                                        {Kind::no_ttl, "no_ttl", 70},
                                        {Kind::held_long, "held_long", 65},
                                        {Kind::convoy, "convoy", 60},
                                        {Kind::dead_session, "dead_session", 55},
                                        {Kind::thin_margin, "thin_margin", 50},
                                        {Kind::hog, "hog", 40}}};

const Named& named(Kind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(),
                       [kind](const Named& one) { return one.kind == kind; });
}

std::string count(std::uint64_t number) { return human_count(static_cast<double>(number)); }
std::string time(Duration duration) { return human_seconds(seconds(duration)); }

/// "1 lock", "3 locks".
std::string counted(std::uint64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", count(number), thing, number == 1 ? "" : "s");
}
std::string counted(std::uint64_t number, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count(number), number == 1 ? one : several);
}

/// How far the count can be trusted.
std::string_view bound_of(const Figures& figures) {
  constexpr std::array<std::string_view, 3> kBounds{"", "at least ", "in samples, "};
  return kBounds[static_cast<std::size_t>(figures.accuracy)];
}

/// The findings about one family.
class FamilyFindings {
 public:
  FamilyFindings(const FamilyPicture& family, const Picture& picture)
      : family_(family), figures_(family.figures), picture_(picture) {}

  std::vector<Finding> take() {
    lost();
    held();
    crowded();
    return std::move(found_);
  }

 private:
  void add(Kind kind, std::uint64_t times, std::optional<std::string> lock, std::string evidence,
           std::string advice) {
    found_.push_back({.kind = kind,
                      .store = family_.store,
                      .family = family_.family,
                      .lock = std::move(lock),
                      .times = times,
                      .evidence = std::move(evidence),
                      .advice = std::move(advice)});
  }

  /// The lock of the family with the highest figure above 0, of those in the picture.
  std::optional<std::string> worst(const std::function<double(const LockPicture&)>& figure) const {
    const LockPicture* found = nullptr;
    double highest = 0;
    for (const LockPicture& lock : picture_.worst) {
      if (lock.store != family_.store || lock.family != family_.family) continue;
      if (figure(lock) <= highest) continue;
      highest = figure(lock);
      found = &lock;
    }
    return found == nullptr ? std::nullopt : std::optional(found->name);
  }
  std::optional<std::string> worst(std::uint64_t Figures::*figure) const {
    return worst(
        [figure](const LockPicture& lock) { return static_cast<double>(lock.figures.*figure); });
  }

  std::string ended_of_all(std::uint64_t number) const {
    const std::uint64_t ended = figures_.releases + figures_.expired_while_held +
                                figures_.undecided + figures_.session_lost + figures_.owner_changed;
    return fmt::format("{}{} of {}", bound_of(figures_), count(number),
                       counted(ended, "ended holding"));
  }

  void lost() {
    if (figures_.owner_changed > 0) {
      add(Kind::stolen, figures_.owner_changed, worst(&Figures::owner_changed),
          fmt::format("{} changed owner long before the expiry and without a release",
                      ended_of_all(figures_.owner_changed)),
          "look for code that deletes or overwrites the lock without comparing the token; a "
          "release must delete only its own token, in one script");
    }
    if (figures_.taken_over > 0) {
      add(Kind::taken_over, figures_.taken_over, worst(&Figures::taken_over),
          fmt::format("{}{} by another client right after the lock had expired: two clients may "
                      "have worked at once",
                      bound_of(figures_), counted(figures_.taken_over, "grant")),
          "check the protected data; use fencing numbers there, and a longer TTL or renewal");
    }
    if (figures_.expired_while_held > 0) expired();
    if (figures_.session_lost > 0) {
      add(Kind::dead_session, figures_.session_lost, worst(&Figures::session_lost),
          fmt::format("{}: the holder's session or connection was lost",
                      ended_of_all(figures_.session_lost)),
          "look at the clients' logs at that time: crashes, long pauses, or a session time-out "
          "that is too short for them");
    }
    thin_margin();
  }

  void expired() {
    std::string evidence =
        fmt::format("{} ended by expiry and not by a release: the holder died or overran",
                    ended_of_all(figures_.expired_while_held));
    if (figures_.expired_after_renewal > 0) {
      evidence += fmt::format("; {} had been renewed before, so the holder died or hung",
                              count(figures_.expired_after_renewal));
    }
    if (figures_.hold.count() > 0) {
      evidence +=
          fmt::format("; holds last {} (p50) to {} (p99)", time(figures_.hold.percentile(0.5)),
                      time(figures_.hold.percentile(0.99)));
    }
    add(Kind::expired, figures_.expired_while_held, worst(&Figures::expired_while_held),
        std::move(evidence),
        "if holders overran, renew the lock or give it a TTL of three times the hold's p99; if "
        "they died, find out why");
  }

  void thin_margin() {
    if (figures_.thin_margins + figures_.undecided == 0) return;
    std::string evidence;
    if (figures_.thin_margins > 0) {
      evidence = fmt::format(
          "{}{} with less than a tenth of the TTL left, the closest {} before the expiry",
          bound_of(figures_),
          counted(figures_.thin_margins, "release or renewal", "releases or renewals"),
          time(figures_.smallest_margin.value_or(Duration::zero())));
    }
    if (figures_.undecided > 0) {
      evidence += fmt::format(
          "{}{} within 100 ms of the expiry: released late or expired cannot be told apart",
          evidence.empty() ? "" : "; ",
          counted(figures_.undecided, "holding ended", "holdings ended"));
    }
    add(Kind::thin_margin, figures_.thin_margins + figures_.undecided,
        worst([](const LockPicture& lock) {
          return static_cast<double>(lock.figures.thin_margins + lock.figures.undecided);
        }),
        std::move(evidence), "give the lock a longer TTL, or renew it earlier");
  }

  void held() {
    if (figures_.renewal_stopped_now > 0) {
      add(Kind::renewal_stopped, figures_.renewal_stopped_now, worst(&Figures::renewal_stopped_now),
          fmt::format("the renewal of {} is overdue by more than half of the interval",
                      counted(figures_.renewal_stopped_now, "lock")),
          "look at the holder now: it hangs, is cut off, or died; the lock expires soon");
    }
    if (figures_.held_long_now > 0) {
      add(Kind::held_long, figures_.held_long_now, worst([](const LockPicture& lock) {
            const Figures& its = lock.figures;
            return its.held_long_now > 0 && its.oldest_hold ? seconds(*its.oldest_hold) : 0.0;
          }),
          fmt::format("{} held for too long now, up to {}", counted(figures_.held_long_now, "lock"),
                      time(figures_.oldest_hold.value_or(Duration::zero()))),
          "look at what the holder does; if it hangs, end it rather than delete its lock");
    }
    if (figures_.without_ttl + figures_.without_ttl_now > 0) {
      add(Kind::no_ttl, figures_.without_ttl + figures_.without_ttl_now,
          worst([](const LockPicture& lock) {
            return static_cast<double>(lock.figures.without_ttl + lock.figures.without_ttl_now);
          }),
          fmt::format("{} without TTL, {} of them held now: such a lock stays if its holder dies",
                      counted(figures_.without_ttl + figures_.without_ttl_now, "holding"),
                      count(figures_.without_ttl_now)),
          "set the TTL in the command that takes the lock (SET key token NX PX ms)");
    }
  }

  void crowded() {
    constexpr std::uint64_t kFewestWaiting = 3, kFewestAcquisitions = 100, kFewestOwners = 3;
    constexpr double kMostShare = 0.8;
    const Queue& queue = family_.queue;
    if (queue.only_grows() && queue.latest >= kFewestWaiting) {
      std::optional<std::string> lock;
      if (!family_.most_waited_for.empty()) lock = family_.most_waited_for;
      add(Kind::convoy, std::max(figures_.waiting_now, queue.latest), std::move(lock),
          fmt::format("the queue only grows: at least {}, then {}, then {} waited in the last "
                      "three times 10 s",
                      count(queue.oldest), count(queue.middle), count(queue.latest)),
          "more is asked of the lock than it can grant: hold it for less time, or split it into "
          "several locks");
    }
    if (figures_.most_waiting > 0 && figures_.acquisitions >= kFewestAcquisitions &&
        figures_.owners >= kFewestOwners && figures_.largest_share >= kMostShare) {
      add(Kind::hog, 1, std::nullopt,
          fmt::format("one of {} owners has {:.0f} % of {} acquisitions", count(figures_.owners),
                      100 * figures_.largest_share, count(figures_.acquisitions)),
          "if others starve, use a lock that serves in order");
    }
  }

  const FamilyPicture& family_;
  const Figures& figures_;
  const Picture& picture_;
  std::vector<Finding> found_;
};

std::optional<Finding> blindness_of(const SourcePicture& source) {
  std::string evidence;
  if (!source.sees) {
    evidence = fmt::format("{} is not seen now ({})", source.facts.endpoint, source.blind_reason);
  }
  const auto add = [&](const std::string& text) {
    evidence += fmt::format("{}{}", evidence.empty() ? "" : "; ", text);
  };
  if (source.blind_seconds > 0) {
    add(fmt::format("{} was not seen for {} in total{}", source.facts.endpoint,
                    human_seconds(source.blind_seconds),
                    source.sees && !source.blind_reason.empty()
                        ? fmt::format(" ({})", source.blind_reason)
                        : ""));
  }
  if (source.missed > 0) {
    add(fmt::format(
        "{} not looked at{}", counted(source.missed, "change was", "changes were"),
        source.missed_reason.empty() ? "" : fmt::format(" ({})", source.missed_reason)));
  }
  if (evidence.empty()) return std::nullopt;
  return Finding{.kind = Kind::blind,
                 .store = source.facts.store,
                 .family = {},
                 .lock = std::nullopt,
                 .times = std::max<std::uint64_t>(1, source.missed),
                 .evidence = std::move(evidence),
                 .advice = source.missed > 0 ? "raise the budget, or watch fewer keys"
                                             : "figures lack what happened meanwhile",
                 .endpoint = source.facts.endpoint};
}

}  // namespace

std::string_view name_of(Finding::Kind kind) { return named(kind).name; }

std::vector<Finding> findings_of(const Picture& picture) {
  std::vector<Finding> findings;
  for (const SourcePicture& source : picture.sources) {
    if (auto blind = blindness_of(source)) findings.push_back(*std::move(blind));
  }
  if (picture.locks_unfollowed > 0) {
    findings.push_back({.kind = Kind::blind,
                        .store = {},
                        .family = {},
                        .lock = std::nullopt,
                        .times = picture.locks_unfollowed,
                        .evidence = fmt::format("{} beyond the bound of memory: not followed",
                                                counted(picture.locks_unfollowed, "lock")),
                        .advice = "watch fewer locks, by a narrower pattern"});
  }
  for (const FamilyPicture& family : picture.families) {
    for (Finding& finding : FamilyFindings(family, picture).take()) {
      findings.push_back(std::move(finding));
    }
  }
  const auto hurts = [](const Finding& finding) {
    return named(finding.kind).weight + std::log10(static_cast<double>(finding.times) + 1);
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return hurts(a) > hurts(b); });
  return findings;
}

}  // namespace lockbench::watch
