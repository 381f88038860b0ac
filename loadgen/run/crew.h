#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>

#include "results/file/model.h"
#include "strategies/duration.h"

namespace lockbench::loadgen {

struct RunShared;
struct RunEvidence;

/// The sections that had been done at that time.
struct SectionsDone {
  TimePoint at;
  std::uint64_t sections = 0;
};

/// The clients of one run, wherever they are. All calls come from the runner's thread, in their
/// order here, except for done(). The end of `over` in RunShared ends the load.
class Crew {
 public:
  virtual ~Crew() = default;

  /// Starts the clients and waits until all are connected; `connected` is told how many are. If one
  /// cannot, or after a stop, no client is left. The error says why.
  virtual tl::expected<void, std::string> connect(const std::function<void(int)>& connected) = 0;
  /// When the load begins, now or soon.
  virtual TimePoint start_time() = 0;
  /// The times of the load are set: clients may work.
  virtual void begin() = 0;
  /// Waits until that time, the end of the load, a stop, or until no client works any more.
  virtual void wait(TimePoint until) = 0;
  /// No client is left, though the load's end has not come.
  virtual bool nobody_works() = 0;
  /// How long what clients record needs until it is seen here.
  virtual Duration delay() const { return Duration::zero(); }
  /// The latest that are known for certain; nothing: those in the recorder are of now. On any
  /// thread, after begin().
  virtual std::optional<SectionsDone> done() const { return std::nullopt; }
  /// The load ends earlier than its workload says; `when` is at least twice the delay() from now.
  virtual void end_at(TimePoint /*when*/) {}
  /// The load is over: lets clients finish what is under way, for a bounded time, and ends them.
  virtual void drain() = 0;
  /// After drain(): counts what was due until then and was never begun.
  virtual void count_never_begun(TimePoint until) = 0;
  /// What the generator used elsewhere.
  virtual void add_to(RunEvidence& /*evidence*/) const {}
  /// Adds what only it knows to the finished result.
  virtual void complete(results::Run& /*result*/) const {}
};

}  // namespace lockbench::loadgen
