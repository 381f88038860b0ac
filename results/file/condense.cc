#include "results/file/condense.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "results/file/fields.h"
#include "results/file/option_values.h"

namespace lockbench::results {
namespace {

/// To four significant digits.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  // Divided, not multiplied by the inverse: so that the shortest decimal form has four digits.
  return scale >= 1 ? std::round(value * scale) / scale
                    : std::round(value * scale) * std::round(1 / scale);
}

/// A visitor of every field, as in fields.h.
class Condenser {
 public:
  template <class T>
  void operator()(const char* /*name*/, T& value) {
    condense(value);
  }
  void measured(const char* /*name*/, double& value, bool /*exists*/) { condense(value); }

  template <class Fill>
  void group(const char* /*name*/, Fill fill) {
    fill(*this);
  }
  template <class T>
  void where_there(const char* /*name*/, T& value) {
    condense(value);
  }
  void constant(const char* /*name*/, const char* /*text*/) {}
  void points(Experiment& experiment) {
    std::visit([this](auto& points) { condense(points); }, experiment.points);
  }

 private:
  void condense(double& value) { value = rounded(value); }
  void condense(std::vector<Distribution::Bucket>& buckets) { buckets.clear(); }
  void condense(std::vector<SeriesPoint>& series) { series.clear(); }
  void condense(std::vector<HazardEvent>& timeline) { timeline.clear(); }
  /// The workload as it was asked for.
  void condense(OptionValue& /*value*/) {}

  template <class T>
  void condense(std::optional<T>& value) {
    if (value) condense(*value);
  }
  template <class T>
  void condense(std::vector<T>& values) {
    for (T& value : values) condense(value);
  }
  template <class T>
  void condense(std::map<std::string, T>& values) {
    for (auto& [name, value] : values) condense(value);
  }
  template <class T>
  void condense(T& value) {
    if constexpr (requires(Condenser inner) { describe(inner, value); }) describe(*this, value);
  }
};

void keep_what_tells(Hazard& hazard) {
  constexpr std::array<std::string_view, 3> kTelling{"reason", "recovery_seconds", "unstable"};
  std::erase_if(hazard.evidence, [&](const auto& entry) {
    return std::find(kTelling.begin(), kTelling.end(), entry.first) == kTelling.end();
  });
  for (auto& [name, value] : hazard.evidence) {
    if (auto* number = std::get_if<double>(&value)) *number = rounded(*number);
  }
}

Run what_ranks(Run run) {
  return {.strategy = std::move(run.strategy),
          .backend = std::move(run.backend),
          .repetition = run.repetition,
          .load = std::move(run.load),
          .duration_seconds = run.duration_seconds,
          .sections = run.sections,
          .sections_per_second = run.sections_per_second,
          .outcomes = run.outcomes,
          .leases_lost = run.leases_lost,
          .acquire = std::move(run.acquire),
          .release = std::move(run.release),
          .awaited_releases = run.awaited_releases,
          .direct_handoffs = run.direct_handoffs,
          .overtakings = run.overtakings,
          .wait = run.wait,
          .attempts_per_grant = run.attempts_per_grant,
          .commands_per_section = run.commands_per_section,
          .fairness = std::move(run.fairness),
          .audit = run.audit,
          .generator = std::move(run.generator)};
}

}  // namespace

Result condense(Result result) {
  Condenser condenser;
  describe(condenser, result);
  // Readers of a reference do not need the paths it was written to.
  std::erase_if(result.workload, [](const auto& option) { return is_of_output(option.first); });
  for (Run& run : result.runs) {
    run.commands.clear();
    run.fairness.per_client.clear();
    run.schedule_lag = run.turnaround = {};
    if (run.repetition > 1) run = what_ranks(std::move(run));
  }
  if (result.hazards) {
    for (Hazard& hazard : *result.hazards) keep_what_tells(hazard);
  }
  return result;
}

}  // namespace lockbench::results
