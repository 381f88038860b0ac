#pragma once

#include <string>
#include <vector>

#include "loadgen/cluster/reports.h"
#include "results/file/model.h"

namespace lockbench::loadgen::cluster {

/// What is known of each rank of a run apart from the others.
struct RankFigures {
  Hello hello;
  int clients = 0;
  Duration rtt{};
  ClockReport clock;
  Duration worst_bound{};  ///< of all that was told
  UseReport use;
  bool lost = false;
  std::string why_lost;
  HistogramSnapshot acquired;
  std::uint64_t sections = 0;

  /// Adds what it recorded.
  void add(const Record& record);
};

/// Adds to the run what concerns its ranks: the section `ranks`, the threads and CPU of all, and
/// each rank's reasons against the figures, with its name.
void complete_by_ranks(const std::vector<RankFigures>& ranks, results::Run& run);

}  // namespace lockbench::loadgen::cluster
