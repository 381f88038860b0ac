#include "loadgen/cluster/remote_crew.h"

#include <fmt/format.h>

#include <algorithm>

#include "loadgen/cluster/wire.h"
#include "loadgen/record/certificate.h"

namespace lockbench::loadgen::cluster {
namespace {

// Half of the time between two records, so that a second is shown with what belongs to it.
constexpr Duration kDelay = std::chrono::milliseconds(125);
// Until the order to start has reached the last rank.
constexpr Duration kLead = std::chrono::milliseconds(200);
constexpr Duration kSilence = std::chrono::seconds(5),
                   kSilenceConnecting = std::chrono::seconds(60);
// After a stop the launcher kills a second later.
constexpr Duration kAfterStop = std::chrono::milliseconds(250);
constexpr Duration kBeyondDrain = std::chrono::seconds(3);
constexpr Duration kLook = std::chrono::milliseconds(100);

/// The first rank of each host does; rank 0's runner judges its own.
bool judges_machine(const std::vector<Hello>& hellos, int rank) {
  const auto own = hellos.begin() + rank;
  const auto is_beside = [&](const Hello& other) { return other.boot == own->boot; };
  return rank > 0 && std::none_of(hellos.begin(), own, is_beside);
}

}  // namespace

RemoteCrew::RemoteCrew(Link& link, Team& team, const RunPlan& plan, RunShared& run, RunTurn turn)
    : link_(link),
      team_(team),
      plan_(plan),
      run_(run),
      turn_(std::move(turn)),
      order_(order_of(plan, run.strategy, turn_)),
      ranks_(static_cast<std::size_t>(link.size())),
      replay_(run, link.size()) {
  order_.ticket = ++team.tickets;
  order_.split = team.split;
  order_.partial_path = team.partial_path;
  order_.heading = team.heading;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    RankFigures& figures = ranks_[i].figures;
    figures.hello = team.hellos.at(i);
    figures.clients =
        Share{static_cast<int>(i), link.size(), plan.workload.clients, team.split}.count();
    if (i < team.rtts.size()) figures.rtt = team.rtts[i];
  }
}

RemoteCrew::~RemoteCrew() {
  link_.send_to_all(Kind::over, to_bytes(Over{order_.ticket, team_.kept_files}));
}

tl::expected<void, std::string> RemoteCrew::connect(const std::function<void(int)>& connected) {
  for (std::size_t i = 0; i < team_.lost.size(); ++i) {
    if (!team_.lost[i]) continue;
    return tl::unexpected(fmt::format("rank {} on {} was lost", i, team_.hellos[i].host));
  }
  for (int rank = 0; rank < link_.size(); ++rank) {
    Order order = order_;
    order.ranks_beside = team_.ranks_beside.at(static_cast<std::size_t>(rank));
    order.judges_machine = judges_machine(team_.hellos, rank);
    if (team_.metrics_of) order.metrics = team_.metrics_of(rank);
    if (team_.endpoints_of) order.endpoints = team_.endpoints_of(rank, plan_.endpoints);
    link_.send(rank, Kind::order, to_bytes(order));
    ranks_[static_cast<std::size_t>(rank)].heard_at = link_.now();
  }
  while (!all_are_ready() && !turn_.stop.stop_requested()) {
    if (const auto message = link_.for_root(link_.now() + kLook, turn_.stop)) take(*message);
    int clients = 0;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const Rank& rank = ranks_[i];
      clients += rank.connected;
      std::string why = rank.failed;
      if (why.empty() && !rank.ready && link_.now() - rank.heard_at > kSilenceConnecting) {
        why = "it does not answer";
        team_.lost.resize(ranks_.size());
        team_.lost[i] = true;
      }
      if (!why.empty()) {
        return tl::unexpected(fmt::format("rank {} on {}: {}", i, rank.figures.hello.host, why));
      }
    }
    connected(clients);
  }
  if (turn_.stop.stop_requested()) {
    return tl::unexpected<std::string>("interrupted while connecting");
  }
  return {};
}

TimePoint RemoteCrew::start_time() {
  const TimePoint at = link_.now() + kLead;
  link_.send_to_all(Kind::start, to_bytes(Start{order_.ticket, at}));
  for (Rank& rank : ranks_) rank.heard_at = at;
  const std::scoped_lock lock(done_mutex_);
  done_ = {at};
  return at;
}

Duration RemoteCrew::delay() const { return kDelay; }

std::optional<SectionsDone> RemoteCrew::done() const {
  const std::scoped_lock lock(done_mutex_);
  return done_;
}

void RemoteCrew::end_at(TimePoint when) {
  link_.send_to_all(Kind::stop, to_bytes(Stop{order_.ticket, when, false}));
}

void RemoteCrew::wait(TimePoint until) {
  while (link_.now() < until && !turn_.stop.stop_requested() && !all_have_ended()) {
    const TimePoint look = std::min(until, link_.now() + kLook);
    if (const auto message = link_.for_root(look, turn_.stop)) take(*message);
    lose_silent();
  }
}

