#include "loadgen/run/workload.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

/// Of what the busiest key can serve: a lock that is mostly free, and one that is mostly taken but
/// must still keep up.
constexpr std::array kDemands{0.3, 0.7};
/// Between zones of one region.
constexpr Duration kNetwork = 1ms;
constexpr int kDemandClients = 32;

struct Shape {
  std::string_view name;
  int clients;
  DurationDistribution hold;
};

const Shape& shape_of(NamedLoad load) {
  static const std::array<Shape, 4> shapes{{
      {"alone", 1, {}},
      {"demand", kDemandClients, DurationDistribution::exponential(2ms)},
      {"saturated", Workload().clients, DurationDistribution::constant(1ms)},
      {"reacquire", Workload().clients, {}},
  }};
  return shapes.at(static_cast<std::size_t>(load));
}

/// The share of the draws of one key that give the key that is drawn most.
double busiest_draw_share(const Workload& workload) {
  if (const auto& hot = workload.hot_set) {
    return std::max(hot->share / hot->keys, (1 - hot->share) / (workload.key_count() - hot->keys));
  }
  double weights = 0;
  for (int key = 1; key <= workload.key_count(); ++key) {
    weights += workload.key_per_client ? 1 : std::pow(key, -workload.key_skew);
  }
  return 1 / weights;
}

/// What the keys can serve if they are never free: a client needs a round trip to take a key that
/// was left. Of several keys it has some while it takes and gives back others: on average, for a
/// round trip for each of these.
double most_sections_per_second(const Workload& workload) {
  const Duration taken = workload.hold.mean() + workload.rtt * workload.locks_per_section;
  return 1 / (seconds(taken) * busiest_key_share(workload));
}

}  // namespace

std::string_view to_string(NamedLoad load) { return shape_of(load).name; }

std::vector<Workload> points_of(NamedLoad load, const Workload& given, const Decided& decided) {
  Workload point = given;
  const Shape& shape = shape_of(load);
  point.load = shape.name;
  if (!decided.clients) point.clients = shape.clients;
  if (!decided.hold) point.hold = shape.hold;
  std::vector<Workload> points;
  if (load == NamedLoad::alone && !decided.rtt) {
    for (const Duration rtt : {Duration::zero(), Duration(kNetwork)}) {
      point.rtt = rtt;
      points.push_back(point);
    }
  } else if (load == NamedLoad::demand && !decided.rate && !point.hold.is_zero()) {
    for (const double share : kDemands) {
      point.rate = share * most_sections_per_second(point);
      points.push_back(point);
    }
  } else {
    points.push_back(point);
  }
  return points;
}

results::Load load_of(const Workload& workload) {
  results::Load load{.name = workload.load,
                     .clients = static_cast<std::uint64_t>(workload.clients),
                     .hold_seconds = seconds(workload.hold.mean()),
                     .rate = workload.rate,
                     .rtt_seconds = seconds(workload.rtt)};
  if (workload.hot_set) load.hot_set = workload.hot_set->to_string();
  if (workload.trace) load.trace = workload.trace->path;
  return load;
}

double busiest_key_share(const Workload& workload) {
  return std::min(1.0, busiest_draw_share(workload) * workload.locks_per_section);
}

}  // namespace lockbench::loadgen
