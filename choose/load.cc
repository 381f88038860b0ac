#include "choose/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/file/option_values.h"
#include "results/stats/statistics.h"
#include "results/tables/units.h"

namespace lockbench::choose {
namespace {

using results::human_count;
using results::human_number;
using results::human_seconds;

/// Shorter work is negligible compared with the lock's own time.
constexpr double kNoWork = 1e-3;
/// Loads that differ by less are the same.
constexpr double kSame = 0.1;

double apart(double a, double b) { return std::abs(std::log(a / b)); }

double work_apart(double a, double b) { return apart(a + kNoWork, b + kNoWork); }

/// How many clients want the lock at once: as given, or their mean number if sections arrive at a
/// rate (Little's law), or one.
double contenders(const Load& asked) {
  if (asked.clients) return *asked.clients;
  return asked.rate && asked.work ? std::max(1.0, *asked.rate * *asked.work) : 1;
}

std::string shown_work(double seconds) {
  return seconds > 0 ? human_seconds(seconds) + " of work" : "no work";
}

}  // namespace

Load asked_load(const Requirements& requirements) {
  Load load;
  if (requirements.clients) load.clients = *requirements.clients;
  const auto work = requirements.work_p50 ? requirements.work_p50 : requirements.work_p99;
  if (work) load.work = seconds(*work);
  load.rate = requirements.rate;
  return load;
}

Load measured_load(const results::Result& result) {
  Load load{.clients = results::workload_number(result, "clients"),
            .work = results::workload_number(result, "hold"),
            .rate = results::workload_number(result, "rate")};
  const double keys = std::max(1.0, results::workload_number(result, "keys").value_or(1));
  // "per-client": every client has a lock of its own.
  if (!results::workload_text(result, "keys").empty()) load.clients = 1;
  if (load.clients) load.clients = std::max(1.0, *load.clients / keys);
  // Files come from anywhere.
  if (load.rate && !(*load.rate > 0)) load.rate.reset();
  if (load.work) load.work = std::max(0.0, *load.work);
  if (load.work) return load;
  // A distribution's parameters, or a file from elsewhere: what the sections really took.
  std::vector<double> held;
  for (const results::Run& run : result.runs) {
    if (run.hold.count > 0) held.push_back(std::max(0.0, run.hold.p50));
  }
  load.work = results::median(held);
  return load;
}

double distance(const Load& asked, const Load& measured) {
  double sum = apart(contenders(asked), measured.clients.value_or(1));
  if (asked.work && measured.work) sum += work_apart(*asked.work, *measured.work);
  if (asked.rate.has_value() != measured.rate.has_value()) {
    sum += 1;
  } else if (asked.rate) {
    sum += apart(*asked.rate, *measured.rate);
  }
  return sum;
}

std::vector<Difference> differences(const Load& asked, const Load& measured) {
  std::vector<Difference> found;
  if (asked.clients && measured.clients && apart(*asked.clients, *measured.clients) > kSame) {
    found.push_back(
        {fmt::format("{} client{} at a lock instead of {}", human_count(*measured.clients),
                     *measured.clients == 1 ? "" : "s", human_count(*asked.clients)),
         *measured.clients < *asked.clients});
  }
  if (asked.work && measured.work && work_apart(*asked.work, *measured.work) > kSame) {
    found.push_back(
        {fmt::format("{} instead of {}", shown_work(*measured.work), human_seconds(*asked.work)),
         *measured.work < *asked.work});
  }
  if (!asked.rate) return found;
  if (!measured.rate) {
    found.push_back({fmt::format("clients that ask again at once instead of {} sections a second",
                                 human_number(*asked.rate)),
                     false});
  } else if (apart(*asked.rate, *measured.rate) > kSame) {
    found.push_back({fmt::format("{} sections a second instead of {}", human_number(*measured.rate),
                                 human_number(*asked.rate)),
                     *measured.rate < *asked.rate});
  }
  return found;
}

}  // namespace lockbench::choose
