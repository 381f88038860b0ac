#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "results/file/model.h"
#include "results/report/report.h"
#include "results/report/view.h"
#include "results/tables/table.h"

namespace lockbench::results::report {

/// A point that a chart leaves out.
inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The parts of a view, each from one part of a result. They add nothing if there is nothing to
// show.

/// The runs of one strategy, which are its repetitions.
struct Group {
  std::string strategy;
  std::vector<const Run*> runs;  ///< at least one

  /// The one whose throughput is in the middle.
  const Run& typical() const;
  /// Whether any of them came out so.
  bool ever(Verdict verdict) const;
  /// Whether all of them did: one violation is enough to reject a lock.
  bool kept_exclusion() const;
};
/// In the order of the result, which must outlive them.
std::vector<Group> groups_of(const Result& result);

/// The main findings, the most important first.
void add_run_headline(const Result& result, Remarks& headline);
void add_hazard_headline(const Result& result, Remarks& headline);

void add_capacity_headline(const Result& result, Remarks& headline);
void add_watch_headline(const Result& result, Remarks& headline);

/// The strategies that have lines in charts; those that are shown first come first.
std::vector<Picked> pick(const std::vector<Group>& groups);

void add_run_sections(const Source& source, const std::vector<Picked>& order, Part& part);
void add_time_section(const std::vector<Group>& groups, const std::vector<Picked>& order,
                      Part& part);
void add_cost_sections(const Result& result, const std::vector<Group>& groups, Part& part);
void add_hazard_section(const Result& result, Part& part);
void add_experiment_section(const Result& result, Part& part);
void add_capacity_sections(const Result& result, Part& part);
void add_watch_sections(const Result& result, Part& part);
void add_facts_section(const Source& source, Part& part);

/// What an experiment's figures say; where a lock failed comes first.
Remarks remarks_of(const Experiment& experiment);

/// Several results side by side.
std::vector<Section> overview_of(std::span<const Source> sources);

Table captioned(std::string caption, const results::Table& table);

}  // namespace lockbench::results::report
