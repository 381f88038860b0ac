#include "results/stats/figures.h"

#include <cmath>
#include <stdexcept>

#include "results/file/fields.h"

namespace lockbench::results {
namespace {

class Collector {
 public:
  /// With `exists` false only the names are collected.
  Collector(std::string prefix, std::vector<Figure>& figures, bool exists = true)
      : prefix_(std::move(prefix)), figures_(figures), exists_(exists) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      add(name, static_cast<double>(value));
    } else if constexpr (requires(Collector inner) { describe(inner, value); }) {
      group(name, [&value](Collector& inner) { describe(inner, value); });
    }
  }

  void operator()(const char* name, const std::optional<double>& value) { add(name, value); }

  template <class Struct>
  void operator()(const char* name, const std::optional<Struct>& value) {
    Collector inner(prefix_ + name + ".", figures_, exists_ && value.has_value());
    const Struct described = value.value_or(Struct{});
    describe(inner, described);
  }

  void measured(const char* name, double value, bool exists) {
    add(name, exists ? std::optional(value) : std::nullopt);
  }

  template <class Fill>
  void group(const char* name, Fill fill) {
    Collector inner(prefix_ + name + ".", figures_, exists_);
    fill(inner);
  }

  void constant(const char* /*name*/, const char* /*text*/) {}

 private:
  void add(const char* name, std::optional<double> value) {
    const bool exists = exists_ && value && std::isfinite(*value);
    figures_.push_back({prefix_ + name, exists ? value : std::nullopt});
  }

  std::string prefix_;
  std::vector<Figure>& figures_;
  const bool exists_;
};

}  // namespace

std::vector<Figure> figures(const Run& run) {
  std::vector<Figure> found;
  Collector collector("", found);
  describe(collector, run);
  return found;
}

std::optional<double> figure(const Run& run, std::string_view path) {
  for (const Figure& candidate : figures(run)) {
    if (candidate.path == path) {
      return candidate.value;
    }
  }
  throw std::invalid_argument("no such figure: " + std::string(path));
}

}  // namespace lockbench::results
