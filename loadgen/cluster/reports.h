#pragma once

#include <string>
#include <vector>

#include "loadgen/cluster/record.h"

// What ranks tell rank 0 beside what they recorded.
namespace lockbench::loadgen::cluster {

/// Where a rank runs, and what.
struct Hello {
  std::string host, build;
  std::string network;  ///< the same for ranks that share loopback addresses
  std::string boot;  ///< of its kernel: the same for ranks that share cores, in whatever namespace
  int cores = 1;
};

struct Connected {
  int number = 0;  ///< the ticket of the run's order
  int clients = 0;
  bool all = false;
  std::string why;  ///< `failed` only
  Record record;    ///< at the end, so that what it left in stores is known
};

/// Of a rank's clock: rank 0's is ahead by `offset`, and faster by the share `drift`.
struct ClockReport {
  Duration offset{}, bound{};
  double drift = 0;
};

/// Of what a rank used, when its clients have ended.
struct UseReport {
  double cpu_seconds = 0, wall_seconds = 0;
  int threads = 0;
  bool on_fibers = false;
  double busiest_thread_share = 0;
  std::uint64_t stack_high_water_bytes = 0;
  Duration late{};  ///< began the load so late
  Duration lag_p99{};
  std::vector<std::string> reasons;  ///< why its figures are those of the generator
};

/// What has come since the record before.
struct RecordReport {
  int number = 0;  ///< the ticket of the run's order
  Record record;
  std::vector<LockEvent> events;  ///< by the clock of rank 0
  std::uint64_t missed = 0;       ///< events that had no room
  TimePoint complete_until;       ///< likewise
  ClockReport clock;
  bool last = false;
  UseReport use;  ///< of the last one
};

struct Start {
  int number = 0;  ///< likewise, as in the following
  TimePoint at;    ///< by the clock of rank 0
};

struct Stop {
  int number = 0;
  TimePoint at;
  bool abort = false;  ///< without waiting for answers
};

struct Over {
  int number = 0;
  bool keep = false;  ///< the files of the ranks are needed
};

struct Leave {
  bool together = true;  ///< no rank was lost
};

}  // namespace lockbench::loadgen::cluster
