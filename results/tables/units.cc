#include "results/tables/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace lockbench::results {
namespace {

constexpr std::string_view kNoNumber = "–";

struct Scale {
  double size;
  std::string_view name;
};

/// Three significant digits of a value of at least 0, as long as it is below a thousand.
std::string three_digits(double value) {
  // Half a step below the powers of ten, so that 9.996 becomes 10 and not 10.00.
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

/// In the largest unit of which there is at least one after rounding; units grow.
std::string in_units(double value, std::span<const Scale> units) {
  const double size = std::abs(value);
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < units.size(); ++i) {
    // What rounds to a full next unit belongs to it: 999.7 µs is 1 ms.
    if (size >= units[i].size * 0.9995) chosen = i;
  }
  const std::string digits = three_digits(size / units[chosen].size);
  return fmt::format("{}{}{}", value < 0 && digits != "0" ? "-" : "", digits, units[chosen].name);
}

}  // namespace

std::string human_seconds(double seconds) {
  static constexpr std::array<Scale, 6> kScales{
      {{1e-9, " ns"}, {1e-6, " µs"}, {1e-3, " ms"}, {1, " s"}, {60, " min"}, {3600, " h"}}};
  if (!std::isfinite(seconds)) return std::string(kNoNumber);
  return seconds == 0 ? "0 s" : in_units(seconds, kScales);
}

std::string human_number(double value) {
  static constexpr std::array<Scale, 5> kScales{
      {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}}};
  return std::isfinite(value) ? in_units(value, kScales) : std::string(kNoNumber);
}

std::string human_count(double count) {
  return std::abs(count) < 10000 ? fmt::format("{:.0f}", count) : human_number(count);
}

std::string human(double value, Unit unit) {
  switch (unit) {
    case Unit::seconds:
      return human_seconds(value);
    case Unit::count:
      return human_count(value);
    case Unit::share:
      return std::isfinite(value) ? fmt::format("{:.1f} %", 100 * value) : std::string(kNoNumber);
    case Unit::number:
    case Unit::text:
      break;
  }
  return human_number(value);
}

}  // namespace lockbench::results
