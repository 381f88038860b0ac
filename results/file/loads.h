#pragma once

#include <string>
#include <vector>

#include "results/file/model.h"

namespace lockbench::results {

/// "demand at 350/s", "alone, RTT 1 ms", "1k locks held", "5 nodes, 2 down, 1 client": what tells
/// the loads of one result apart.
std::string label(const Load& load);

/// Whether the runs differ in what an experiment varies, held locks or nodes.
bool is_experiment(const Result& result);

/// Whether not all runs had the same load.
bool loads_differ(const Result& result);

/// Whether they had loads that each answer a question of its own, unlike those of an experiment.
bool has_several_loads(const Result& result);

/// "redis-queue", and its load where runs of the result differ in it.
std::string name_of(const Run& run, const Result& result);

/// A result for each load, which its workload describes, in the order of their first runs.
std::vector<Result> split_by_load(const Result& result);

}  // namespace lockbench::results
