#include "loadgen/cluster/member.h"

#include <algorithm>
#include <thread>

#include "loadgen/cluster/partial.h"
#include "loadgen/cluster/wire.h"
#include "loadgen/record/certificate.h"
#include "loadgen/run/local_crew.h"
#include "loadgen/run/resource_meter.h"
#include "loadgen/run/run_watcher.h"
#include "loadgen/run/setup.h"
#include "loadgen/run/summary.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {
namespace {

constexpr Duration kConnectReports = std::chrono::milliseconds(200);
// Rank 0 shows a second of the run when it has its last record.
constexpr Duration kBetweenRecords = std::chrono::milliseconds(250);
constexpr Duration kClockKnown = std::chrono::milliseconds(1500);
constexpr Duration kObedience = std::chrono::milliseconds(50);
// With very many clients a record costs more.
constexpr int kClientsPerRecord = 20'000;
constexpr Duration kSecond = std::chrono::seconds(1);
constexpr Duration kBetweenFiles = std::chrono::seconds(1);
// After a stop the launcher kills a second later.
constexpr Duration kPatienceAfterStop = std::chrono::milliseconds(80);
constexpr Duration kRootIsGone = std::chrono::seconds(30), kUntilLeft = std::chrono::seconds(3);

bool root_is_gone(const Link& link) { return link.now() - link.root_heard_at() > kRootIsGone; }

/// After a stop. A launcher kills the others as soon as one rank has ended: none goes before rank 0
/// has saved the result.
bool await_leave(Link& link) {
  const TimePoint until = link.now() + kUntilLeft;
  while (link.now() < until) {
    const auto message = link.for_member(until);
    Leave leave;
    if (message && message->kind == Kind::leave) {
      return from_bytes(message->body, leave) && leave.together;
    }
  }
  return false;
}

/// One run of this rank, from the order to the last record.
class MemberRun {
 public:
  MemberRun(Link& link, const MemberSettings& settings, const Order& order,
            const Descriptor& strategy, const std::stop_token& stop)
      : link_(link),
        settings_(settings),
        order_(order),
        stop_(stop),
        share_{link.rank(), link.size(), order.workload.clients, order.split},
        plan_(planned(order, share_, settings)),
        env_(plan_.make_env(nonce_of(plan_, order.number))),
        run_(make_run(plan_, strategy, order.repetition, order.number, share_, *env_)),
        resources_(plan_, run_.strategy, threads_),
        crew_(run_, threads_, *env_, stop),
        recording_(run_),
        sampler_(run_) {
    run_.log = std::make_unique<LockLog>();
  }

  bool has_left() const { return left_; }
  bool left_together() const { return left_together_; }

  void execute() {
    if (auto made = prepare(); !made) return fail(made.error());
    const WatchedRun watched(settings_.watcher_of ? settings_.watcher_of(order_) : nullptr, run_);
    if (auto connected = connect(); !connected) return fail(connected.error());
    if (const auto start = await_start()) {
      drive(*start);
      finish();
    } else {
      end_waiting_clients();
    }
    await_over();
  }

 private:
  static RunPlan planned(const Order& order, const Share& share, const MemberSettings& settings) {
    RunPlan plan = plan_of(order);
    plan.workload = part_of(plan.workload, share);
    if (!plan.workload.threads) {
      // Ranks of one host share its cores.
      const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
      plan.workload.threads = std::max(1, cores / std::max(1, order.ranks_beside));
    }
    plan.workload.threads = std::clamp(*plan.workload.threads, 1, std::max(1, share.count()));
    plan.make_env = settings.make_env;
    plan.provide_services = settings.provide_services;
    plan.machine = settings.machine;
    return plan;
  }

  tl::expected<void, std::string> prepare() {
    if (auto made = equip(plan_, run_); !made) return made;
    if (auto made = make_counter(plan_, *env_, run_); !made) return made;
    if (what_clients_run_on(share_.count()) == ClientsOn::threads) return {};
    auto made = ClientThreads::of_fibers(*plan_.workload.threads, plan_.workload.stack_bytes);
    if (!made) return tl::unexpected(made.error());
    threads_ = *std::move(made);
    return {};
  }

  tl::expected<void, std::string> connect() {
    TimePoint reported = link_.now();
    auto connected = crew_.connect([&](int clients) {
      if (link_.now() - reported < kConnectReports) return;
      reported = link_.now();
      link_.send(0, Kind::connected, to_bytes(Connected{order_.ticket, clients, false, {}, {}}));
    });
    if (!connected) return connected;
    await_clock();
    link_.send(0, Kind::connected,
               to_bytes(Connected{order_.ticket, share_.count(), true, {}, recording_.take()}));
    return {};
  }

