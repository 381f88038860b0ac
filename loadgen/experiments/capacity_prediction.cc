#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "loadgen/experiments/capacity_experiment.h"
#include "loadgen/experiments/capacity_limit.h"
#include "results/stats/queue_model.h"
#include "results/stats/scalability.h"
#include "results/stats/statistics.h"

namespace lockbench::loadgen {
namespace {

constexpr std::uint64_t kFewestHandoffs = 20;
constexpr std::string_view kThroughput = "sections_per_second";

double square(double value) { return value * value; }

results::Prediction prediction(std::string at, std::string_view figure, double predicted,
                               std::optional<double> measured = {}) {
  results::Prediction made{.at = std::move(at),
                           .figure = std::string(figure),
                           .predicted = predicted,
                           .measured = measured,
                           .unit = figure == kThroughput ? "1/s" : "s"};
  if (measured && *measured > 0) made.error = (predicted - *measured) / *measured;
  return made;
}

/// The rate nearest to `wanted` among the steps that kept the objective; nothing if there is none.
std::optional<double> rate_near(const results::Capacity& capacity, double wanted) {
  std::optional<double> nearest;
  for (const results::CapacityStep& step : capacity.steps) {
    if (!step.met || step.rate > capacity.lowest) continue;
    if (!nearest || std::abs(step.rate - wanted) < std::abs(*nearest - wanted)) {
      nearest = step.rate;
    }
  }
  return nearest;
}

/// The median over all steps at that rate.
template <class Figure>
std::optional<double> measured_at(const results::Capacity& capacity, double rate, Figure figure) {
  std::vector<double> values;
  for (const results::CapacityStep& step : capacity.steps) {
    if (step.rate == rate && step.acquire.count > 0) values.push_back(figure(step.acquire));
  }
  return results::median(values);
}

std::optional<results::CapacityModel> queue_model(const CapacityPlan& plan,
                                                  const results::Capacity& capacity,
                                                  const ModelBasis& basis) {
  const results::Run& run = basis.contended;
  const Workload& load = plan.workload;
  const bool queues = run.audit.saw_no_violation() && run.turnaround.count >= kFewestHandoffs &&
                      load.arrival == Arrival::poisson;
  if (!queues || (load.key_skew > 0 && load.keys > 1)) return std::nullopt;
  const results::QueueModel model{
      .service_mean = occupancy(run),
      .service_variance = square(run.hold.stddev) + square(run.turnaround.stddev),
      // Acquiring a free lock takes one round trip, as a release does.
      .free_seconds = basis.alone != nullptr ? basis.alone->acquire.p50 : run.release.p50};
  results::CapacityModel made{
      .name = "queue",
      .parameters = {{"service_mean_seconds", model.service_mean},
                     {"service_stddev_seconds", std::sqrt(model.service_variance)},
                     {"free_seconds", model.free_seconds}}};
  const int locks = load.key_count();
  std::optional<double> said;
  for (const double share : {0.5, 1.0}) {
    const auto rate = rate_near(capacity, share * capacity.lowest);
    if (!rate || rate == said) continue;
    said = rate;
    const std::string at = fmt::format("rate={:.4g}", *rate);
    const auto add = [&](std::string_view figure, std::optional<double> predicted, auto of) {
      if (predicted) {
        made.predictions.push_back(
            prediction(at, figure, *predicted, measured_at(capacity, *rate, of)));
      }
    };
    const double each = *rate / locks;
    add("acquire.mean", model.mean_acquire(each), [](const auto& d) { return d.mean; });
    add("acquire.p99", model.acquire_percentile(each, 0.99), [](const auto& d) { return d.p99; });
  }
  for (const Extrapolation& extrapolation : plan.extrapolations) {
    if (!extrapolation.rtt || extrapolation.clients) continue;
    const double ceiling = locks / (model.service_mean + seconds(*extrapolation.rtt));
    made.predictions.push_back(prediction(extrapolation.text(), kThroughput, ceiling));
    made.predictions.back().extrapolated = true;
  }
  return made;
}

/// Clients and throughput, growing.
std::vector<results::ScalabilityPoint> clients_of(const results::Capacity& capacity) {
  std::vector<results::ScalabilityPoint> points;
  for (const results::CapacitySweepPoint& point : capacity.sweep) {
    if (point.over != "clients" || !(point.sections_per_second > 0)) continue;
    points.push_back({static_cast<double>(point.at), point.sections_per_second});
  }
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return a.clients < b.clients; });
  return points;
}

std::optional<results::CapacityModel> scalability_model(const CapacityPlan& plan,
                                                        const results::Capacity& capacity,
                                                        const ModelBasis& basis) {
  auto points = clients_of(capacity);
  if (points.empty()) return std::nullopt;
  const results::ScalabilityPoint largest = points.back();
  points.pop_back();
  const auto model = results::fit_scalability(points);
  if (!model) return std::nullopt;
  results::CapacityModel made{.name = "usl",
                              .parameters = {{"lambda", model->lambda},
                                             {"sigma", model->sigma},
                                             {"kappa", model->kappa},
                                             {"fitted_to_clients", points.back().clients}}};
  if (const auto peak = model->peak()) made.parameters["peak_clients"] = *peak;
  made.predictions.push_back(prediction(fmt::format("clients={}", largest.clients), kThroughput,
                                        model->throughput(largest.clients), largest.per_second));
  const double trips =
      (basis.alone != nullptr ? *basis.alone : basis.contended).commands_per_section;
  for (const Extrapolation& extrapolation : plan.extrapolations) {
    const double clients = extrapolation.clients.value_or(plan.workload.clients);
    const double rtt = seconds(extrapolation.rtt.value_or(Duration::zero()));
    const double locks = plan.workload.key_per_client ? clients : plan.workload.keys;
    made.predictions.push_back(prediction(extrapolation.text(), kThroughput,
                                          model->throughput(clients, rtt, trips, locks)));
    made.predictions.back().extrapolated = rtt > 0 || clients > largest.clients;
  }
  return made;
}

}  // namespace

std::vector<results::CapacityModel> model_capacity(const CapacityPlan& plan,
                                                   const results::Capacity& capacity,
                                                   const ModelBasis& basis) {
  std::vector<results::CapacityModel> models;
  for (auto model :
       {queue_model(plan, capacity, basis), scalability_model(plan, capacity, basis)}) {
    if (model) models.push_back(*std::move(model));
  }
  return models;
}

}  // namespace lockbench::loadgen
