#include "watch/record.h"

#include <algorithm>
#include <array>

#include "watch/findings.h"

namespace lockbench::watch {
namespace {

// Each in the order of its enum.
constexpr std::array<std::string_view, 3> kAccuracies{"exact", "at_least", "sampled"};
constexpr std::array<std::string_view, 11> kShapes{
    "unknown",        "token",          "fenced_token", "redisson_hash", "etcd_queue", "etcd_key",
    "sequence_nodes", "ephemeral_node", "advisory",     "row",           "table_row"};
constexpr std::array<std::string_view, 8> kMoments{"granted",       "renewed",      "released",
                                                   "expired",       "undecided",    "session_lost",
                                                   "owner_changed", "queue_changed"};
static_assert(kAccuracies.size() == static_cast<std::size_t>(Accuracy::sampled) + 1);
static_assert(kShapes.size() == static_cast<std::size_t>(Shape::table_row) + 1);
static_assert(kMoments.size() == static_cast<std::size_t>(Moment::Kind::queue_changed) + 1);

std::optional<double> seconds_of(const std::optional<Duration>& duration) {
  return duration ? std::optional(seconds(*duration)) : std::nullopt;
}

std::optional<std::uint64_t> waiting_of(const Figures& figures) {
  return figures.waits_known ? std::optional(figures.waiting_now) : std::nullopt;
}

results::Observed family_of(const FamilyPicture& family, const Picture& picture) {
  const Figures& figures = family.figures;
  results::Observed seen;
  static_cast<results::ObservedFigures&>(seen) = figures;
  seen.store = family.store;
  seen.family = family.family;
  seen.accuracy = name_of(figures.accuracy);
  seen.locks = family.locks;
  seen.no_ttl = figures.without_ttl + figures.without_ttl_now;
  seen.waiting_now = waiting_of(figures);
  seen.oldest_hold = seconds_of(figures.oldest_hold).value_or(0);
  seen.oldest_wait = seconds_of(figures.oldest_wait).value_or(0);
  seen.hold = loadgen::to_distribution(figures.hold);
  if (figures.waits_known) seen.wait = loadgen::to_distribution(figures.wait);
  seen.margin_min = seconds_of(figures.smallest_margin);
  for (const SourcePicture& source : picture.sources) {
    if (source.facts.store != family.store) continue;
    if (seen.source.empty()) seen.source = source.facts.way;
    seen.missed += source.missed;
  }
  return seen;
}

std::string_view trouble_of(const Figures& lock) {
  if (lock.renewal_stopped_now > 0) return "renewal stopped";
  if (lock.without_ttl_now > 0) return "no TTL";
  if (lock.held_long_now > 0) return "held long";
  if (lock.taken_over > 0) return "taken over";
  if (lock.owner_changed > 0) return "owner changed";
  if (lock.expired_while_held > 0) return "expired";
  if (lock.session_lost > 0) return "session lost";
  return "";
}

results::ObservedLock lock_of(const LockPicture& lock, const Picture& picture) {
  results::ObservedLock seen{.store = lock.store,
                             .endpoint = lock.endpoint,
                             .family = lock.family,
                             .lock = lock.name,
                             .shape = std::string(kShapes[static_cast<std::size_t>(lock.shape)]),
                             .trouble = std::string(trouble_of(lock.figures)),
                             .holder = lock.holder,
                             .held_seconds = seconds_of(lock.figures.oldest_hold),
                             .ttl_left_seconds = seconds_of(lock.ttl_left),
                             .waiting_now = waiting_of(lock.figures),
                             .acquisitions = lock.figures.acquisitions,
                             .expired_while_held = lock.figures.expired_while_held,
                             .most_waiting = lock.figures.most_waiting,
                             .history = {}};
  const TimePoint began = picture.at - picture.watched;
  for (const Moment& moment : lock.history) {
    seen.history.push_back({.t = std::max(0.0, seconds(moment.at - began)),
                            .what = std::string(kMoments[static_cast<std::size_t>(moment.kind)]),
                            .holder = moment.holder,
                            .waiting = moment.waiting});
  }
  return seen;
}

results::ObservedSource source_of(const SourcePicture& source, const Picture& picture) {
  return {.store = source.facts.store,
          .endpoint = source.facts.endpoint,
          .way = source.facts.way,
          .accuracy = std::string(name_of(source.facts.accuracy)),
          .waiters = source.facts.waiters,
          .unseen = source.facts.unseen,
          .watched_seconds = seconds(picture.watched),
          .blind_seconds = source.blind_seconds,
          .missed = source.missed,
          .commands = source.commands};
}

}  // namespace

std::string_view name_of(Accuracy accuracy) {
  return kAccuracies[static_cast<std::size_t>(accuracy)];
}

std::vector<results::Observed> observed_of(const Picture& picture) {
  std::vector<results::Observed> all;
  for (const FamilyPicture& family : picture.families) all.push_back(family_of(family, picture));
  return all;
}

results::ObservedFinding finding_of(const Finding& finding) {
  return {.kind = std::string(name_of(finding.kind)),
          .store = finding.store,
          .family = finding.family,
          .lock = finding.lock,
          .times = finding.times,
          .evidence = finding.evidence,
          .advice = finding.advice};
}

void add_to(results::Result& result, const Picture& picture) {
  result.observed = observed_of(picture);
  result.locks.clear();
  result.findings.clear();
  result.sources.clear();
  for (const LockPicture& lock : picture.worst) result.locks.push_back(lock_of(lock, picture));
  for (const Finding& finding : picture.findings) result.findings.push_back(finding_of(finding));
  for (const SourcePicture& source : picture.sources) {
    result.sources.push_back(source_of(source, picture));
  }
}

}  // namespace lockbench::watch
