#include "loadgen/cluster/member.h"

#include <algorithm>

#include "loadgen/cluster/rank_run.h"
#include "loadgen/cluster/wire.h"
#include "loadgen/run/live_run.h"
#include "strategies/registry.h"

namespace lockbench::loadgen::cluster {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);
constexpr Duration kRootIsGone = std::chrono::seconds(30), kUntilLeft = std::chrono::seconds(3);

bool root_is_gone(const Link& link) { return link.now() - link.heard_at(0) > kRootIsGone; }

/// Rank 0 says what there is to say.
class Silent : public ProgressObserver {
 public:
  void on_progress(const Progress&) override {}
  void on_warning(const std::string&) override {}
};

/// One run as another rank than 0 sees it.
class MembersRun : public RankRun {
 public:
  MembersRun(Link& link, const Order& order, const Hello& hello)
      : RankRun(link, order, hello), stop_(link.stop().get_token()) {}

  bool judges_machine() const override { return order_.judges_machine; }

  tl::expected<void, std::string> ready(tl::expected<void, std::string> own) override {
    link_.send(0, Kind::ready, to_bytes(Ready{order_.ticket, own ? "" : own.error()}));
    return own;
  }

  tl::expected<TimePoint, std::string> start() override {
    while (!over_ && !stop_.stop_requested() && !root_is_gone(link_)) {
      const auto message = link_.next(link_.now() + kLook, stop_);
      Start start;
      if (message && message->kind == Kind::start && from_bytes(message->body, start) &&
          start.ticket == order_.ticket) {
        const TimePoint at = link_.now() + start.lead;
        link_.send(0, Kind::started, to_bytes(Started{order_.ticket}));
        return at;
      }
      if (message) take(*message);
    }
    return tl::unexpected<std::string>("the run was called off");
  }

  std::unique_ptr<WholeRun> gather(const PartOfRun& of) override {
    Part part = part_of(of);
    // First: after a stop there is little time.
    link_.send(0, Kind::part, to_bytes(PartReport{order_.ticket, part}));
    keep(part);
    return nullptr;
  }

  void add_to(RunEvidence& /*evidence*/) const override {}
  void complete(results::Run& /*result*/) const override {}

  /// Rank 0 audits the run and removes its keys first, which may take long.
  void await_over() {
    TimePoint until = TimePoint::max();
    while (!over_ && !root_is_gone(link_) && link_.now() < until) {
      if (stop_.stop_requested()) until = std::min(until, link_.now() + kUntilLeft);
      if (const auto message = link_.next(std::min(until, link_.now() + kLook), {})) take(*message);
    }
    if (over_ && !keeps_file_) forget_file();
  }
  /// What rank 0 said of the end of all runs, if it has.
  const std::optional<Leave>& left() const { return left_; }

 private:
  void take(const Message& message) {
    Over over;
    Leave leave;
    if (message.kind == Kind::over && from_bytes(message.body, over) &&
        over.ticket == order_.ticket) {
      over_ = true;
      keeps_file_ = over.keep;
    } else if (message.kind == Kind::leave && from_bytes(message.body, leave)) {
      over_ = true;
      left_ = leave;
    }
  }

  const std::stop_token stop_;
  bool over_ = false, keeps_file_ = true;
  std::optional<Leave> left_;
};

/// Returns what rank 0 said of the end of all runs meanwhile.
std::optional<Leave> follow(const Order& order, Link& link, const MemberSettings& settings) {
  MembersRun joint(link, order, settings.hello);
  const Descriptor* const strategy = find_strategy(order.strategy);
  if (strategy == nullptr || !strategy->not_built.empty()) {
    static_cast<void>(joint.ready(tl::unexpected(order.strategy + " is not in this rank's build")));
  } else {
    RunPlan plan = plan_of(order);
    plan.workload = part_of(order.workload, joint.share(), order.ranks_beside);
    plan.make_env = settings.make_env;
    plan.provide_services = settings.provide_services;
    plan.machine = settings.machine;
    plan.watcher = settings.watcher_of ? settings.watcher_of(order) : nullptr;
    Silent silent;
    const Progress progress{.strategy = order.strategy, .run = order.number};
    LiveRun run(plan, *strategy, order.repetition, progress, silent, link.stop().get_token(),
                &joint);
    // Rank 0 has heard how it went.
    static_cast<void>(run.execute());
  }
  joint.await_over();
  return joint.left();
}

/// After a stop. A launcher kills the others as soon as one rank has ended: none goes before rank 0
/// has saved the result.
std::optional<Leave> await_leave(Link& link) {
  const TimePoint until = link.now() + kUntilLeft;
  while (link.now() < until) {
    const auto message = link.next(until);
    Leave leave;
    if (message && message->kind == Kind::leave && from_bytes(message->body, leave)) return leave;
  }
  return std::nullopt;
}

}  // namespace

bool serve(Link& link, const MemberSettings& settings) {
  const std::stop_token stop = link.stop().get_token();
  link.send(0, Kind::hello, to_bytes(settings.hello));
  std::optional<Leave> left;
  while (!left && !stop.stop_requested()) {
    if (root_is_gone(link)) return false;
    const auto message = link.next(link.now() + kLook, stop);
    Leave leave;
    Order order;
    if (!message) continue;
    if (message->kind == Kind::leave && from_bytes(message->body, leave)) left = leave;
    if (message->kind == Kind::order && from_bytes(message->body, order)) {
      left = follow(order, link, settings);
    }
  }
  if (!left) left = await_leave(link);
  return left && left->together;
}

}  // namespace lockbench::loadgen::cluster
