#include "results/tables/hgrm.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "results/file/loads.h"
#include "results/stats/figures.h"

namespace lockbench::results {
namespace {

constexpr double kMicroseconds = 1e6;   ///< in a second
constexpr double kBucketsEnd = 3.6e12;  ///< in nanoseconds: an hour

std::string percentile_lines(const Distribution& distribution, std::uint64_t samples) {
  std::string out;
  const auto line = [](double seconds, double share, std::uint64_t count) {
    return fmt::format("{:12.3f} {:2.12f} {:10}", kMicroseconds * seconds, share, count);
  };
  for (const PercentileStep& step : percentile_steps(distribution)) {
    const double share = step.percent / 100;
    out += line(step.value, share, step.samples) + fmt::format(" {:14.2f}\n", 1 / (1 - share));
  }
  // The last line has no distance to 100 % left.
  if (samples > 0) out += line(distribution.max, 1, samples) + "\n";
  return out;
}

/// Buckets come in groups, of which each is twice as wide as the one before.
std::string layout_line(const Distribution& distribution) {
  if (!(distribution.relative_error > 0)) return "";
  const double in_a_group = 1 / distribution.relative_error;
  return fmt::format("#[Buckets = {:12.0f}, SubBuckets     = {:12.0f}]\n",
                     std::ceil(std::log2(kBucketsEnd / in_a_group)) + 1, in_a_group);
}

/// "redis-queue", "redis-queue.demand-at-350-s".
std::string file_name_of(const Run& run, const Result& result) {
  if (!loads_differ(result)) return run.strategy;
  std::string load = label(run.load);
  for (char& c : load) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  return run.strategy + "." + load;
}

}  // namespace

std::string to_hgrm(const Distribution& distribution) {
  const std::uint64_t samples = distribution.count + distribution.censored.count;
  std::string out = fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile",
                                "TotalCount", "1/(1-Percentile)");
  out += percentile_lines(distribution, samples);
  out += fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n",
                     kMicroseconds * distribution.mean, kMicroseconds * distribution.stddev);
  out += fmt::format("#[Max     = {:12.3f}, Total count    = {:12}]\n",
                     kMicroseconds * distribution.max, samples);
  return out + layout_line(distribution);
}

std::map<std::string, std::string> hgrm_files(const Result& result) {
  std::map<std::string, std::string> files;
  for (const Run& run : result.runs) {
    for (const auto& [time, of] :
         {std::pair("acquire", &Run::acquire), std::pair("hold", &Run::hold),
          std::pair("release", &Run::release), std::pair("handoff", &Run::handoff)}) {
      if (!(run.*of).any()) continue;
      files[fmt::format("{}.{}.{}.hgrm", file_name_of(run, result), run.repetition, time)] =
          to_hgrm(run.*of);
    }
  }
  return files;
}

}  // namespace lockbench::results
