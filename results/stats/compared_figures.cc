#include "results/stats/compared_figures.h"

#include <algorithm>
#include <array>

#include "results/file/model.h"
#include "results/stats/figures.h"

namespace lockbench::results {
namespace {

struct Usual {
  std::string_view path;
  Unit unit;
  Good good;
};

constexpr std::array kUsual{
    Usual{"sections_per_second", Unit::number, Good::higher},
    Usual{"acquire.mean", Unit::seconds, Good::lower},
    Usual{"acquire.p50", Unit::seconds, Good::lower},
    Usual{"acquire.p99", Unit::seconds, Good::lower},
    Usual{"handoff.p50", Unit::seconds, Good::lower},
    Usual{"hold.p50", Unit::seconds, Good::lower},
    Usual{"release.p50", Unit::seconds, Good::lower},
    Usual{"commands_per_section", Unit::number, Good::lower},
    Usual{"server_cpu_seconds_per_section", Unit::seconds, Good::lower},
    Usual{"fairness.jain", Unit::number, Good::higher},
    Usual{"outcomes.timed_out", Unit::count, Good::lower},
    Usual{"outcomes.failed", Unit::count, Good::lower},
    Usual{"leases_lost", Unit::count, Good::lower},
    Usual{"audit.lost_updates", Unit::count, Good::lower},
    Usual{"audit.overlaps", Unit::count, Good::lower},
};

/// Compared only if requested. A path that ends in a dot stands for a distribution.
constexpr std::array kMore{
    Usual{"sections", Unit::count, Good::higher},
    Usual{"outcomes.acquired", Unit::count, Good::higher},
    Usual{"fairness.longest_wait_seconds", Unit::seconds, Good::lower},
    Usual{"renewal.margin.", Unit::seconds, Good::higher},
    Usual{"renewal.duration.", Unit::seconds, Good::lower},
    Usual{"renewal.slip.", Unit::seconds, Good::lower},
    Usual{"quorum.validity.", Unit::seconds, Good::higher},
    Usual{"replication.wait.", Unit::seconds, Good::lower},
    Usual{"acquire_by_mode.exclusive.", Unit::seconds, Good::lower},
    Usual{"acquire_by_mode.shared.", Unit::seconds, Good::lower},
    Usual{"transactions.acquire.", Unit::seconds, Good::lower},
    Usual{"transactions.acquire_service.", Unit::seconds, Good::lower},
    Usual{"transactions.aborts", Unit::count, Good::lower},
    Usual{"transactions.retries", Unit::count, Good::lower},
    Usual{"transactions.deadlocks", Unit::count, Good::lower},
};

bool is_count(std::string_view path) {
  return path.starts_with("outcomes.") || path.starts_with("releases.") || path == "sections" ||
         (path.starts_with("audit.") && !path.ends_with("_seconds")) ||
         std::any_of(kRunCounts.begin(), kRunCounts.end(),
                     [&](const auto& count) { return path == count.name; });
}

/// Whether a figure of a distribution is a time: not its count, nor a figure of its histogram.
bool is_time(std::string_view path) {
  return !path.ends_with(".count") && path.find(".histogram.") == std::string_view::npos;
}

bool stands_for(const Usual& one, std::string_view path) {
  return one.path == path ||
         (one.path.ends_with('.') && path.starts_with(one.path) && is_time(path));
}

}  // namespace

ComparedFigure compared_figure(const std::string& path) {
  const auto* const usual = std::find_if(kUsual.begin(), kUsual.end(),
                                         [&](const Usual& one) { return one.path == path; });
  if (usual != kUsual.end()) return {path, usual->unit, usual->good};
  const auto* const more = std::find_if(kMore.begin(), kMore.end(),
                                        [&](const Usual& one) { return stands_for(one, path); });
  if (more != kMore.end()) return {path, more->unit, more->good};
  const bool is_latency = distribution_of(path) && is_time(path);
  if (is_latency || path.ends_with("_seconds")) {
    return {path, Unit::seconds, is_latency ? Good::lower : Good::unknown};
  }
  return {path, is_count(path) ? Unit::count : Unit::number, Good::unknown};
}

std::vector<ComparedFigure> compared_figures(std::span<const std::string> more) {
  std::vector<ComparedFigure> figures;
  figures.reserve(kUsual.size() + more.size());
  for (const Usual& usual : kUsual) {
    figures.push_back({std::string(usual.path), usual.unit, usual.good});
  }
  for (const std::string& path : more) {
    const bool known = std::any_of(figures.begin(), figures.end(),
                                   [&](const ComparedFigure& one) { return one.path == path; });
    if (!known) figures.push_back(compared_figure(path));
  }
  return figures;
}

}  // namespace lockbench::results
