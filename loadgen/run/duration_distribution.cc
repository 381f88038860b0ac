#include "loadgen/run/duration_distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/trim.hpp>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "results/tables/text.h"

namespace lockbench::loadgen {
namespace {

using boost::trim_copy;
using Parsed = tl::expected<DurationDistribution, std::string>;

tl::unexpected<std::string> too_long() {
  return tl::unexpected("a duration must be at most " +
                        format_duration(DurationDistribution::kLongestDraw));
}

Duration cut(double nanoseconds) {
  constexpr auto kLongest = static_cast<double>(DurationDistribution::kLongestDraw.count());
  return Duration(std::llround(std::min(nanoseconds, kLongest)));
}

}  // namespace

DurationDistribution::DurationDistribution(Kind kind, Duration low, Duration high)
    : kind_(kind), low_(low), high_(high) {
  const Duration lowest = kind == Kind::lognormal ? Duration(1) : Duration::zero();
  if (low < lowest || low > high || high > kLongestDraw) {
    throw std::invalid_argument("durations out of range");
  }
}

double DurationDistribution::sigma() const {
  constexpr double kNormalP99 = 2.3263478740408408;
  return std::log(static_cast<double>(high_.count()) / static_cast<double>(low_.count())) /
         kNormalP99;
}

Parsed DurationDistribution::read_quantiles(std::istream& file, std::string path) {
  constexpr std::size_t kMostLines = 10'000;
  std::vector<Quantile> quantiles;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    const auto wrong = [&](std::string_view what) {
      return tl::unexpected(fmt::format("{}: line {}: {}", path, number, what));
    };
    const std::string text = trim_copy(line);
    if (text.empty() || text.starts_with('#')) continue;
    if (quantiles.size() == kMostLines) return wrong("too many lines");
    char* rest = nullptr;
    const double share = std::strtod(text.c_str(), &rest);
    const auto value = parse_duration(trim_copy(std::string(rest)));
    if (rest == text.c_str() || !(share >= 0 && share <= 1) || !value) {
      return wrong("a share from 0 to 1 and a duration are expected, such as 0.99 12ms");
    }
    if (*value > kLongestDraw) return wrong("the duration is too long");
    if (!quantiles.empty() &&
        (share <= quantiles.back().share || *value < quantiles.back().value)) {
      return wrong("shares and durations must grow");
    }
    quantiles.push_back({share, *value});
  }
  if (file.bad()) return tl::unexpected(fmt::format("{}: cannot be read", path));
  if (quantiles.empty()) return tl::unexpected(fmt::format("{}: no quantiles", path));
  // Draws between two quantiles count as their middle, draws outside as the nearest quantile.
  double mean = quantiles.front().share * static_cast<double>(quantiles.front().value.count()) +
                (1 - quantiles.back().share) * static_cast<double>(quantiles.back().value.count());
  for (std::size_t i = 1; i < quantiles.size(); ++i) {
    const auto middle =
        static_cast<double>((quantiles[i - 1].value + quantiles[i].value).count()) / 2;
    mean += (quantiles[i].share - quantiles[i - 1].share) * middle;
  }
  const Duration rounded(std::llround(mean));
  DurationDistribution made(Kind::quantiles, rounded, rounded);
  made.quantiles_ = std::move(quantiles);
  made.path_ = std::move(path);
  return made;
}

Parsed DurationDistribution::parse(std::string_view text) {
  constexpr std::string_view kQuantiles = "quantiles:";
  const std::string trimmed = trim_copy(std::string(text));
  if (trimmed.starts_with(kQuantiles)) {
    std::string path = trimmed.substr(kQuantiles.size());
    std::ifstream file(path);
    if (!file) return tl::unexpected(fmt::format("{}: cannot be read", path));
    return read_quantiles(file, std::move(path));
  }
  // "exp(2ms)": a name with durations in brackets.
  const std::size_t bracket = trimmed.find('(');
  if (bracket != std::string::npos && trimmed.ends_with(')')) {
    std::vector<Duration> values;
    for (const std::string& part :
         results::split_at_commas(trimmed.substr(bracket + 1, trimmed.size() - bracket - 2))) {
      const auto value = parse_duration(trim_copy(part));
      if (!value) return tl::unexpected(value.error());
      if (*value > kLongestDraw) return too_long();
      values.push_back(*value);
    }
    const std::string name = trimmed.substr(0, bracket);
    if (name == "exp" && values.size() == 1) return exponential(values.front());
    if ((name == "uniform" || name == "lognormal") && values.size() == 2) {
      const auto [first, second] = std::pair(values.front(), values.back());
      const bool uniform_one = name == "uniform";
      if (first > second || (!uniform_one && first == Duration::zero())) {
        return tl::unexpected(fmt::format("{}: the first must not be above the second{}", trimmed,
                                          uniform_one ? "" : ", and not be 0"));
      }
      return uniform_one ? uniform(first, second) : lognormal(first, second);
    }
  }
  const auto value = parse_duration(trimmed);
  if (!value) {
    return tl::unexpected(
        fmt::format("{}, or exp(2ms), or uniform(1ms,3ms), or lognormal(2ms,20ms), or "
                    "quantiles:FILE",
                    value.error()));
  }
  if (*value > kLongestDraw) return too_long();
  return constant(*value);
}

Duration DurationDistribution::draw(Random& random) const {
  switch (kind_) {
    case Kind::exponential:
      return cut(static_cast<double>(low_.count()) * draw_exponential(random));
    case Kind::uniform: {
      const double choices = static_cast<double>((high_ - low_).count()) + 1;
      return low_ + Duration(static_cast<std::int64_t>(draw_unit(random) * choices));
    }
    case Kind::lognormal: {
      const double factor = std::exp(sigma() * draw_normal(random));
      return cut(static_cast<double>(low_.count()) * factor);
    }
    case Kind::quantiles: {
      const double share = draw_unit(random);
      const auto above = std::find_if(quantiles_.begin(), quantiles_.end(),
                                      [&](const Quantile& one) { return one.share >= share; });
      if (above == quantiles_.begin()) return above->value;
      if (above == quantiles_.end()) return quantiles_.back().value;
      const Quantile& below = *(above - 1);
      const double part = (share - below.share) / (above->share - below.share);
      const auto width = static_cast<double>((above->value - below.value).count());
      return below.value + Duration(std::llround(part * width));
    }
    case Kind::constant:
      break;
  }
  return low_;
}

Duration DurationDistribution::mean() const {
  if (kind_ != Kind::lognormal) return low_ + (high_ - low_) / 2;
  return cut(static_cast<double>(low_.count()) * std::exp(sigma() * sigma() / 2));
}

std::string DurationDistribution::to_string() const {
  if (kind_ == Kind::quantiles) return "quantiles:" + path_;
  std::string low = format_duration(low_), high = format_duration(high_);
  if (kind_ == Kind::exponential) return fmt::format("exp({})", low);
  if (kind_ == Kind::uniform) return fmt::format("uniform({},{})", low, high);
  if (kind_ == Kind::lognormal) return fmt::format("lognormal({},{})", low, high);
  return low;
}

}  // namespace lockbench::loadgen
