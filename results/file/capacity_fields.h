#pragma once

#include "results/file/capacity.h"
#include "results/file/is.h"

namespace lockbench::results {

// A part of fields.h, which says what a visitor offers.

template <class Visitor>
void describe(Visitor& v, Is<CapacityStep> auto& step) {
  v("purpose", step.purpose);
  v("rate", step.rate);
  v("achieved", step.achieved);
  v("acquire", step.acquire);
  v("met", step.met);
  v("valid", step.valid);
  v("server_cpu_share", step.server_cpu_share);
  v("generator_cpu_share", step.generator_cpu_share);
  v("reason", step.reason);
}

template <class Visitor>
void describe(Visitor& v, Is<CapacitySweepPoint> auto& point) {
  v("over", point.over);
  v("at", point.at);
  v("sections_per_second", point.sections_per_second);
  v("acquire", point.acquire);
}

template <class Visitor>
void describe(Visitor& v, Is<Prediction> auto& prediction) {
  v("at", prediction.at);
  v("figure", prediction.figure);
  v("predicted", prediction.predicted);
  v("measured", prediction.measured);
  v("error", prediction.error);
  v("unit", prediction.unit);
  v("extrapolated", prediction.extrapolated);
}

template <class Visitor>
void describe(Visitor& v, Is<CapacityModel> auto& model) {
  v("name", model.name);
  v("parameters", model.parameters);
  v("predictions", model.predictions);
}

template <class Visitor>
void describe(Visitor& v, Is<Capacity> auto& capacity) {
  v("strategy", capacity.strategy);
  v("objective", capacity.objective);
  v("clients", capacity.clients);
  v("keys", capacity.keys);
  v("lowest", capacity.lowest);
  v("highest", capacity.highest);
  v("limit", capacity.limit);
  v("limit_reason", capacity.limit_reason);
  v("confirmed", capacity.confirmed);
  v.where_there("violated", capacity.violated);
  v("planned_rate", capacity.planned_rate);
  v("utilisation", capacity.utilisation);
  v("headroom", capacity.headroom);
  v("steps", capacity.steps);
  v("sweep", capacity.sweep);
  v("models", capacity.models);
}

}  // namespace lockbench::results
