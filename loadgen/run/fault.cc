#include "loadgen/run/fault.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "strategies/number.h"

namespace lockbench::loadgen {
namespace {

using Done = tl::expected<void, std::string>;

constexpr Duration kShortest = std::chrono::milliseconds(1);
constexpr int kMostNodes = 15;
constexpr Duration kLongestDelay = std::chrono::hours(1);

Done read_nodes(std::string_view text, Fault& fault) {
  const auto nodes = parse_number<int>(text);
  if (!nodes || *nodes < 1 || *nodes > kMostNodes) {
    return tl::unexpected(
        fmt::format("\"{}\" is not a number of nodes from 1 to {}", text, kMostNodes));
  }
  fault.nodes = *nodes;
  return {};
}

Done read_share(std::string_view text, Fault& fault) {
  const auto share = parse_number<double>(text);
  // Written so that NaN is rejected too.
  if (!share || !(*share > 0 && *share <= 1)) {
    return tl::unexpected(
        fmt::format("\"{}\" is not a share of the connections above 0 and up to 1", text));
  }
  fault.share = *share;
  return {};
}

Done read_delay(std::string_view text, Fault& fault) {
  const auto delay = parse_duration(text);
  if (!delay || *delay <= Duration::zero() || *delay > kLongestDelay) {
    return tl::unexpected(fmt::format("\"{}\" is not a delay of up to {}: delay:5ms", text,
                                      format_duration(kLongestDelay)));
  }
  fault.delay = *delay;
  return {};
}

/// `text` follows the colon; `given`: there is a colon.
Done read_parameter(std::string_view text, bool given, Fault& fault) {
  switch (fault.kind) {
    case FaultKind::node_kill:
    case FaultKind::node_freeze:
      return given ? read_nodes(text, fault) : Done();
    case FaultKind::partition:
      return given ? read_share(text, fault) : Done();
    case FaultKind::delay:
      return read_delay(text, fault);
    case FaultKind::store_kill:
    case FaultKind::store_freeze:
    case FaultKind::failover:
      break;
  }
  if (!given) return {};
  return tl::unexpected(
      fmt::format("{} takes no parameter, but got \"{}\"", to_string(fault.kind), text));
}

Done read_times(std::string_view text, Fault& fault) {
  const std::size_t plus = text.find('+');
  const auto at = parse_duration(text.substr(0, plus));
  if (!at) return tl::unexpected(at.error());
  fault.at = *at;
  if (plus == std::string_view::npos) return {};
  const auto lasts = parse_duration(text.substr(plus + 1));
  if (!lasts) return tl::unexpected(lasts.error());
  if (*lasts < kShortest) {
    return tl::unexpected(fmt::format("a length of {} is too short: at least {}",
                                      format_duration(*lasts), format_duration(kShortest)));
  }
  fault.lasts = *lasts;
  return {};
}

}  // namespace

std::string_view to_string(FaultKind kind) { return kFaults.at(static_cast<std::size_t>(kind)); }

std::optional<Duration> Fault::heals_at() const {
  if (lasts) return at + *lasts;
  if (kind == FaultKind::failover) return at;
  return std::nullopt;
}

std::string Fault::to_string() const {
  return fmt::format("{}@{}{}", what, format_duration(at),
                     lasts ? "+" + format_duration(*lasts) : "");
}

tl::expected<Fault, std::string> parse_fault(const std::string& text) {
  const std::size_t sign = text.find('@');
  Fault fault;
  fault.what = text.substr(0, sign);
  const std::size_t colon = fault.what.find(':');
  const std::string name = fault.what.substr(0, colon);
  const auto* const known = std::find(kFaults.begin(), kFaults.end(), name);
  if (known == kFaults.end()) {
    return tl::unexpected(fmt::format("\"{}\" is none of {}", name, fmt::join(kFaults, ", ")));
  }
  if (sign == std::string::npos) {
    return tl::unexpected(fmt::format(
        "\"{}\" has no time: use {}@2s, or {}@2s+1s to heal it after a second", text, text, text));
  }
  fault.kind = static_cast<FaultKind>(known - kFaults.begin());
  const bool given = colon != std::string::npos;
  const std::string parameter = given ? fault.what.substr(colon + 1) : "";
  auto done = read_parameter(parameter, given, fault);
  if (done) done = read_times(std::string_view(text).substr(sign + 1), fault);
  if (!done) return tl::unexpected(fmt::format("\"{}\": {}", text, done.error()));
  return fault;
}

tl::expected<std::vector<Fault>, std::string> timetable(std::vector<Fault> faults,
                                                        Duration duration) {
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Fault& fault = faults[i];
    if (fault.at >= duration) {
      return tl::unexpected(fmt::format("{} would start after the end of the run, which takes {}",
                                        fault.to_string(), format_duration(duration)));
    }
    const std::optional<Duration> heals_at = fault.heals_at();
    if (heals_at && *heals_at > duration) {
      return tl::unexpected(fmt::format("{} would last longer than the run, which takes {}",
                                        fault.to_string(), format_duration(duration)));
    }
    if (i + 1 == faults.size()) break;
    const Fault& next = faults[i + 1];
    if (!heals_at || *heals_at > next.at) {
      return tl::unexpected(
          fmt::format("{} would start while {} is in force: faults must not overlap",
                      next.to_string(), fault.to_string()));
    }
  }
  return faults;
}

bool restarts_servers(const std::vector<Fault>& faults) {
  return std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::store_kill || fault.kind == FaultKind::node_kill ||
           fault.kind == FaultKind::failover;
  });
}

}  // namespace lockbench::loadgen
