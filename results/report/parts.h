#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/file/model.h"
#include "results/report/report.h"
#include "results/report/view.h"
#include "results/tables/experiment_sheet.h"

namespace lockbench::results::report {

// The pieces of a view, each from one corner of a result. Where there is nothing to show they add
// nothing.

/// The runs of one strategy, which are its repetitions.
struct Group {
  std::string strategy;
  std::vector<const Run*> runs;  ///< at least one

  /// The one whose throughput is in the middle.
  const Run& typical() const;
  /// Whether any of them came out so.
  bool ever(Verdict verdict) const;
  /// Whether all of them did: a lock that failed once is no lock, however fast it is.
  bool kept_exclusion() const;
};
/// In the order of the result, which must outlive them.
std::vector<Group> groups_of(const Result& result);

/// What stands out, in plain words, the most important first.
void add_run_headline(const Result& result, Remarks& headline);
void add_hazard_headline(const Result& result, Remarks& headline);

void add_capacity_headline(const Result& result, Remarks& headline);

/// Which strategies have lines in charts, those to be seen at first in front.
std::vector<Picked> pick(const std::vector<Group>& groups);

void add_run_sections(const Source& source, const std::vector<Picked>& order, Part& part);
void add_time_section(const std::vector<Group>& groups, const std::vector<Picked>& order,
                      Part& part);
void add_cost_sections(const std::vector<Group>& groups, Part& part);
void add_hazard_section(const Result& result, Part& part);
void add_experiment_section(const Result& result, Part& part);
void add_belief_section(const Result& result, Part& part);
void add_capacity_sections(const Result& result, Part& part);
void add_facts_section(const Source& source, Part& part);

/// What an experiment's figures say; where a lock failed comes first.
Remarks remarks_of(const Experiment& experiment);

/// Several results side by side.
std::vector<Section> overview_of(std::span<const Source> sources);

/// Cells without a tone.
Table plain_table(std::string caption, const TextSheet& sheet);

/// The figures of a bar chart as a table.
Table table_of(const BarChart& chart);

/// As people read it; nothing for null.
std::string value_text(const OptionValue& value);

}  // namespace lockbench::results::report
