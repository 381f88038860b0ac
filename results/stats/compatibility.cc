#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "results/file/loads.h"
#include "results/stats/comparison.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

/// Besides output options, these change neither the load nor the servers.
constexpr std::array<std::string_view, 5> kFree{"strategies", "repeat", "seed", "strict",
                                                "threshold"};

/// Of private servers. Files from before this option have none.
constexpr const char* kTls = "tls";

bool may_differ(std::string_view option) {
  return is_of_output(option) || std::find(kFree.begin(), kFree.end(), option) != kFree.end();
}

constexpr std::size_t kLongestValue = 40;

std::string shown(const std::string& text) { return clip(printable(text), kLongestValue); }
std::string shown(const OptionValue& value) {
  const std::string text = value_text(value);
  return text.empty() ? "none" : shown(text);
}

class Differences {
 public:
  void add(std::string_view what, const std::string& a, const std::string& b) {
    if (a != b) lines_.push_back(fmt::format("{} {} and {}", what, shown(a), shown(b)));
  }

  void add_workload(const Result& a, const Result& b) {
    // An option that one version did not have yet was at its default.
    for (const auto& [option, value] : a.workload) {
      if (may_differ(option) || option == kTls) continue;
      const auto other = b.workload.find(option);
      if (other == b.workload.end() || same_value(value, other->second)) continue;
      lines_.push_back(
          fmt::format("{} {} and {}", shown(option), shown(value), shown(other->second)));
    }
  }

  /// Proxies cost time, even if they add no delay, and so does TLS.
  void add_connections(const Result& a, const Result& b) {
    const auto way = [](const Result& result) -> std::string {
      const bool proxies = result.workload.contains("through_proxies") ||
                           workload_number(result, "rtt").value_or(0) > 0;
      const auto tls = result.workload.find(kTls);
      const bool secured = tls != result.workload.end() && same_value(tls->second, true);
      return fmt::format("{}{}", proxies ? "through proxies" : "direct",
                         secured ? " with TLS" : "");
    };
    add("connections", way(a), way(b));
  }

  void add_environment(const Environment& a, const Environment& b) {
    add("cpu", a.cpu, b.cpu);
    add("cores", fmt::format("{}", a.cores), fmt::format("{}", b.cores));
    add("kernel", a.kernel, b.kernel);
    // Firmware and kernel reserve varying amounts.
    const auto gibibytes = [](std::uint64_t bytes) {
      return fmt::format("{:.0f} GiB", std::round(static_cast<double>(bytes) / (1 << 30)));
    };
    add("memory", gibibytes(a.memory_bytes), gibibytes(b.memory_bytes));
    for (const auto& [name, server] : a.servers) {
      const auto other = b.servers.find(name);
      if (other != b.servers.end()) add(shown(name), server.version, other->second.version);
    }
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> incompatibilities(const Result& a, const Result& b) {
  Differences differences;
  differences.add_workload(a, b);
  differences.add_connections(a, b);
  differences.add_environment(a.environment, b.environment);
  differences.add("build", a.lockbench.build_type, b.lockbench.build_type);
  return differences.take();
}

}  // namespace lockbench::results
