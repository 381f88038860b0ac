#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/commands/measurement.h"
#include "cli/commands/probe_health.h"

namespace lockbench::cli {

struct ProbeOptions : LoadOptions {
  static constexpr std::string_view kCommand = "probe";
  std::optional<Duration> duration;
  std::optional<std::string> deployment;
  std::vector<std::string> args;  ///< all of this, as given

  ProbeOptions() {
    workload.clients = 4;
    workload.acquire_timeout = std::chrono::seconds(2);
    workload.ttl = std::chrono::seconds(3);
  }
  void declare(OptionList& options);
  void complete(const OptionList& options);
};

/// The URLs of the servers, as their files give them now. Thread-safe.
class GivenServers {
 public:
  explicit GivenServers(const ProbeOptions& options)
      : args_(options.args), servers_(options.servers) {}

  std::vector<std::string> urls(std::string_view backend);

 private:
  /// A file that is just being written may be incomplete: URLs that it lacks stay.
  void read();

  const std::vector<std::string> args_;
  std::mutex mutex_;
  ServerUrls servers_;
  TimePoint read_at_ = TimePoint::clock::now();
};

/// What the probers of one command share.
struct ProbeCommon {
  const ProbeOptions& options;
  exporter::RunMetrics* metrics;  ///< may be null
  std::optional<TimePoint> until;
  Console& console;
  GivenServers servers;
  std::mutex mutex{};
  std::set<std::string> warned{};

  /// Several strategies find the same about their server.
  void warn_once(const std::string& line) {
    const std::scoped_lock lock(mutex);
    if (warned.insert(line).second) console.warn("warning: " + line);
  }
};

/// Probes one strategy, on its own thread, until --duration is over or a stop.
class Prober : loadgen::ProgressObserver, loadgen::RunWatcher {
 public:
  Prober(loadgen::RunPlan plan, Selected selected, ProbeCommon& common);

  void probe(const std::stop_token& stop);

  /// Call if its thread could not start, or failed.
  void give_up(const std::string& why) {
    gave_up_ = true;
    health_.on_unreachable(why);
  }
  bool gave_up() const { return gave_up_; }
  /// Why its servers cannot have this strategy, which was not named.
  const std::optional<std::string>& skipped() const { return skipped_; }

  bool broken() const { return broken_; }
  /// "redis-fenced: two holders at once: 1", over all rounds.
  std::string what_broke() const;
  /// In a section, an outage, or a new connection.
  bool had_errors() const { return had_errors_; }

 private:
  static Duration calm_of(const loadgen::Workload& workload);

  const Descriptor& strategy() const { return *plan_.strategies.front(); }

  /// Checks the servers before the first round, and after their URLs have changed. Returns why they
  /// cannot be used; empty: they can.
  std::string reach(const std::stop_token& stop);

  /// Returns why it could not begin; empty: it did.
  std::string round(const std::stop_token& stop);

  void run_begins(const loadgen::RunShared& run) override;
  void run_ends(const loadgen::RunShared& run, const results::Run* result) override;

  void on_progress(const loadgen::Progress& progress) override;
  void on_warning(const std::string& line) override { health_.on_warning(line); }

  /// Whether the process stood still since the previous progress: it was stopped, or its host was.
  /// Leases ran out meanwhile and sections are late, which is not the store's fault: the round
  /// ends, and counts up to that progress.
  bool stood_still(const loadgen::Progress& progress);

  void look_at_findings();

  /// Which server processes answer; empty for those that do not tell.
  std::vector<std::string> instances() const;

  /// Of findings.
  std::string cause();

  /// Opens and closes a connection now and then, while the open ones work.
  void try_connection();

  void tell(std::optional<loadgen::FailureReason> reason);

  /// The sections that were due in `lost` count as failed.
  void note_outage(const std::string& why, Duration tried, Duration lost);

  void note(const results::Run& run);

  loadgen::RunPlan plan_;
  const Selected selected_;
  ProbeCommon& common_;
  ProbeHealth health_;
  std::vector<std::string> urls_;  ///< of its servers, as they were last reached
  std::optional<std::string> skipped_;
  double due_ = 0;  ///< sections, or a part of one, that were due during an outage
  std::optional<TimePoint> restarted_at_;
  TimePoint next_connection_;
  ProbeFindings violations_;
  std::uint64_t regressions_ = 0;
  bool broken_ = false, had_errors_ = false, gave_up_ = false;
  // Of the current round:
  std::stop_source over_;
  const loadgen::RunShared* live_ = nullptr;
  ProbeFindings found_;                 ///< so far
  std::optional<TimePoint> beaten_at_;  ///< the latest progress
  std::vector<std::string> server_;     ///< the processes that answer
  bool paused_ = false;                 ///< the process stood still
};

}  // namespace lockbench::cli