  /// Before the first run, until this rank's clock is known well.
  void await_clock() {
    const TimePoint until = link_.now() + kClockKnown;
    while (!link_.clock().knows_drift() && link_.now() < until && !stop_.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void fail(const std::string& why) {
    link_.send(0, Kind::failed,
               to_bytes(Connected{order_.ticket, 0, false, why, recording_.take()}));
    await_over();
  }

  /// By this rank's clock. Nothing: the run does not begin.
  std::optional<TimePoint> await_start() {
    while (!stop_.stop_requested()) {
      const auto message = link_.for_member(link_.now() + std::chrono::seconds(1), stop_);
      if (!message) {
        if (root_is_gone(link_)) return std::nullopt;
        continue;
      }
      Start start;
      if (message->kind == Kind::start && from_bytes(message->body, start) &&
          start.number == order_.ticket) {
        return start.at - link_.clock().at(link_.now()).offset;
      }
      handle(*message);
      if (over_ || aborted_) return std::nullopt;
    }
    return std::nullopt;
  }

  void drive(TimePoint start) {
    run_.load_start = start;
    run_.measure_start = start + plan_.workload.warmup;
    run_.load_end = run_.measure_start.load() + plan_.workload.duration;
    run_.started.store(true, std::memory_order_release);
    while (link_.now() < start && !stop_.stop_requested()) {
      std::this_thread::sleep_for(
          std::min<Duration>(start - link_.now(), std::chrono::milliseconds(20)));
    }
    use_.late = std::max(Duration::zero(), link_.now() - start);
    resources_.load_begins();
    crew_.begin();
    const Duration between =
        kBetweenRecords * (1 + plan_.workload.clients / share_.ranks / kClientsPerRecord);
    TimePoint next_record = start + between, next_file = start + kBetweenFiles;
    TimePoint next_second = start + kSecond;
    while (!is_over()) {
      crew_.wait(std::min({next_record, run_.load_end.load(), link_.now() + kObedience}));
      read_messages();
      const TimePoint now = link_.now();
      if (now < next_record) continue;
      send_record(false);
      while (next_record <= now) next_record += between;
      if (now >= next_second) {
        note_second(now);
        next_second += kSecond;
      }
      if (now < next_file) continue;
      const TimePoint begun = link_.now();
      keep_file(false);
      // Writing takes a small part of the time.
      next_file = std::max(next_file + kBetweenFiles, link_.now() + 20 * (link_.now() - begun));
    }
    ended_at_ = link_.now();
    resources_.load_ends();
    use_.wall_seconds = seconds(ended_at_ - start);
    note_use();
  }

  bool is_over() {
    return link_.now() >= run_.load_end.load() || run_.over.stop_requested() ||
           stop_.stop_requested() || aborted_ || crew_.working() == 0 || root_is_gone(link_);
  }

  /// Those that rank 0 has sent meanwhile.
  void read_messages() {
    while (const auto message = link_.for_member(TimePoint{})) handle(*message);
  }

  void handle(const Message& message) {
    Stop stop;
    Over over;
    if (message.kind == Kind::stop && from_bytes(message.body, stop) &&
        stop.number == order_.ticket) {
      const TimePoint at = stop.at - link_.clock().at(link_.now()).offset;
      if (at < run_.load_end.load()) run_.load_end = at;
      aborted_ = aborted_ || stop.abort;
    } else if (message.kind == Kind::over && from_bytes(message.body, over) &&
               over.number == order_.ticket) {
      over_ = true;
      keeps_file_ = over.keep;
    } else if (message.kind == Kind::leave) {
      handle_leave(message);
    }
  }

  void handle_leave(const Message& message) {
    Leave leave;
    left_together_ = from_bytes(message.body, leave) && leave.together;
    left_ = over_ = aborted_ = true;
  }

  void note_use() {
    RunEvidence used;
    resources_.add_to(used);
    const std::size_t threads = threads_.cpu_times().size();
    use_.cpu_seconds = used.cpu_seconds;
    use_.on_fibers = threads > 0;
    use_.threads = use_.on_fibers ? static_cast<int>(threads) : share_.count();
    if (use_.wall_seconds > 0) {
      use_.busiest_thread_share = used.busiest_thread_seconds.value_or(0) / use_.wall_seconds;
    }
    use_.stack_high_water_bytes = threads_.stack_high_water_bytes().value_or(0);
  }

  void finish() {
    run_.over.request_stop();
    const bool hurried = stop_.stop_requested() || aborted_;
    if (hurried) {
      send_record(false);
      keep_file(true);
      crew_.limit_drain(kPatienceAfterStop);
    }
    crew_.drain();
    crew_.count_never_begun(std::min(ended_at_, run_.load_end.load()));
    note_second(link_.now());
    judge();
    send_record(true);
    keep_file(true);
  }

  /// The load never began.
  void end_waiting_clients() {
    run_.over.request_stop();
    crew_.limit_drain(kPatienceAfterStop);
    crew_.release_waiting();
    crew_.drain();
  }

  /// Whether this rank's figures are those of the generator. Rank 0 judges the load, the servers,
  /// and other programs, which this rank cannot tell from its neighbours.
  void judge() {
    if (share_.count() == 0) return;
    RunEvidence evidence = evidence_of(run_);
    resources_.add_to(evidence);
    evidence.busiest_thread_seconds.reset();
    evidence.private_cpu_seconds.reset();
    if (!order_.judges_machine) evidence.machine = {};
    evidence.wall_seconds = use_.wall_seconds;
    // One that is told to end at once is always late.
    if (!aborted_) evidence.overrun_seconds = seconds(ended_at_ - run_.load_end.load());
    use_.lag_p99 = evidence.wake_lag.percentile(0.99);
    use_.reasons = certify(evidence).reasons;
  }

  void send_record(bool last) {
    RecordReport report;
    report.number = order_.ticket;
    const TimePoint now = link_.now();
    auto [events, missed] = run_.log->take();
    const ClockModel clock = link_.clock();
    const auto estimate = clock.at(now);
    for (LockEvent& event : events) event.at += estimate.offset;
    report.events = std::move(events);
    report.missed = missed;
    report.complete_until = now + estimate.offset;
    report.clock = {estimate.offset, estimate.bound, clock.drift()};
    report.record = recording_.take(last);
    report.last = last;
    if (last) report.use = use_;
    clock_ = report.clock;
    link_.send(0, Kind::record, to_bytes(report));
  }

  void keep_file(bool last) {
    if (order_.partial_path.empty()) return;
    const TimePoint now = last ? ended_at_ : link_.now();
    Partial partial;
    partial.rank = share_.rank;
    partial.ranks = share_.ranks;
    partial.hello = settings_.hello;
    partial.order = order_;
    // Secrets reach no file.
    partial.order.endpoints.clear();
    partial.order.counter_url.clear();
    partial.nodes = nodes_of_quorum(run_.strategy, plan_.endpoints);
    partial.measured =
        std::max(Duration::zero(), std::min(now, run_.load_end.load()) - run_.measure_start.load());
    partial.complete = last;
    partial.clock = clock_;
    partial.use = use_;
    partial.record = Recording(run_).take(true);
    partial.series = seconds_;
    static_cast<void>(save(partial, settings_.hello.build));  // rank 0 has nearly all of it, too
    saved_ = true;
  }

  /// Notes what has come since the second before, for this rank's file.
  void note_second(TimePoint now) {
    const results::SeriesPoint point = sampler_.sample(now);
    seconds_.push_back({point, to_samples(sampler_.latest(), {})});
  }

  /// Rank 0 audits the run and removes its keys first, which may take long.
  void await_over() {
    TimePoint until = TimePoint::max();
    while (!over_ && !root_is_gone(link_) && link_.now() < until) {
      if (stop_.stop_requested()) until = std::min(until, link_.now() + kUntilLeft);
      if (const auto message = link_.for_member(link_.now() + kConnectReports)) handle(*message);
    }
    if (saved_ && over_ && !keeps_file_) forget(order_, share_.rank);
  }

  Link& link_;
  const MemberSettings& settings_;
  const Order& order_;
  const std::stop_token stop_;
  const Share share_;
  const RunPlan plan_;
  std::unique_ptr<Env> env_;
  ClientThreads threads_;
  RunShared run_;
  ResourceMeter resources_;
  LocalCrew crew_;
  Recording recording_;
  SeriesSampler sampler_;

  UseReport use_;
  ClockReport clock_;
  TimePoint ended_at_{};  ///< when it noticed that the load was over
  std::vector<Second> seconds_;
  bool aborted_ = false, over_ = false, keeps_file_ = true, saved_ = false;
  bool left_ = false, left_together_ = false;
};

}  // namespace

bool serve(Link& link, const MemberSettings& settings, const std::stop_token& stop) {
  link.send(0, Kind::hello, to_bytes(settings.hello));
  while (!stop.stop_requested()) {
    const auto message = link.for_member(link.now() + std::chrono::seconds(1), stop);
    if (!message) {
      if (root_is_gone(link)) return false;
      continue;
    }
    Leave leave;
    if (message->kind == Kind::leave) return from_bytes(message->body, leave) && leave.together;
    Order order;
    if (message->kind != Kind::order || !from_bytes(message->body, order)) continue;
    const Descriptor* const strategy = find_strategy(order.strategy);
    if (strategy == nullptr || !strategy->not_built.empty()) {
      link.send(0, Kind::failed,
                to_bytes(Connected{
                    order.ticket, 0, false, order.strategy + " is not in this rank's build", {}}));
      continue;
    }
    MemberRun member(link, settings, order, *strategy, stop);
    member.execute();
    if (member.has_left()) return member.left_together();
  }
  return await_leave(link);
}

}  // namespace lockbench::loadgen::cluster
