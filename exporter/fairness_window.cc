#include "exporter/fairness_window.h"

#include <algorithm>
#include <functional>

#include "results/stats/statistics.h"

namespace lockbench::exporter {

FairnessWindow::FairnessWindow(std::size_t clients, TimePoint now)
    : older_(clients), newer_(clients), newer_at_(now) {}

double FairnessWindow::jain(const std::vector<std::uint64_t>& sections, TimePoint now) {
  std::vector<std::uint64_t> lately(sections.size());
  std::ranges::transform(sections, older_, lately.begin(), std::minus());
  if (now - newer_at_ >= kShortest) {
    older_ = std::move(newer_);
    newer_ = sections;
    newer_at_ = now;
  }
  const bool none = std::ranges::all_of(lately, [](std::uint64_t own) { return own == 0; });
  return none ? 0 : results::jain_index(lately);
}

}  // namespace lockbench::exporter
