#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "loadgen/cluster/link.h"
#include "loadgen/cluster/order.h"
#include "loadgen/cluster/ranks.h"
#include "loadgen/cluster/replay.h"
#include "loadgen/cluster/reports.h"
#include "loadgen/run/crew.h"

namespace lockbench::loadgen::cluster {

/// What rank 0 knows of the ranks, and what it tells them beside a run's plan.
struct Team {
  std::vector<Hello> hellos;      ///< by rank
  std::vector<int> ranks_beside;  ///< on the same host, itself included
  std::vector<Duration> rtts;     ///< added between a rank and private servers; empty: none
  /// The endpoints of a rank, where they are not those of the plan; may be empty.
  std::function<Endpoints(int rank, const Endpoints&)> endpoints_of;
  Share::Split split = Share::Split::block;
  std::string partial_path, heading;
  std::function<std::string(int rank)> metrics_of;  ///< where it serves its own; may be empty
  std::vector<bool> lost;   ///< ranks that have ended; they get no further run
  int tickets = 0;          ///< of orders so far
  bool kept_files = false;  ///< those of ranks are needed

  bool is_complete() const { return std::find(lost.begin(), lost.end(), true) == lost.end(); }
};

/// The clients of all ranks, as rank 0's runner sees them. Adds what the ranks record to the run of
/// rank 0, on the runner's thread, while the run is under way.
class RemoteCrew : public Crew {
 public:
  /// All must outlive it.
  RemoteCrew(Link& link, Team& team, const RunPlan& plan, RunShared& run, RunTurn turn);
  /// The ranks forget the run.
  ~RemoteCrew() override;

  tl::expected<void, std::string> connect(const std::function<void(int)>& connected) override;
  TimePoint start_time() override;
  void begin() override {}
  void wait(TimePoint until) override;
  bool nobody_works() override { return all_have_ended(); }
  Duration delay() const override;
  std::optional<SectionsDone> done() const override;
  void end_at(TimePoint when) override;
  void drain() override;
  void count_never_begun(TimePoint /*until*/) override {}  // the ranks do
  void add_to(RunEvidence& evidence) const override;
  void complete(results::Run& result) const override;

 private:
  struct Rank {
    RankFigures figures;
    int connected = 0;
    bool ready = false, ended = false;
    std::string failed;
    TimePoint heard_at{};
    TimePoint complete_until{};  ///< of its records
  };

  void take(const Message& message);
  void take_record(Rank& rank, int number, const RecordReport& report);
  /// Records come in bursts, so between them the recorder's count belongs to no time.
  void note_done();
  bool all_have_ended() const;
  bool all_are_ready() const;
  void lose(int number, const std::string& why);
  void lose_silent();

  Link& link_;
  Team& team_;
  const RunPlan& plan_;
  RunShared& run_;
  const RunTurn turn_;
  Order order_;
  std::vector<Rank> ranks_;
  Replay replay_;
  std::uint64_t missed_ = 0;
  mutable std::mutex done_mutex_;
  SectionsDone done_;
};

}  // namespace lockbench::loadgen::cluster
