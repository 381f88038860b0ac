#include "loadgen/run/key_chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "loadgen/run/random.h"
#include "strategies/number.h"

namespace lockbench::loadgen {
namespace {

constexpr std::string_view kForm = "share=50%,keys=2500,move=10s";
constexpr Duration kShortestMove = std::chrono::milliseconds(1);

/// False: there is no such part, or its value is out of range.
bool set_part(HotSet& hot, std::string_view name, std::string_view value) {
  if (name == "share" && value.ends_with('%')) {
    value.remove_suffix(1);
    const auto percent = parse_number<double>(value);
    if (!percent || !(*percent > 0 && *percent <= 100)) return false;
    hot.share = *percent / 100;
    return true;
  }
  if (name == "keys") {
    const auto keys = parse_number<int>(value);
    hot.keys = keys.value_or(0);
    return hot.keys >= 1;
  }
  if (name != "move") return false;
  const auto move = parse_duration(value);
  if (!move || *move < kShortestMove) return false;
  hot.moves_every = *move;
  return true;
}

/// log(1 + x) / x and (exp(x) - 1) / x, which are 1 at 0, near which they would lose their digits.
double log_ratio(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
double exp_ratio(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }

int uniform_below(int end, Random& random) { return static_cast<int>(draw_unit(random) * end); }

}  // namespace

tl::expected<HotSet, std::string> HotSet::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return tl::unexpected(fmt::format("\"{}\": {}; a hot set is written as {}", text, why, kForm));
  };
  HotSet hot;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const bool set = equals != std::string_view::npos &&
                     set_part(hot, part.substr(0, equals), part.substr(equals + 1));
    if (!set) return wrong(fmt::format("\"{}\" is no part of one", part));
  }
  if (hot.share == 0 || hot.keys == 0) return wrong("the share and the keys are needed");
  return hot;
}

std::string HotSet::to_string() const {
  std::string text = fmt::format("share={:.12g}%,keys={}", share * 100, keys);
  if (moves_every) text += ",move=" + format_duration(*moves_every);
  return text;
}

KeyChooser::KeyChooser(int keys, double skew, std::optional<HotSet> hot)
    : keys_(keys), skew_(skew), hot_(hot) {
  if (keys < 1 || !(skew >= 0) || !std::isfinite(skew)) {
    throw std::invalid_argument("keys must be at least 1, their skew at least 0 and finite");
  }
  if (hot && (hot->keys < 1 || hot->keys >= keys || skew > 0)) {
    throw std::invalid_argument("hot keys must be fewer than the keys, and without skew");
  }
  if (skew == 0) return;
  area_before_first_ = area_up_to(1.5) - 1;
  area_to_last_ = area_up_to(keys + 0.5);
  always_taken_ = 2 - end_of_area(area_up_to(2.5) - std::pow(2, -skew));
}

int KeyChooser::pick(Random& random, Duration since_start) const {
  if (keys_ == 1) return 0;
  if (hot_) return pick_hot(random, since_start);
  return skew_ > 0 ? pick_zipf(random) : uniform_below(keys_, random);
}

// By rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions", 1996). Below the curve 1/x^skew, a point of the area is drawn,
// and its x rounded to a number from 1. The area of each number is at least its weight; points
// beyond the weight are rejected, so that the weights are exact; most are not.
int KeyChooser::pick_zipf(Random& random) const {
  while (true) {
    const double area = area_to_last_ + draw_unit(random) * (area_before_first_ - area_to_last_);
    const double x = end_of_area(area);
    const double number = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(keys_));
    if (number - x <= always_taken_ ||
        area >= area_up_to(number + 0.5) - std::pow(number, -skew_)) {
      return static_cast<int>(number) - 1;
    }
  }
}

int KeyChooser::pick_hot(Random& random, Duration since_start) const {
  std::int64_t first = 0;
  if (hot_->moves_every) {
    const std::int64_t moves = since_start / *hot_->moves_every;
    first = moves % keys_ * hot_->keys % keys_;
  }
  const bool is_hot = draw_unit(random) < hot_->share;
  // Numbers from the first hot key on, round the end: the hot keys, and then the others.
  const int number = is_hot ? uniform_below(hot_->keys, random)
                            : hot_->keys + uniform_below(keys_ - hot_->keys, random);
  return static_cast<int>((first + number) % keys_);
}

/// The integral of 1/t^skew from 1 to x.
double KeyChooser::area_up_to(double x) const {
  const double log_x = std::log(x);
  return exp_ratio((1 - skew_) * log_x) * log_x;
}

double KeyChooser::end_of_area(double area) const {
  // Rounding may carry it below -1, which no x has.
  const double scaled = std::max(-1.0, area * (1 - skew_));
  return std::exp(log_ratio(scaled) * area);
}

}  // namespace lockbench::loadgen
