#include "loadgen/cluster/team.h"

#include <fmt/format.h>

#include <utility>

#include "loadgen/cluster/assembly.h"
#include "loadgen/cluster/rank_run.h"
#include "loadgen/cluster/wire.h"
#include "loadgen/run/live_run.h"
#include "loadgen/run/setup.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {
namespace {

// Until the order to start has reached the last rank.
constexpr Duration kLead = std::chrono::milliseconds(200);
// A rank that says nothing for so long is dead, or cannot be reached.
constexpr Duration kSilence = std::chrono::seconds(5);
// Other ranks may connect later by this and by a multiple of what rank 0 needed.
constexpr Duration kConnecting = std::chrono::seconds(60);
constexpr int kSlower = 10;
// After a stop the launcher kills a second later.
constexpr Duration kAfterStop = std::chrono::milliseconds(250);
constexpr Duration kBeyondDrain = std::chrono::seconds(3);
constexpr Duration kPollMessages = std::chrono::milliseconds(100);

/// The first rank of each host says whether others took its CPU; rank 0's runner does so itself.
bool judges_machine(const std::vector<Hello>& hellos, int rank) {
  const auto own = hellos.begin() + rank;
  const auto is_beside = [&](const Hello& other) { return other.boot == own->boot; };
  return rank > 0 && std::none_of(hellos.begin(), own, is_beside);
}

/// The run as rank 0 sees it.
class LeadersRun : public RankRun {
 public:
  LeadersRun(Link& link, Team& team, const RunPlan& plan, const Descriptor& strategy,
             const Order& order, const std::stop_token& stop)
      : RankRun(link, order, team.hellos.front()),
        team_(team),
        plan_(plan),
        env_(plan.make_env(0)),
        stop_(stop),
        // NOLINTNEXTLINE(modernize-make-unique): it cannot be moved
        assembly_(std::unique_ptr<RunShared>(
                      new RunShared(make_run(plan, strategy, order.repetition, order.number,
                                             {.clients = plan.workload.clients}, *env_))),
                  team.hellos),
        ordered_at_(link.now()),
        on_stop_(stop, TellOthers{link}) {
    team_.lost.resize(team_.hellos.size());
    for (int rank = 1; rank < link_.size(); ++rank) {
      Order own = order;
      own.ranks_beside = team_.ranks_beside(rank);
      own.judges_machine = cluster::judges_machine(team_.hellos, rank);
      if (team_.metrics_of) own.metrics = team_.metrics_of(rank);
      link_.send(rank, Kind::order, to_bytes(own));
      assembly_.note_delay(rank, kLead);
    }
  }
  LeadersRun(const LeadersRun&) = delete;
  LeadersRun& operator=(const LeadersRun&) = delete;
  ~LeadersRun() override {
    link_.send_to_others(Kind::over, to_bytes(Over{order_.ticket, team_.kept_files}));
    if (!team_.kept_files) forget_file();
  }

  bool judges_machine() const override { return false; }

  tl::expected<void, std::string> ready(tl::expected<void, std::string> own) override {
    if (!own) return own;
    const TimePoint until = link_.now() + kConnecting + kSlower * (link_.now() - ordered_at_);
    std::vector<bool> there(team_.hellos.size());
    there.front() = true;
    while (std::find(there.begin(), there.end(), false) != there.end()) {
      if (stop_.stop_requested()) return bad("interrupted while connecting");
      const auto message = link_.next(link_.now() + kPollMessages, stop_);
      Ready ready;
      if (message && message->kind == Kind::ready && from_bytes(message->body, ready) &&
          ready.ticket == order_.ticket) {
        if (!ready.why.empty()) return bad(name_of(message->from) + ": " + ready.why);
        there.at(static_cast<std::size_t>(message->from)) = true;
      }
      for (int rank = 1; rank < link_.size(); ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        if (there[at] || (!is_silent(rank) && link_.now() < until)) continue;
        team_.lost[at] = true;
        return bad(name_of(rank) + ": it does not answer");
      }
    }
    return own;
  }

  tl::expected<TimePoint, std::string> start() override {
    const TimePoint asked = link_.now();
    start_ = asked + kLead;
    link_.send_to_others(Kind::start, to_bytes(Start{order_.ticket, kLead}));
    // A rank has heard of it by its answer at the latest.
    for (int answers = 1; answers < link_.size() && link_.now() < start_;) {
      const auto message = link_.next(start_, stop_);
      if (!message) break;
      Started started;
      if (message->kind != Kind::started || !from_bytes(message->body, started) ||
          started.ticket != order_.ticket) {
        take(*message);  // of a rank whose load was over at once
        continue;
      }
      assembly_.note_delay(message->from, link_.now() - asked);
      ++answers;
    }
    if (stop_.stop_requested()) return bad("interrupted before the load");
    return start_;
  }

