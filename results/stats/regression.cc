#include "results/stats/regression.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "results/stats/comparison.h"
#include "results/stats/threshold.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

constexpr std::string_view kForm =
    "FIGURE>+NUMBER or FIGURE<-NUMBER with %, ns, us, ms, s, m, h or none";

/// FIGURE and OPERATOR and NUMBER are a threshold's, which knows figures and units.
tl::expected<Regression, std::string> regression_of(std::string_view text) {
  const std::size_t at = text.find_first_of("<>");
  const std::size_t sign = at == std::string_view::npos ? at : text.find_first_not_of(' ', at + 1);
  if (sign == std::string_view::npos) return tl::unexpected(fmt::format("wanted is {}", kForm));
  const bool more = text[at] == '>';
  if (text[sign] != (more ? '+' : '-')) {
    return tl::unexpected(fmt::format("wanted is {}", kForm));
  }
  std::string_view number = text.substr(sign + 1);
  number.remove_suffix(number.size() - (number.find_last_not_of(' ') + 1));
  const bool is_share = number.ends_with('%');
  if (is_share) number.remove_suffix(1);
  const auto threshold =
      parse_threshold(fmt::format("{}{}{}", text.substr(0, at), more ? '>' : '<', number));
  if (!threshold) {
    // Quoted already, as the threshold that it was turned into.
    const std::string& error = threshold.error();
    return tl::unexpected(error.substr(std::min(error.size(), error.find("': ") + 3)));
  }
  if (!(threshold->bound >= 0)) return tl::unexpected(fmt::format("wanted is {}", kForm));
  return Regression{std::string(text), threshold->figure, more, is_share,
                    is_share ? threshold->bound / 100 : threshold->bound};
}

}  // namespace

tl::expected<Regression, std::string> parse_regression(std::string_view text) {
  constexpr std::size_t kMaxLength = 200;
  if (text.size() > kMaxLength) {
    return tl::unexpected(fmt::format("expression longer than {} characters", kMaxLength));
  }
  return regression_of(text).map_error(
      [text](const std::string& error) { return printable(fmt::format("'{}': {}", text, error)); });
}

double bound_of(const Regression& regression, const Difference& difference) {
  double bound = regression.bound;
  if (regression.is_share && !difference.relative) bound *= std::abs(difference.a);
  if (!regression.is_share && difference.relative) bound /= difference.a;
  return regression.more ? bound : -bound;
}

}  // namespace lockbench::results
