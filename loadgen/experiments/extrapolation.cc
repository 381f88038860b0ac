#include "loadgen/experiments/extrapolation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/tables/text.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

constexpr double kMostClients = 1e9;
constexpr Duration kLongestRtt = 1h;

tl::expected<void, std::string> take(const std::string& part, Extrapolation& into) {
  const std::size_t equals = std::min(part.find('='), part.size());
  const std::string name = part.substr(0, equals);
  const std::string value = equals < part.size() ? part.substr(equals + 1) : "";
  if (name == "clients" && !into.clients) {
    const auto clients = results::parse_number<double>(value);
    if (!clients || *clients != std::floor(*clients) || *clients < 1 || *clients > kMostClients) {
      return tl::unexpected(fmt::format("\"{}\": clients must be a whole number from 1 to {:.0f}",
                                        part, kMostClients));
    }
    into.clients = clients;
    return {};
  }
  if (name == "rtt" && !into.rtt) {
    const auto rtt = parse_duration(value);
    if (!rtt) return tl::unexpected(rtt.error());
    if (*rtt < Duration::zero() || *rtt > kLongestRtt) {
      return tl::unexpected(
          fmt::format("\"{}\": rtt must be from 0s to {}", part, format_duration(kLongestRtt)));
    }
    into.rtt = *rtt;
    return {};
  }
  return tl::unexpected(
      fmt::format("\"{}\" is not clients=N, rtt=D, or both with a comma in between", part));
}

}  // namespace

std::string Extrapolation::text() const {
  std::string text = clients ? fmt::format("clients={:.0f}", *clients) : "";
  if (rtt) text += fmt::format("{}rtt={}", text.empty() ? "" : ",", format_duration(*rtt));
  return text;
}

tl::expected<Extrapolation, std::string> parse_extrapolation(const std::string& text) {
  Extrapolation extrapolation;
  for (const std::string& part : results::split_at_commas(text)) {
    if (auto taken = take(part, extrapolation); !taken) return tl::unexpected(taken.error());
  }
  return extrapolation;
}

}  // namespace lockbench::loadgen