  std::unique_ptr<WholeRun> gather(const PartOfRun& of) override {
    Part own = RankRun::part_of(of);
    keep(own);
    // The counter knows what this rank has written.
    own.record.tallies.clear();
    assembly_.set_counter(std::move(of.run.counter));
    if (auto added = assembly_.add(own); !added) lose(0, added.error());
    await_parts();
    return assembly_.take();
  }

  void add_to(RunEvidence& evidence) const override { assembly_.add_to(evidence); }
  void complete(results::Run& result) const override {
    assembly_.complete(result);
    // It excludes within a process, and promises nothing to others.
    const Descriptor* const strategy = find_strategy(order_.strategy);
    const bool in_process = strategy != nullptr && urls_of(*strategy, plan_.endpoints).empty();
    if (in_process && result.audit.verdict == results::Verdict::violated) {
      result.audit.verdict = results::Verdict::unprotected;
    }
  }

 private:
  struct TellOthers {
    Link& link;
    void operator()() const { link.send_to_others(Kind::stop); }
  };

  static tl::unexpected<std::string> bad(const std::string& why) { return tl::unexpected(why); }
  std::string name_of(int rank) const {
    return fmt::format("rank {} on {}", rank, team_.hellos.at(static_cast<std::size_t>(rank)).host);
  }
  bool is_silent(int rank) const { return link_.now() - link_.heard_at(rank) > kSilence; }

  /// With a limit on sections, some ranks end earlier than others.
  void await_parts() {
    const Workload& workload = plan_.workload;
    TimePoint until = std::max(link_.now(), start_ + workload.warmup + workload.duration) +
                      2 * workload.strategy.command_timeout + kBeyondDrain;
    bool hurried = false;
    while (!assembly_.knows_all() && link_.now() < until) {
      if (stop_.stop_requested() && !std::exchange(hurried, true)) {
        until = std::min(until, link_.now() + kAfterStop);
      }
      if (const auto message = link_.next(std::min(until, link_.now() + kPollMessages)))
        take(*message);
      for (int rank = 1; rank < link_.size(); ++rank) {
        if (!assembly_.knows(rank) && is_silent(rank))
          lose(rank, "it was lost: it is dead or cut off");
      }
    }
    for (int rank = 1; rank < link_.size(); ++rank) {
      if (!assembly_.knows(rank)) lose(rank, "it was lost: it has not said what it did");
    }
  }

  void take(const Message& message) {
    if (message.kind != Kind::part) return;
    PartReport report;
    const bool is_part = from_bytes(message.body, report);
    // Of an earlier run, after which it was given up.
    if (is_part && report.ticket != order_.ticket) return;
    if (!is_part || report.part.rank != message.from) {
      return lose(message.from, "it was lost: what it sent is no part of this run");
    }
    if (auto added = assembly_.add(report.part); !added) lose(message.from, added.error());
  }

  void lose(int rank, const std::string& why) {
    assembly_.lose(rank, why);
    team_.lost.at(static_cast<std::size_t>(rank)) = true;
    team_.kept_files = true;
  }

  Team& team_;
  const RunPlan& plan_;
  const std::unique_ptr<Env> env_;
  const std::stop_token stop_;
  Assembly assembly_;
  const TimePoint ordered_at_;
  TimePoint start_;
  std::stop_callback<TellOthers> on_stop_;
};

}  // namespace

int Team::ranks_beside(int rank) const {
  const std::string& boot = hellos.at(static_cast<std::size_t>(rank)).boot;
  return static_cast<int>(std::count_if(hellos.begin(), hellos.end(),
                                        [&](const Hello& other) { return other.boot == boot; }));
}

tl::expected<results::Run, std::string> lead(Link& link, Team& team, const RunPlan& plan,
                                             const Descriptor& strategy, int repetition,
                                             const Progress& progress, ProgressObserver& observer,
                                             const std::stop_token& stop) {
  for (std::size_t i = 0; i < team.lost.size(); ++i) {
    if (!team.lost[i]) continue;
    return tl::unexpected(fmt::format("rank {} on {} was lost", i, team.hellos.at(i).host));
  }
  Order order = order_of(plan, strategy, repetition, progress.run);
  order.ticket = ++team.tickets;
  order.part_path = team.part_path;
  order.heading = team.heading;
  order.push = team.push;
  LeadersRun joint(link, team, plan, strategy, order, stop);
  RunPlan own = plan;
  own.workload = part_of(plan.workload, joint.share(), team.ranks_beside(0));
  LiveRun run(own, strategy, repetition, progress, observer, stop, &joint);
  return run.execute();
}

}  // namespace lockbench::loadgen::cluster
