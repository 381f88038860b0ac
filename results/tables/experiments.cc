#include "results/tables/experiments.h"

namespace lockbench::results {

Table point_table(const Experiment& experiment) {
  return std::visit([](const auto& points) { return point_table(points); }, experiment.points);
}

Table experiment_table(const Experiment& experiment) {
  const auto* doses = std::get_if<std::vector<DosePoint>>(&experiment.points);
  return doses == nullptr ? point_table(experiment) : dose_matrix(*doses);
}

std::vector<std::string> findings(const Experiment& experiment) {
  return std::visit([](const auto& points) { return findings(points); }, experiment.points);
}

std::vector<std::string> violations(const Experiment& experiment) {
  const auto* quorum = std::get_if<std::vector<QuorumPoint>>(&experiment.points);
  return quorum == nullptr ? std::vector<std::string>() : violations(*quorum);
}

}  // namespace lockbench::results
