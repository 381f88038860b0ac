#include "loadgen/cluster/team.h"

#include <fmt/format.h>

#include <thread>

namespace lockbench::loadgen::cluster {
namespace {

// Time for the order to start to reach all ranks.
constexpr Duration kLead = std::chrono::milliseconds(200);
// A rank that is silent for this long is dead, or cannot be reached.
constexpr Duration kSilence = std::chrono::seconds(5);
// The others may take this longer to connect, plus a multiple of rank 0's time.
constexpr Duration kConnecting = std::chrono::seconds(60);
constexpr int kSlower = 10;
// The launcher kills the ranks a second after a stop.
constexpr Duration kAfterStop = std::chrono::milliseconds(250);
constexpr Duration kBeyondDrain = std::chrono::seconds(3);
constexpr Duration kPollMessages = std::chrono::milliseconds(100);
// For the other ranks' waits for rank 0.
constexpr Duration kLook = std::chrono::seconds(1);
constexpr Duration kRootIsGone = std::chrono::seconds(30), kUntilLeft = std::chrono::seconds(3);

/// The workload of one rank: with its part of limits on sections, and its share of the host's
/// cores.
Workload workload_of(const Workload& all, const Share& share, int ranks_beside) {
  Workload part = all;
  if (part.iterations) part.iterations = share.part_of(*all.iterations);
  if (part.trace) part.trace->transactions = share.part_of(all.trace->transactions);
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  part.threads = std::clamp(all.threads.value_or(cores / std::max(1, ranks_beside)), 1,
                            std::max(1, share.count()));
  return part;
}

/// The first rank of each host reports whether other programs took its CPU; rank 0's runner does so
/// itself.
bool judges_machine(const std::vector<Hello>& hellos, int rank) {
  const auto own = hellos.begin() + rank;
  const auto is_beside = [&](const Hello& other) { return other.boot == own->boot; };
  return rank > 0 && std::none_of(hellos.begin(), own, is_beside);
}

/// Nothing unless the message is of that kind and about that order.
template <class T>
std::optional<T> said(const std::optional<Message>& message, Kind kind, int ticket) {
  std::pair<int, T> sent;
  if (!message || message->kind != kind || !from_bytes(message->body, sent)) return std::nullopt;
  return sent.first == ticket ? std::optional(std::move(sent.second)) : std::nullopt;
}

/// The run as rank 0 sees it.
class LeadersRun : public RankRun {
 public:
  LeadersRun(Link& link, Team& team, const RunPlan& plan, const Descriptor& strategy,
             const Order& order, const std::stop_token& stop)
      : RankRun(link, order, team.hellos.front()),
        team_(team),
        plan_(plan),
        strategy_(strategy),
        stop_(stop),
        ranks_(team.hellos.size()),
        ordered_at_(link.now()),
        on_stop_(stop, [&link] { link.send_to_others(Kind::stop); }) {
    team_.lost.resize(team_.hellos.size());
    for (int rank = 0; rank < link_.size(); ++rank) {
      report_of(rank).hello = team_.hellos.at(static_cast<std::size_t>(rank));
      if (rank == 0) continue;
      Order own = order;
      own.ranks_beside = team_.ranks_beside(rank);
      own.judges_machine = cluster::judges_machine(team_.hellos, rank);
      if (team_.metrics_of) own.metrics = team_.metrics_of(rank);
      link_.send(rank, Kind::order, to_bytes(own));
      report_of(rank).delay = kLead;
    }
  }
  LeadersRun(const LeadersRun&) = delete;
  LeadersRun& operator=(const LeadersRun&) = delete;
  ~LeadersRun() override {
    link_.send_to_others(Kind::over, about(order_.ticket, team_.kept_files));
    if (!team_.kept_files) forget_file();
  }

