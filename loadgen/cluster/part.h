#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "loadgen/cluster/order.h"
#include "loadgen/cluster/record.h"
#include "results/file/model.h"

namespace lockbench::loadgen::cluster {

/// Where a rank runs, and what.
struct Hello {
  std::string host, build;
  std::string network;  ///< the same for ranks that share loopback addresses
  std::string boot;  ///< of its kernel: the same for ranks that share cores, in whatever namespace
  int cores = 1;
};

/// One second of a rank's load.
struct Second {
  results::SeriesPoint point;
  Samples acquired;
};

/// What a rank has done of a run so far.
struct Part {
  int rank = 0;
  Hello hello;
  Duration measured{};
  double wall_seconds = 0;
  Duration late{}, lag_p99{};
  bool complete = false;         ///< the rank ended by itself, or was told to stop
  results::Generator generator;  ///< of this rank alone
  Record record;
  std::vector<Second> series;
};

/// The same as a file.
struct PartFile {
  int ranks = 1;
  int nodes = 0;  ///< of a quorum
  Order order;    ///< without secrets
  Part part;
};

/// The file of a rank.
std::string path_of(const Order& order, int rank);
/// Writes it, all or nothing. Only a lockbench of the same build can read it.
tl::expected<void, std::string> save(const PartFile& file);
/// Removes it.
void forget(const Order& order, int rank);

bool is_part(const std::string& text);
/// From anywhere: the error says in one line what is wrong with it.
tl::expected<PartFile, std::string> read_part(const std::string& text, const std::string& build);

}  // namespace lockbench::loadgen::cluster
