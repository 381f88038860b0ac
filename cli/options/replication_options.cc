#include <fmt/format.h>

#include "cli/options/option.h"
#include "cli/options/option_types.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using Set = tl::expected<void, std::string>;

constexpr int kMostReplicas = 16;

Option node_timeout_option() {
  Option option{.name = "node-timeout", .value_name = "D"};
  option.help =
      "how long one Redlock node is waited for (50ms, or a twentieth of the TTL if that is less)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const auto timeout = parse_duration(text);
    if (!timeout) return tl::unexpected(timeout.error());
    if (auto allowed = check_range(text, *timeout, {100us, 1h}); !allowed) return allowed;
    options.workload.strategy.node_timeout = *timeout;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& timeout = options.workload.strategy.node_timeout;
    if (!timeout) return nullptr;
    return seconds(*timeout);
  };
  return option;
}

Option wait_replicas_option() {
  Option option{.name = "wait-replicas", .value_name = "K", .type = Option::Type::integer_or_text};
  option.help = "replicas that must acknowledge a lock of redis-wait; all: those there are (all)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    std::optional<int>& wanted = options.workload.strategy.wait_replicas;
    wanted.reset();
    if (text == "all") return {};
    const auto replicas = read_number<int>(text);
    if (!replicas || *replicas < 1 || *replicas > kMostReplicas) {
      return tl::unexpected(fmt::format("\"{}\" is neither a whole number from 1 to {} nor all",
                                        text, kMostReplicas));
    }
    wanted = replicas;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& wanted = options.workload.strategy.wait_replicas;
    if (!wanted) return std::string("all");
    return std::int64_t{*wanted};
  };
  return option;
}

}  // namespace

std::vector<Option> replication_options() {
  return {
      number_option(
          "nodes", "N", "Redlock's private nodes, unless --redis names them", Range<int>{1, 15},
          [](auto& o) -> auto& { return o.workload.nodes; }),
      node_timeout_option(),
      number_option(
          "replicas", "N", "replicas of the private Redis that redis-wait locks on",
          Range<int>{0, kMostReplicas}, [](auto& o) -> auto& { return o.replicas; }),
      wait_replicas_option(),
      duration_option(
          "wait-timeout", "within which they must acknowledge", {1ms, 1h},
          [](auto& o) -> auto& { return o.workload.strategy.wait_timeout; }),
  };
}

}  // namespace lockbench::cli
