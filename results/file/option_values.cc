#include "results/file/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace lockbench::results {
namespace {

struct ValueText {
  std::string operator()(std::nullptr_t) const { return ""; }
  std::string operator()(bool value) const { return value ? "yes" : "no"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return fmt::format("{:.6g}", value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::vector<std::string>& value) const {
    return fmt::format("{}", fmt::join(value, " "));
  }
};

}  // namespace

std::optional<double> number_of(const OptionValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* broken = std::get_if<double>(&value)) return *broken;
  return std::nullopt;
}

std::optional<double> workload_number(const Result& result, const std::string& key) {
  const auto found = result.workload.find(key);
  return found == result.workload.end() ? std::nullopt : number_of(found->second);
}

std::string workload_text(const Result& result, const std::string& key) {
  const auto found = result.workload.find(key);
  if (found == result.workload.end()) return "";
  const auto* text = std::get_if<std::string>(&found->second);
  return text == nullptr ? "" : *text;
}

std::string value_text(const OptionValue& value) { return std::visit(ValueText{}, value); }

bool same_value(const OptionValue& a, const OptionValue& b) {
  constexpr double kRounding = 1e-9;  // of another unit, as a share
  const auto x = number_of(a), y = number_of(b);
  if (!x || !y) return a == b;
  // An infinite number equals only itself.
  return *x == *y || std::abs(*x - *y) <= kRounding * std::min(std::abs(*x), std::abs(*y));
}

bool is_of_output(std::string_view key) {
  constexpr std::array<std::string_view, 14> kKeys{
      "out",  "format",         "columns", "quiet",  "config", "hdr",      "report",
      "push", "metrics_listen", "linger",  "resume", "record", "workload", "events"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

}  // namespace lockbench::results
