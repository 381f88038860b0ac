#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "hazards/play.h"

namespace lockbench::hazards {

/// The servers for plays of this strategy.
deployment::StoreRequest request_of(const Descriptor& strategy, Setup setup);

/// Shared by all plays of a matrix: servers that no play disturbs, the protected counter's server,
/// and the program that clients run. Thread-safe.
class ServerPool final : public Venue {
 public:
  struct Options {
    std::filesystem::path client_program{};  ///< understands `client`; empty: this program
    bool tls = false;                        ///< servers speak TLS, and clients verify them
    history::Log* history = nullptr;         ///< takes the operations of all plays; may be null
  };

  static tl::expected<std::unique_ptr<ServerPool>, std::string> open(Options options);

  /// Shared servers start when first needed.
  tl::expected<std::shared_ptr<PrivateStore>, NotStarted> store(const Descriptor& strategy,
                                                                Setup setup) override;
  std::unique_ptr<ControlledClient> start_client() override {
    return std::make_unique<ClientProcess>(client_program_);
  }
  std::unique_ptr<testbed::Line> line_to(std::uint16_t port) override {
    return deployment::line_to(*host_, port);
  }
  std::unique_ptr<testbed::ClockShim> make_clock() override {
    return need(testbed::ClockShim::make(*host_));
  }
  std::string counter_url() const override { return counter_->urls().front(); }
  std::uint64_t counter(const std::string& key) override;
  std::string fresh_key() override;
  history::Log* history() const override { return history_; }
  const std::filesystem::path& client_program() const { return client_program_; }

 private:
  ServerPool() = default;

  std::filesystem::path client_program_;
  history::Log* history_ = nullptr;
  std::unique_ptr<testbed::Testbed> host_;  ///< outlives its servers
  std::unique_ptr<PrivateStore> counter_;
  std::mutex mutex_;
  /// By the kind of servers. Servers that failed to start are not tried again.
  std::map<std::string, tl::expected<std::shared_ptr<PrivateStore>, NotStarted>, std::less<>>
      shared_;
};

/// One cell of the matrix and its result.
struct Cell {
  const Scenario* scenario = nullptr;
  const Descriptor* strategy = nullptr;
  HazardOutcome expected = HazardOutcome::safe;
  /// Empty: not played yet, or it could not be played.
  std::optional<HazardOutcome> observed{};
  /// What was observed, why the scenario does not apply, or why it could not be played.
  std::string reason{};
  bool failed = false;  ///< the play broke off: a server or lockbench itself failed
  /// A step of the play was late, so it counts as not played; `reason` names the step.
  bool disturbed = false;
  std::map<std::string, Fact> evidence{};
  std::vector<TimelineEntry> timeline{};
  TimePoint began{};
  Duration took{};
  int round = 0;  ///< of repeated(); the seed of a simulated play

  bool played() const { return observed.has_value(); }
  bool agrees() const { return observed == expected; }
};

/// A cell that has not been played: the expected outcome, or not applicable.
Cell make_cell(const Scenario& scenario, const Descriptor& strategy);

/// Plays one cell. Does not throw if a server or client fails: the cell's reason says so.
Cell play(Venue& venue, const Scenario& scenario, const Descriptor& strategy);

/// Plays a cell that has not been played. Thread-safe.
using PlayCell = std::function<Cell(const Cell&)>;

/// Plays all cells, `at_once` of them in parallel; `on_done` is called for each, one at a time.
/// After a stop request, running plays end and no new ones start.
void play_all(const PlayCell& play_one, std::vector<Cell>& cells, int at_once,
              const std::function<void(const Cell&)>& on_done, const std::stop_token& stop);
/// On these servers.
inline void play_all(ServerPool& servers, std::vector<Cell>& cells, int at_once,
                     const std::function<void(const Cell&)>& on_done, const std::stop_token& stop) {
  play_all([&](const Cell& cell) { return play(servers, *cell.scenario, *cell.strategy); }, cells,
           at_once, on_done, stop);
}

/// One cell, played several times.
struct Repeated {
  /// The first play with an undeclared outcome; else the first that ended with an outcome.
  Cell shown;
  std::map<HazardOutcome, int> outcomes;  ///< how often each was observed
  std::vector<std::string> failures;      ///< reasons of plays that broke off

  /// Whether outcomes differ; disturbed plays do not count.
  bool unstable() const;
  /// "safe 19 times, double-grant once"
  std::string tally() const;
};

/// All cells once per round, `times` rounds.
std::vector<Cell> repeated(const std::vector<Cell>& cells, int times);

/// Groups plays in the order of repeated() by cell.
std::vector<Repeated> gather(const std::vector<Cell>& plays, std::size_t cells);

}  // namespace lockbench::hazards