void RemoteCrew::drain() {
  const bool stopped = turn_.stop.stop_requested();
  if (stopped) {
    link_.send_to_all(Kind::stop, to_bytes(Stop{order_.ticket, link_.now(), true}));
  }
  const Duration patience =
      stopped ? kAfterStop : 2 * plan_.workload.strategy.command_timeout + kBeyondDrain;
  const TimePoint until = link_.now() + patience;
  while (!all_have_ended() && link_.now() < until) {
    // A stop that comes now shortens it.
    if (!stopped && turn_.stop.stop_requested()) return drain();
    if (const auto message = link_.for_root(std::min(until, link_.now() + kLook))) take(*message);
    lose_silent();
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].ended) lose(static_cast<int>(i), "it was lost: what it did last is missing");
  }
  replay_.finish(link_.now());
  run_.over.request_stop();
}

void RemoteCrew::add_to(RunEvidence& evidence) const {
  for (const Rank& rank : ranks_) {
    const UseReport& use = rank.figures.use;
    if (!use.on_fibers) continue;
    evidence.busiest_thread_seconds = std::max(evidence.busiest_thread_seconds.value_or(0),
                                               use.busiest_thread_share * evidence.wall_seconds);
  }
  // This process has the clients of rank 0.
  for (std::size_t i = 1; i < ranks_.size(); ++i) {
    const RankFigures& figures = ranks_[i].figures;
    if (figures.hello.boot != team_.hellos.front().boot) continue;
    evidence.cpu_seconds += figures.use.cpu_seconds;
  }
}

void RemoteCrew::complete(results::Run& result) const {
  std::vector<RankFigures> all;
  all.reserve(ranks_.size());
  for (const Rank& rank : ranks_) all.push_back(rank.figures);
  complete_by_ranks(all, result);
  // It excludes within a process, and promises nothing to others.
  if (urls_of(run_.strategy, plan_.endpoints).empty() &&
      result.audit.verdict == results::Verdict::violated) {
    result.audit.verdict = results::Verdict::unprotected;
  }
  result.audit.undecided = run_.audit.totals().undecided;
  if (missed_ > 0) {
    result.generator.valid = false;
    result.generator.reasons.push_back(fmt::format(
        "{} events of locks had no room: overlaps between ranks may have been missed", missed_));
  }
}

void RemoteCrew::take(const Message& message) {
  Rank& rank = ranks_.at(static_cast<std::size_t>(message.from));
  rank.heard_at = std::max(rank.heard_at, link_.now());
  Connected connected;
  RecordReport report;
  switch (message.kind) {
    case Kind::connected:
    case Kind::failed:
      if (!from_bytes(message.body, connected) || connected.number != order_.ticket) break;
      rank.connected = connected.clients;
      rank.ready = connected.all;
      if (message.kind == Kind::failed) rank.failed = connected.why;
      absorb(connected.record, run_);
      rank.figures.add(connected.record);
      break;
    case Kind::record:
      if (!from_bytes(message.body, report) || report.number != order_.ticket) break;
      take_record(rank, message.from, report);
      break;
    default:
      break;
  }
}

void RemoteCrew::take_record(Rank& rank, int number, const RecordReport& report) {
  absorb(report.record, run_);
  rank.figures.add(report.record);
  rank.figures.clock = report.clock;
  rank.figures.worst_bound = std::max(rank.figures.worst_bound, report.clock.bound);
  missed_ += report.missed;
  replay_.add(number, report.events, report.complete_until, report.clock);
  if (report.last) {
    rank.ended = true;
    rank.figures.use = report.use;
  }
  rank.complete_until = std::max(rank.complete_until, report.complete_until);
  note_done();
  replay_.advance();
}

void RemoteCrew::note_done() {
  TimePoint until = TimePoint::max();
  for (const Rank& rank : ranks_) {
    if (!rank.ended && !rank.figures.lost) until = std::min(until, rank.complete_until);
  }
  const std::scoped_lock lock(done_mutex_);
  // Once a round: within it the others' records are ahead by changing amounts.
  if (until < done_.at + kDelay || until == TimePoint::max()) return;
  done_ = {until, run_.recorder.total(Count::sections)};
}

bool RemoteCrew::all_have_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.ended || rank.figures.lost; });
}

bool RemoteCrew::all_are_ready() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ready; });
}

void RemoteCrew::lose(int number, const std::string& why) {
  Rank& rank = ranks_.at(static_cast<std::size_t>(number));
  if (rank.figures.lost) return;
  rank.figures.lost = true;
  rank.figures.why_lost = why;
  replay_.lose(number);
  for (int i = 0; i < rank.figures.clients; ++i) {
    const Share share{number, link_.size(), plan_.workload.clients, team_.split};
    run_.recorder.client(share.number(i)).state.store(ClientState::idle, std::memory_order_relaxed);
  }
  team_.lost.resize(ranks_.size());
  team_.lost[static_cast<std::size_t>(number)] = true;
  team_.kept_files = true;
}

void RemoteCrew::lose_silent() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    if (rank.ended || rank.figures.lost || link_.now() - rank.heard_at < kSilence) continue;
    lose(static_cast<int>(i),
         fmt::format("it was lost {:.1f} s into the load: what it did last is missing",
                     std::max(0.0, seconds(rank.heard_at - run_.load_start))));
  }
}

}  // namespace lockbench::loadgen::cluster
