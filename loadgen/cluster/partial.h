#pragma once

#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/cluster/order.h"
#include "loadgen/cluster/reports.h"
#include "results/file/model.h"

namespace lockbench::loadgen::cluster {

/// One second of a rank's load.
struct Second {
  results::SeriesPoint point;
  Samples acquired;
};

/// What a rank has recorded of a run so far, as its file keeps it.
struct Partial {
  int rank = 0, ranks = 1;
  Hello hello;
  Order order;    ///< without secrets
  int nodes = 0;  ///< of a quorum
  Duration measured{};
  bool complete = false;  ///< the rank ended by itself, or was told to stop
  ClockReport clock;
  UseReport use;
  Record record;
  std::vector<Second> series;
};

/// The file of a rank.
std::string path_of(const Order& order, int rank);
/// Writes it, all or nothing. Only a lockbench of the same build can read it.
tl::expected<void, std::string> save(const Partial& partial, const std::string& build);
/// Removes it.
void forget(const Order& order, int rank);

bool is_partial(const std::string& text);
/// From anywhere: the error says in one line what is wrong with it.
tl::expected<Partial, std::string> read_partial(const std::string& text, const std::string& build);

/// One run from what its ranks recorded. They must be of one run, each rank once; those that are
/// missing, or that did not end by themselves, are marked as lost. Of overlaps, handoffs,
/// contention and fencing numbers between ranks these files do not tell: rank 0 saw them.
tl::expected<results::Run, std::string> merge(std::vector<Partial> partials);

}  // namespace lockbench::loadgen::cluster
