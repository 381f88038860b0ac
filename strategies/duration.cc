#include "strategies/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace lockbench {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

// Largest first, so that format_duration finds the shortest form.
constexpr std::array<Unit, 6> kUnits{{{"h", 3'600'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"s", 1'000'000'000},
                                      {"ms", 1'000'000},
                                      {"us", 1'000},
                                      {"ns", 1}}};

tl::unexpected<std::string> not_a_duration(std::string_view text) {
  return tl::unexpected(fmt::format(
      "\"{}\" is not a duration: a number of at least 0 with ns, us, ms, s, m or h, such as 250us",
      text));
}

}  // namespace

BootClock::time_point BootClock::now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

Duration BootClock::suspended() noexcept {
  // A pause between the two readings adds to the difference, so the smallest counts.
  constexpr int kLooks = 3;
  Duration least = Duration::max();
  for (int look = 0; look < kLooks; ++look) {
    const Duration awake = std::chrono::steady_clock::now().time_since_epoch();
    least = std::min(least, now().time_since_epoch() - awake);
  }
  return least;
}

tl::expected<Duration, std::string> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0) || std::isinf(number)) return not_a_duration(text);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest.empty() && number == 0) return Duration::zero();
  for (const Unit& unit : kUnits) {
    if (rest != unit.name) continue;
    const double nanoseconds = number * static_cast<double>(unit.nanoseconds);
    if (nanoseconds > static_cast<double>(kLongestDuration.count())) return not_a_duration(text);
    return Duration(std::llround(nanoseconds));
  }
  return not_a_duration(text);
}

std::string format_duration(Duration duration) {
  const std::int64_t nanoseconds = duration.count();
  if (nanoseconds == 0) return "0s";
  // Never fails: the last unit divides every count.
  const auto* const unit = std::ranges::find_if(
      kUnits, [&](const Unit& one) { return nanoseconds % one.nanoseconds == 0; });
  return fmt::format("{}{}", nanoseconds / unit->nanoseconds, unit->name);
}

timespec to_timespec(Duration duration) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(duration);
  return {.tv_sec = whole.count(), .tv_nsec = (duration - whole).count()};
}

}  // namespace lockbench
