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

results::Observed observed_of(const FamilyPicture& family, const Picture& picture) {
  const Figures& figures = family.figures;
  results::Observed seen{.store = family.store,
                         .family = family.family,
                         .source = {},
                         .accuracy = std::string(name_of(figures.accuracy)),
                         .locks = family.locks,
                         .acquisitions = figures.acquisitions,
                         .releases = figures.releases,
                         .renewals = figures.renewals,
                         .expired_while_held = figures.expired_while_held,
                         .undecided = figures.undecided,
                         .session_lost = figures.session_lost,
                         .taken_over = figures.taken_over,
                         .owner_changed = figures.owner_changed,
                         .no_ttl = figures.without_ttl + figures.without_ttl_now,
                         .thin_margins = figures.thin_margins,
                         .held_now = figures.held_now,
                         .waiting_now = waiting_of(figures),
                         .hold = loadgen::to_distribution(figures.hold),
                         .wait = std::nullopt,
                         .margin_min = seconds_of(figures.smallest_margin)};
  if (figures.waits_known) seen.wait = loadgen::to_distribution(figures.wait);
  for (const SourcePicture& source : picture.sources) {
    if (source.facts.store != family.store) continue;
    if (seen.source.empty()) seen.source = source.facts.way;
    seen.missed += source.missed;
  }
  return seen;
}

results::ObservedLock lock_of(const LockPicture& lock, const Picture& picture) {
  results::ObservedLock seen{.store = lock.store,
                             .endpoint = lock.endpoint,
                             .family = lock.family,
                             .lock = lock.name,
                             .shape = std::string(name_of(lock.shape)),
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
                            .what = std::string(name_of(moment.kind)),
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

std::string_view name_of(Shape shape) { return kShapes[static_cast<std::size_t>(shape)]; }

std::string_view name_of(Moment::Kind kind) { return kMoments[static_cast<std::size_t>(kind)]; }

void add_to(results::Result& result, const Picture& picture) {
  result.observed.emplace();
  result.locks.clear();
  result.findings.clear();
  result.sources.clear();
  for (const FamilyPicture& family : picture.families) {
    result.observed->push_back(observed_of(family, picture));
  }
  for (const LockPicture& lock : picture.worst) result.locks.push_back(lock_of(lock, picture));
  for (const Finding& finding : picture.findings) {
    result.findings.push_back({.kind = std::string(name_of(finding.kind)),
                               .store = finding.store,
                               .family = finding.family,
                               .lock = finding.lock,
                               .times = finding.times,
                               .evidence = finding.evidence,
                               .advice = finding.advice});
  }
  for (const SourcePicture& source : picture.sources) {
    result.sources.push_back(source_of(source, picture));
  }
}

}  // namespace lockbench::watch
