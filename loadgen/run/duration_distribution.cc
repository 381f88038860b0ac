#include "loadgen/run/duration_distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "loadgen/run/random.h"

namespace lockbench::loadgen {
namespace {

using Parsed = tl::expected<DurationDistribution, std::string>;

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The text between "name(" and ")".
std::optional<std::string_view> arguments(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || !text.ends_with(')')) return std::nullopt;
  text.remove_prefix(name.size());
  if (!text.starts_with('(')) return std::nullopt;
  return text.substr(1, text.size() - 2);
}

tl::unexpected<std::string> too_long(std::string_view what) {
  return tl::unexpected(fmt::format("{} must be at most {}", what,
                                    format_duration(DurationDistribution::kLongestDraw)));
}

Parsed parse_exponential(std::string_view mean_text) {
  const auto mean = parse_duration(trim(mean_text));
  if (!mean) return tl::unexpected(mean.error());
  if (*mean > DurationDistribution::kLongestDraw) return too_long("the mean of exp()");
  return DurationDistribution::exponential(*mean);
}

Parsed parse_uniform(std::string_view bounds) {
  const auto comma = bounds.find(',');
  if (comma == std::string_view::npos) {
    return tl::unexpected(std::string("uniform() takes two durations: uniform(1ms,3ms)"));
  }
  const auto from = parse_duration(trim(bounds.substr(0, comma)));
  if (!from) return tl::unexpected(from.error());
  const auto to = parse_duration(trim(bounds.substr(comma + 1)));
  if (!to) return tl::unexpected(to.error());
  if (*from > *to) {
    return tl::unexpected(
        fmt::format("uniform({},{}): the first bound must not be above the second",
                    format_duration(*from), format_duration(*to)));
  }
  if (*to > DurationDistribution::kLongestDraw) return too_long("the bounds of uniform()");
  return DurationDistribution::uniform(*from, *to);
}

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

DurationDistribution DurationDistribution::constant(Duration value) {
  require(value >= Duration::zero() && value <= kLongestDraw, "a duration out of range");
  return {Kind::constant, value, value};
}

DurationDistribution DurationDistribution::exponential(Duration mean) {
  require(mean >= Duration::zero() && mean <= kLongestDraw, "a mean out of range");
  return {Kind::exponential, mean, mean};
}

DurationDistribution DurationDistribution::uniform(Duration from, Duration to) {
  require(from >= Duration::zero() && from <= to && to <= kLongestDraw, "bounds out of range");
  return {Kind::uniform, from, to};
}

tl::expected<DurationDistribution, std::string> DurationDistribution::parse(std::string_view text) {
  const std::string_view trimmed = trim(text);
  if (const auto mean = arguments(trimmed, "exp")) return parse_exponential(*mean);
  if (const auto bounds = arguments(trimmed, "uniform")) return parse_uniform(*bounds);
  const auto value = parse_duration(trimmed);
  if (!value) {
    return tl::unexpected(fmt::format("{}, or exp(2ms), or uniform(1ms,3ms)", value.error()));
  }
  if (*value > kLongestDraw) return too_long("the duration");
  return constant(*value);
}

Duration DurationDistribution::draw(std::mt19937_64& random) const {
  switch (kind_) {
    case Kind::exponential: {
      const double nanoseconds = static_cast<double>(low_.count()) * draw_exponential(random);
      return std::min(kLongestDraw, Duration(std::llround(nanoseconds)));
    }
    case Kind::uniform: {
      const double choices = static_cast<double>((high_ - low_).count()) + 1;
      return low_ + Duration(static_cast<std::int64_t>(draw_unit(random) * choices));
    }
    case Kind::constant:
      break;
  }
  return low_;
}

Duration DurationDistribution::mean() const { return low_ + (high_ - low_) / 2; }

std::string DurationDistribution::to_string() const {
  switch (kind_) {
    case Kind::exponential:
      return fmt::format("exp({})", format_duration(low_));
    case Kind::uniform:
      return fmt::format("uniform({},{})", format_duration(low_), format_duration(high_));
    case Kind::constant:
      break;
  }
  return format_duration(low_);
}

}  // namespace lockbench::loadgen
