#include <algorithm>
#include <cmath>

#include "cli/options/option.h"
#include "strategies/number.h"

namespace lockbench::cli {

tl::expected<std::int64_t, std::string> WholeNumber::parse(const std::string& text) const {
  const auto number = parse_number<std::int64_t>(text);
  if (number && *number >= min && *number <= max) return *number;
  return tl::unexpected(fmt::format("\"{}\" is not a whole number from {} to {}", text, min, max));
}

ValueType<int> number_or_word(int max, std::string_view word) {
  const auto text = [=](int value) {
    return value == 0 ? std::string(word) : std::to_string(value);
  };
  return {.parse = [=](const std::string& given) -> tl::expected<int, std::string> {
            if (given == word) return 0;
            const auto number = parse_number<std::int64_t>(given);
            if (number && *number >= 1 && *number <= max) return static_cast<int>(*number);
            return tl::unexpected(fmt::format(
                "\"{}\" is neither a whole number from 1 to {} nor {}", given, max, word));
          },
          .text = text,
          .record = [=](int value) -> results::OptionValue {
            if (value == 0) return text(value);
            return std::int64_t{value};
          }};
}

ValueType<double> number(double min, double max) {
  return {
      .parse = [=](const std::string& text) -> tl::expected<double, std::string> {
        const auto number = parse_number<double>(text);
        if (number && std::isfinite(*number) && *number >= min && *number <= max) {
          return *number;
        }
        return tl::unexpected(fmt::format("\"{}\" is not a number from {} to {}", text, min, max));
      },
      .text = [](double value) { return fmt::format("{}", value); },
      .record = [](double value) { return value; }};
}

tl::expected<void, std::string> check_range(const std::string& text, Duration duration,
                                            Duration min, Duration max) {
  if (duration >= min && duration <= max) return {};
  return tl::unexpected(fmt::format("\"{}\" is too {}: {} to {} is allowed", text,
                                    duration < min ? "short" : "long", format_duration(min),
                                    format_duration(max)));
}

ValueType<Duration> duration(Duration min, Duration max) {
  return {.parse = [=](const std::string& text) -> tl::expected<Duration, std::string> {
            auto duration = parse_duration(text);
            if (!duration) return duration;
            if (auto allowed = check_range(text, *duration, min, max); !allowed) {
              return tl::unexpected(allowed.error());
            }
            return duration;
          },
          .text = format_duration,
          .record = [](Duration value) { return seconds(value); }};
}

ValueType<std::string> path() {
  return {.parse = [](const std::string& text) -> tl::expected<std::string, std::string> {
            if (!text.empty() && text.find('\0') == std::string::npos) return text;
            return tl::unexpected<std::string>("the path of a file is expected");
          },
          .text = [](const std::string& value) { return value; },
          .record = [](const std::string& value) -> results::OptionValue {
            if (value.empty()) return nullptr;
            return value;
          }};
}

ValueType<std::string> any_text() {
  const auto same = [](const std::string& text) { return text; };
  return {.parse = same, .text = same};
}

std::string not_one_of(std::string_view text, const std::vector<std::string_view>& allowed) {
  return fmt::format("\"{}\" is not one of {}", text, fmt::join(allowed, ", "));
}

}  // namespace lockbench::cli