  tl::expected<void, std::string> ready(tl::expected<void, std::string> own) override {
    if (!own) return own;
    const TimePoint until = link_.now() + kConnecting + kSlower * (link_.now() - ordered_at_);
    std::vector<bool> there(team_.hellos.size());
    there.front() = true;
    while (std::find(there.begin(), there.end(), false) != there.end()) {
      if (stop_.stop_requested()) return bad("interrupted while connecting");
      const auto message = link_.next(link_.now() + kPollMessages, stop_);
      if (const auto why = said<std::string>(message, Kind::ready, order_.ticket)) {
        if (!why->empty()) return bad(name_of(message->from) + ": " + *why);
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
    link_.send_to_others(Kind::start, about(order_.ticket, kLead));
    // A rank received it at the latest when it answered.
    for (int answers = 1; answers < link_.size() && link_.now() < start_;) {
      const auto message = link_.next(start_, stop_);
      if (!message) break;
      if (!said<bool>(message, Kind::started, order_.ticket)) {
        take(*message);  // of a rank whose load has already ended
        continue;
      }
      report_of(message->from).delay = link_.now() - asked;
      ++answers;
    }
    if (stop_.stop_requested()) return bad("interrupted before the load");
    return start_;
  }

  std::unique_ptr<WholeRun> gather(const PartOfRun& of) override {
    Part own = part_of(of);
    keep(own);
    // Moved out first: it knows this rank's writes, so the record must not add them again.
    std::unique_ptr<Counter> counter = std::move(of.run.counter);
    own.record = record_of(of.run);
    add(std::move(own), 0);
    await_parts();
    auto whole = assemble(plan_, strategy_, order_, std::move(counter), ranks_);
    for (int rank = 0; rank < link_.size(); ++rank) {
      if (const std::string why = report_of(rank).lost; !why.empty()) lose(rank, why);
    }
    return whole;
  }

  void add_to(RunEvidence& evidence) const override { cluster::add_to(evidence, ranks_); }
  void complete(results::Run& result) const override {
    cluster::complete(result, plan_.workload.clients, ranks_);
    // Such a lock excludes within one process only, and promises no more.
    const bool in_process = urls_of(strategy_, plan_.endpoints).empty();
    if (in_process && result.audit.verdict == results::Verdict::violated) {
      result.audit.verdict = results::Verdict::unprotected;
    }
  }

 private:
  RankReport& report_of(int rank) { return ranks_.at(static_cast<std::size_t>(rank)); }
  static tl::unexpected<std::string> bad(const std::string& why) { return tl::unexpected(why); }
  std::string name_of(int rank) const {
    return fmt::format("rank {} on {}", rank, ranks_.at(static_cast<std::size_t>(rank)).hello.host);
  }
  bool is_silent(int rank) const { return link_.now() - link_.heard_at(rank) > kSilence; }

  /// With a limit on sections, some ranks end earlier than others.
  void await_parts() {
    const Workload& workload = plan_.workload;
    TimePoint until = std::max(link_.now(), start_ + workload.warmup + workload.duration) +
                      workload.longest_run_out() + 2 * workload.strategy.command_timeout +
                      kBeyondDrain;
    bool hurried = false;
    const auto all_settled = [&] {
      return std::all_of(ranks_.begin(), ranks_.end(),
                         [](const RankReport& rank) { return rank.is_settled(); });
    };
    while (!all_settled() && link_.now() < until) {
      if (stop_.stop_requested() && !std::exchange(hurried, true)) {
        until = std::min(until, link_.now() + kAfterStop);
      }
      const auto message = link_.next(std::min(until, link_.now() + kPollMessages));
      if (message) take(*message);
      for (int rank = 1; rank < link_.size(); ++rank) {
        if (report_of(rank).is_settled() || !is_silent(rank)) continue;
        lose(rank, "it was lost: it is dead or cut off");
      }
    }
    for (int rank = 1; rank < link_.size(); ++rank) {
      if (!report_of(rank).is_settled()) lose(rank, "it was lost: it sent no part");
    }
  }

  void take(const Message& message) {
    if (message.kind != Kind::part) return;
    if (message.body.empty()) {
      return lose(message.from, "it was lost: its part of this run was too large to send");
    }
    std::pair<int, Part> sent;
    const bool is_part = from_bytes(message.body, sent);
    auto& [ticket, part] = sent;
    // A late part of an earlier run.
    if (is_part && ticket != order_.ticket) return;
    if (!is_part || part.row.rank != static_cast<std::uint64_t>(message.from)) {
      return lose(message.from, "it was lost: it sent no valid part of this run");
    }
    add(std::move(part), message.from);
  }

  void add(Part part, int rank) {
    const auto added = accept(std::move(part), ranks_);
    if (!added) lose(rank, added.error());
  }

  void lose(int rank, const std::string& why) {
    if (report_of(rank).lost.empty()) report_of(rank).lost = why;
    team_.lost.at(static_cast<std::size_t>(rank)) = true;
    team_.kept_files = true;
  }

  Team& team_;
  const RunPlan& plan_;
  const Descriptor& strategy_;
  const std::stop_token stop_;
  std::vector<RankReport> ranks_;
  const TimePoint ordered_at_;
  TimePoint start_;
  std::stop_callback<std::function<void()>> on_stop_;
};

bool root_is_gone(const Link& link) { return link.now() - link.heard_at(0) > kRootIsGone; }

/// If the message announces the end of all runs: whether all ranks leave together.
std::optional<bool> leave_of(const std::optional<Message>& message) {
  bool together = false;
  const bool leaves =
      message && message->kind == Kind::leave && from_bytes(message->body, together);
  return leaves ? std::optional(together) : std::nullopt;
}

/// The run as a rank other than 0 sees it.
class MembersRun : public RankRun {
 public:
  /// Sets `left` if rank 0 announces the end of all runs.
  MembersRun(Link& link, const Order& order, const Hello& hello, std::optional<bool>& left)
      : RankRun(link, order, hello), stop_(link.stop().get_token()), left_(left) {}

  bool judges_machine() const override { return order_.judges_machine; }

  tl::expected<void, std::string> ready(tl::expected<void, std::string> own) override {
    link_.send(0, Kind::ready, about(order_.ticket, own ? std::string() : own.error()));
    return own;
  }

  tl::expected<TimePoint, std::string> start() override {
    while (!over_ && !stop_.stop_requested() && !root_is_gone(link_)) {
      const auto message = link_.next(link_.now() + kLook, stop_);
      if (const auto lead = said<Duration>(message, Kind::start, order_.ticket)) {
        const TimePoint at = link_.now() + *lead;
        link_.send(0, Kind::started, about(order_.ticket, true));
        return at;
      }
      if (message) take(*message);
    }
    return tl::unexpected<std::string>("the run was called off");
  }

  std::unique_ptr<WholeRun> gather(const PartOfRun& of) override {
    const Part part = part_of(of);
    // First: after a stop there is little time.
    link_.send(0, Kind::part, about(order_.ticket, part));
    keep(part);
    return nullptr;
  }

  /// Rank 0 audits the run and removes its keys first, which may take long.
  void await_over() {
    TimePoint until = TimePoint::max();
    while (!over_ && !root_is_gone(link_) && link_.now() < until) {
      if (stop_.stop_requested()) until = std::min(until, link_.now() + kUntilLeft);
      if (const auto message = link_.next(std::min(until, link_.now() + kLook), {})) take(*message);
    }
    if (over_ && !keeps_file_) forget_file();
  }

 private:
  void take(const Message& message) {
    if (const auto keep = said<bool>(message, Kind::over, order_.ticket)) {
      over_ = true;
      keeps_file_ = *keep;
    } else if ((left_ = leave_of(message))) {
      over_ = true;
    }
  }

  const std::stop_token stop_;
  bool over_ = false, keeps_file_ = true;
  std::optional<bool>& left_;
};

void follow(const Order& order, Link& link, const Hello& hello, RunPlan plan,
            std::optional<bool>& left) {
  MembersRun joint(link, order, hello, left);
  const Descriptor* const strategy = find_strategy(order.strategy);
  if (strategy == nullptr || !strategy->not_built.empty()) {
    static_cast<void>(joint.ready(tl::unexpected(order.strategy + " is not in this rank's build")));
  } else {
    plan = plan_of(order, std::move(plan));
    plan.workload = workload_of(order.workload, joint.share(), order.ranks_beside);
    ProgressObserver silent;  // rank 0 reports progress
    const Progress progress{.strategy = order.strategy, .run = order.number};
    // Rank 0 receives the outcome.
    static_cast<void>(make_live_run(plan, *strategy, order.repetition, progress, silent,
                                    link.stop().get_token(), &joint));
  }
  joint.await_over();
}

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
  const Order order{.run_id = plan.run_id,
                    .strategy = std::string(strategy.name),
                    .repetition = repetition,
                    .number = progress.run,
                    .ticket = ++team.tickets,
                    .workload = plan.workload,
                    .endpoints = plan.endpoints,
                    .counter_url = plan.counter_url,
                    .metrics = {},
                    .part_path = team.part_path,
                    .heading = team.heading};
  LeadersRun joint(link, team, plan, strategy, order, stop);
  RunPlan own = plan;
  own.workload = workload_of(plan.workload, joint.share(), team.ranks_beside(0));
  return make_live_run(own, strategy, repetition, progress, observer, stop, &joint);
}

bool serve(Link& link, const Hello& hello, const RunPlan& own,
           const std::function<RunWatcher*(const Order&)>& watcher_of) {
  const std::stop_token stop = link.stop().get_token();
  link.send(0, Kind::hello, to_bytes(hello));
  std::optional<bool> left;
  while (!left && !stop.stop_requested()) {
    if (root_is_gone(link)) return false;
    const auto message = link.next(link.now() + kLook, stop);
    Order order;
    left = leave_of(message);
    if (message && message->kind == Kind::order && from_bytes(message->body, order)) {
      RunPlan plan = own;
      if (watcher_of) plan.watcher = watcher_of(order);
      follow(order, link, hello, std::move(plan), left);
    }
  }
  // A launcher kills all ranks once one has ended. So after a stop none ends before rank 0 has
  // saved the result.
  const TimePoint until = link.now() + kUntilLeft;
  while (!left && link.now() < until) left = leave_of(link.next(until));
  return left.value_or(false);
}

}  // namespace lockbench::loadgen::cluster
