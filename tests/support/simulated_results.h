#pragma once

#include <cstdint>

#include "results/file/model.h"

namespace lockbench::test {

/// A simulated run of lockbench whose true figures are known. Figures scatter lognormally between
/// repetitions and between seconds, the seconds as an AR(1) process; all figures of one repetition
/// share part of its deviation.
struct Simulation {
  int strategies = 3, repetitions = 5, seconds = 3;
  double slowdown = 0;         ///< of all latencies and rates; 0.1 is 10 %
  double between_calls = 0;    ///< standard deviation shared by all repetitions of a call
  double between_runs = 0.02;  ///< of repetitions
  double within_runs = 0.03;   ///< of seconds
  double memory = 0.5;         ///< correlation of one second with the next
};

results::Result simulated_result(const Simulation& simulation, std::uint64_t seed);

}  // namespace lockbench::test
