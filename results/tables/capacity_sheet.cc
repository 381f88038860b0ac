#include "results/tables/capacity_sheet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "results/file/known.h"
#include "results/tables/csv.h"
#include "results/tables/units.h"

namespace lockbench::results {
namespace {

using Lines = std::vector<std::string>;

std::string count(std::uint64_t number) { return human_count(static_cast<double>(number)); }

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string percent(const std::optional<double>& share) { return share ? percent(*share) : "–"; }

std::string held(const Capacity& capacity) {
  return capacity.lowest > 0 ? human_number(capacity.lowest) : "none";
}

std::string amount(double value, const std::string& unit) {
  return unit == "s" ? human_seconds(value) : human_number(value) + "/s";
}

std::string checked(const CapacityModel& model, const Prediction& prediction) {
  std::string line = fmt::format("model {}: at {} {} is predicted as {}", model.name, prediction.at,
                                 prediction.figure, amount(prediction.predicted, prediction.unit));
  if (!prediction.measured) return line;
  line += fmt::format(", measured {}", amount(*prediction.measured, prediction.unit));
  if (prediction.error) line += fmt::format(" (error {:+.0f} %)", 100 * *prediction.error);
  return line;
}

/// The largest error of the predictions that were checked, in what the model is asked for.
std::optional<double> worst_error(const CapacityModel& model) {
  std::optional<double> worst;
  for (const Prediction& prediction : model.predictions) {
    if (!prediction.error) continue;
    worst = std::max(worst.value_or(0), std::abs(*prediction.error));
  }
  return worst;
}

std::string trust(const Capacity& capacity, const CapacityModel& model) {
  double swept = 0;
  for (const CapacitySweepPoint& point : capacity.sweep) {
    if (point.over == "clients") swept = std::max(swept, static_cast<double>(point.at));
  }
  const auto worst = worst_error(model);
  std::string line =
      worst ? fmt::format("where it was checked it was off by up to {}", percent(*worst))
            : "the model was not checked";
  if (swept > 0) line += fmt::format(", and no more than {} clients were measured", swept);
  return line +
         "; of a longer rtt it takes one for each handoff: more if the lock polls. An order of "
         "magnitude, no plan";
}

void add_models(const Capacity& capacity, Lines& lines) {
  for (const CapacityModel& model : capacity.models) {
    bool any = false;
    for (const Prediction& prediction : model.predictions) {
      any = any || prediction.extrapolated;
      lines.push_back(checked(model, prediction) +
                      (prediction.extrapolated ? " (extrapolated)" : ""));
    }
    if (any) {
      lines.push_back(
          fmt::format("extrapolated by model {}: {}", model.name, trust(capacity, model)));
    }
  }
}

void add_planned(const Capacity& capacity, Lines& lines) {
  if (!capacity.planned_rate) return;
  const std::string planned = human_number(*capacity.planned_rate);
  if (!capacity.utilisation || !capacity.headroom) {
    lines.push_back(fmt::format("the planned {}/s: no rate kept the objective", planned));
  } else if (*capacity.headroom < 0) {
    lines.push_back(fmt::format("the planned {}/s are too many: {} of what kept the objective",
                                planned, percent(*capacity.utilisation)));
  } else {
    lines.push_back(
        fmt::format("the planned {}/s are {} of what kept the objective: they may grow "
                    "by {}",
                    planned, percent(*capacity.utilisation), percent(*capacity.headroom)));
  }
}

void add_sweep(const Capacity& capacity, std::string_view over, Lines& lines) {
  Lines parts;
  for (const CapacitySweepPoint& point : capacity.sweep) {
    if (point.over != over) continue;
    parts.push_back(
        fmt::format("{}: {}/s", count(point.at), human_number(point.sections_per_second)));
  }
  if (!parts.empty()) {
    lines.push_back(fmt::format("closed loop by {}: {}", over, fmt::join(parts, ", ")));
  }
}

/// Nothing for what is no number.
std::string plain(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

std::string plain(const Distribution& distribution, double value) {
  return distribution.count > 0 ? plain(value) : "";
}

std::string csv_line(const Lines& fields) {
  Lines quoted;
  for (const std::string& field : fields) quoted.push_back(csv_field(field));
  return fmt::format("{}\r\n", fmt::join(quoted, ","));
}

}  // namespace

TextSheet sheet_of(const std::vector<Capacity>& capacities) {
  TextSheet sheet;
  sheet.titles = {"strategy",       "clients",     "keys",     "kept up to /s",
                  "missed from /s", "confirmed",   "violated", "limit",
                  "planned /s",     "utilisation", "headroom"};
  for (const Capacity& capacity : capacities) {
    sheet.rows.push_back({capacity.strategy, count(capacity.clients), count(capacity.keys),
                          held(capacity), human_number(capacity.highest),
                          capacity.confirmed ? "yes" : "no", yes_or_no(capacity.violated),
                          capacity.limit,
                          capacity.planned_rate ? human_number(*capacity.planned_rate) : "–",
                          percent(capacity.utilisation), percent(capacity.headroom)});
  }
  return sheet;
}

std::vector<std::string> readings(const Capacity& capacity) {
  Lines lines;
  if (capacity.violated.value_or(false)) {
    lines.push_back("clients were not kept apart: what this lock bears counts for nothing");
  }
  if (capacity.lowest <= 0) {
    lines.push_back(fmt::format("{} is kept at no rate that was tried, down to {}/s",
                                capacity.objective, human_number(capacity.highest)));
  } else if (std::isfinite(capacity.highest)) {
    lines.push_back(fmt::format("{} is kept up to {}/s and missed from {}/s{}", capacity.objective,
                                held(capacity), human_number(capacity.highest),
                                capacity.confirmed ? "" : " (not confirmed)"));
  } else {
    lines.push_back(fmt::format("{} is kept up to {}/s; no rate was found that misses it",
                                capacity.objective, held(capacity)));
  }
  lines.push_back(fmt::format("limit: {}: {}", capacity.limit, capacity.limit_reason));
  add_planned(capacity, lines);
  add_sweep(capacity, "clients", lines);
  add_sweep(capacity, "keys", lines);
  add_models(capacity, lines);
  return lines;
}

std::string capacity_csv(const std::vector<Capacity>& capacities) {
  std::string out =
      csv_line({"strategy", "objective", "purpose", "at", "offered_per_second",
                "sections_per_second", "acquire_p50_seconds", "acquire_p99_seconds", "met", "valid",
                "server_cpu_share", "generator_cpu_share", "reason", "violated"});
  for (const Capacity& capacity : capacities) {
    const std::string violated = true_or_false(capacity.violated);
    for (const CapacityStep& step : capacity.steps) {
      out += csv_line({capacity.strategy, capacity.objective, step.purpose, "", plain(step.rate),
                       plain(step.achieved), plain(step.acquire, step.acquire.p50),
                       plain(step.acquire, step.acquire.p99), step.met ? "true" : "false",
                       step.valid ? "true" : "false", plain(step.server_cpu_share),
                       plain(step.generator_cpu_share), step.reason, violated});
    }
    for (const CapacitySweepPoint& point : capacity.sweep) {
      out +=
          csv_line({capacity.strategy, "", "sweep", fmt::format("{}={}", point.over, point.at), "",
                    plain(point.sections_per_second), plain(point.acquire, point.acquire.p50),
                    plain(point.acquire, point.acquire.p99), "", "", "", "", "", violated});
    }
  }
  return out;
}

}  // namespace lockbench::results
