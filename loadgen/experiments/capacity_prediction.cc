#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "loadgen/experiments/capacity_experiment.h"
#include "loadgen/experiments/capacity_rate.h"
#include "results/stats/queue_model.h"
#include "results/stats/scalability.h"

namespace lockbench::loadgen {
namespace {

constexpr std::uint64_t kFewestHandoffs = 20;
constexpr std::string_view kThroughput = "sections_per_second";

results::Prediction prediction(std::string at, std::string_view figure, double predicted,
                               std::optional<double> measured = {}) {
  results::Prediction made{.at = std::move(at),
                           .figure = std::string(figure),
                           .predicted = predicted,
                           .measured = measured,
                           .unit = figure == kThroughput ? "1/s" : "s"};
  if (measured && *measured > 0 && std::isfinite(predicted)) {
    made.error = (predicted - *measured) / *measured;
  }
  return made;
}

/// The rates at which the queue is checked, growing: about half of what is kept, all of it, and
/// what is missed.
std::set<double> rates_to_check(const results::Capacity& capacity) {
  std::set<double> chosen;
  const results::CapacityRate* half = nullptr;
  const auto from_half = [&](double rate) { return std::abs(rate - capacity.lowest / 2); };
  for (const results::CapacityRate& at : capacity.rates) {
    if (at.rate == capacity.lowest || at.rate == capacity.highest) chosen.insert(at.rate);
    if (at.decision != "kept" || at.rate > capacity.lowest) continue;
    if (half == nullptr || from_half(at.rate) < from_half(half->rate)) half = &at;
  }
  if (half != nullptr) chosen.insert(half->rate);
  return chosen;
}

/// Fitted to hold, handoff and overtakings at each rate; checked by the waits there.
std::optional<results::CapacityModel> queue_model(const CapacityPlan& plan,
                                                  const results::Capacity& capacity,
                                                  const ModelBasis& basis) {
  const Workload& load = plan.run.workload;
  const bool queues = basis.contended.audit.saw_no_violation() && load.arrival == Arrival::poisson;
  if (!queues || (load.key_skew > 0 && load.keys > 1)) return std::nullopt;
  const int locks = load.key_count();
  results::CapacityModel made{.name = "queue"};
  // At the lowest rate most find it free; else: acquiring a free lock takes one round trip, as a
  // release does.
  const bool mostly_free = !capacity.rates.empty() && capacity.rates.front().rho < 0.5;
  const double free_seconds =
      mostly_free ? capacity.rates.front().acquire.p50 : basis.contended.release.p50;
  for (const double rate : rates_to_check(capacity)) {
    const ServiceTimes service = service_times(basis.rates.at(rate));
    if (service.handoffs < kFewestHandoffs) continue;
    const results::QueueModel model{.hold_mean = service.hold,
                                    .hold_variance = service.hold_variance,
                                    .handoff_mean = service.handoff,
                                    .handoff_variance = service.handoff_variance,
                                    .free_seconds = free_seconds,
                                    .overtaking_share = service.overtaking_share};
    made.parameters = {{"hold_mean_seconds", model.hold_mean},
                       {"hold_stddev_seconds", std::sqrt(model.hold_variance)},
                       {"handoff_mean_seconds", model.handoff_mean},
                       {"handoff_stddev_seconds", std::sqrt(model.handoff_variance)},
                       {"free_seconds", model.free_seconds},
                       {"overtaking_share", model.overtaking_share}};
    const results::Distribution& measured = capacity.at(rate)->acquire;
    const auto add = [&](std::string_view figure, std::optional<double> predicted, double seen) {
      if (!predicted) return;
      const std::string at = fmt::format("rate={:.4g}", rate);
      made.predictions.push_back(prediction(at, figure, *predicted, seen));
    };
    add("acquire.mean", model.mean_acquire(rate / locks), measured.mean);
    auto p99 = model.acquire_percentile(rate / locks, 0.99);
    // A rate that was kept although the model says that none can wait there in finite time.
    if (!p99 && rate == capacity.lowest) p99 = std::numeric_limits<double>::infinity();
    add("acquire.p99", p99, measured.p99);
  }
  const ServiceTimes contended = service_times({&basis.contended, 1});
  for (const Extrapolation& extrapolation : plan.extrapolations) {
    if (!extrapolation.rtt || extrapolation.clients) continue;
    if (contended.handoffs < kFewestHandoffs) continue;
    const double each = contended.hold + contended.turnaround + seconds(*extrapolation.rtt);
    made.predictions.push_back(prediction(extrapolation.text(), kThroughput, locks / each));
    made.predictions.back().extrapolated = true;
  }
  if (made.predictions.empty()) return std::nullopt;
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
    const double clients = extrapolation.clients.value_or(plan.run.workload.clients);
    const double rtt = seconds(extrapolation.rtt.value_or(Duration::zero()));
    const double locks = plan.run.workload.key_per_client ? clients : plan.run.workload.keys;
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
