#include <algorithm>
#include <iterator>

#include "cli/options/option.h"
#include "cli/options/option_types.h"
#include "results/stats/compared_figures.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using Set = tl::expected<void, std::string>;

constexpr int kMostSwept = 10'000;
constexpr std::size_t kMostPoints = 16;

/// A search for the highest rate that keeps it needs one that a higher rate misses.
Set check_direction(const results::Threshold& objective) {
  using enum results::Comparison;
  using results::Good;
  const Good good = results::compared_figure(objective.figure).good;
  const bool below = objective.comparison == less || objective.comparison == less_equal;
  const bool above = objective.comparison == greater || objective.comparison == greater_equal;
  if ((good == Good::lower && above) || (good == Good::higher && below)) {
    return tl::unexpected(fmt::format("\"{}\" is kept the better the worse {} is: {} is allowed",
                                      objective.text, objective.figure, below ? ">" : "<"));
  }
  return {};
}

Option slo_option() {
  Option option{.name = "slo", .value_name = "EXPR", .repeatable = true};
  option.help = "the objective that must be kept: 'acquire.p99<20ms'; repeatable: all of them";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    auto objective = results::parse_threshold(text);
    if (!objective) return tl::unexpected(objective.error());
    if (auto sensible = check_direction(*objective); !sensible) return sensible;
    options.capacity.objective.push_back(std::move(*objective));
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    std::vector<std::string> texts;
    for (const auto& objective : options.capacity.objective) texts.push_back(objective.text);
    return texts;
  };
  return option;
}

/// "1,2,4" as growing numbers, each once.
tl::expected<std::vector<int>, std::string> read_list(const std::string& text,
                                                      const std::string& list) {
  std::vector<int> numbers;
  std::size_t from = 0;
  while (from <= list.size()) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    const auto number = read_number<int>(list.substr(from, comma - from));
    if (!number || *number < 1 || *number > kMostSwept) {
      return tl::unexpected(fmt::format("\"{}\" has something else than whole numbers from 1 to {}",
                                        text, kMostSwept));
    }
    numbers.push_back(*number);
    from = comma + 1;
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (numbers.size() > kMostPoints) {
    return tl::unexpected(fmt::format("\"{}\": at most {} numbers are allowed", text, kMostPoints));
  }
  return numbers;
}

Option sweep_option() {
  Option option{.name = "sweep", .value_name = "LIST", .repeatable = true};
  option.help =
      "closed loops besides: clients=1,2,4 or keys=1,2,4, or off; repeatable (clients=1,2,4,... up "
      "to --clients, keys=1,2,4)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    CapacityOptions& capacity = options.capacity;
    const std::size_t equals = text.find('=');
    const std::string over = text.substr(0, equals);
    const bool listed = equals != std::string::npos && (over == "clients" || over == "keys");
    const bool any = !capacity.sweep_clients.empty() || !capacity.sweep_keys.empty();
    if ((text != "off" && !listed) || (any ? text == "off" : !capacity.sweep)) {
      return tl::unexpected(
          fmt::format("\"{}\" is not clients=N,N,... or keys=N,N,..., or off alone", text));
    }
    capacity.sweep = listed;
    if (!listed) return {};
    auto numbers = read_list(text, text.substr(equals + 1));
    if (!numbers) return tl::unexpected(numbers.error());
    (over == "clients" ? capacity.sweep_clients : capacity.sweep_keys) = std::move(*numbers);
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const CapacityOptions& capacity = options.capacity;
    if (!capacity.sweep) return std::string("off");
    std::vector<std::string> texts;
    for (const auto& [over, list] :
         {std::pair("clients", &capacity.sweep_clients), std::pair("keys", &capacity.sweep_keys)}) {
      if (!list->empty()) texts.push_back(fmt::format("{}={}", over, fmt::join(*list, ",")));
    }
    return texts;
  };
  return option;
}

Option extrapolate_option() {
  Option option{.name = "extrapolate", .value_name = "LOAD", .repeatable = true};
  option.help =
      "what the models say of a load that is not measured: clients=2000,rtt=1ms, the rtt added to "
      "what there is; repeatable";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const auto load = loadgen::parse_extrapolation(text);
    if (!load) return tl::unexpected(load.error());
    options.capacity.extrapolations.push_back(*load);
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (options.capacity.extrapolations.empty()) return nullptr;
    std::vector<std::string> texts;
    for (const loadgen::Extrapolation& load : options.capacity.extrapolations)
      texts.push_back(load.text());
    return texts;
  };
  return option;
}

}  // namespace

std::vector<Option> capacity_options() {
  std::vector<Option> options = {
      slo_option(),
      number_option(
          "clients", "N", "concurrent clients; more than ever wait at once", Range<int>{1, 10'000},
          [](auto& o) -> auto& { return o.capacity.clients; }),
      duration_option(
          "duration", "how long to measure each step of the search, of which 26 are made at most",
          {10ms, 1h}, [](auto& o) -> auto& { return o.capacity.duration; }),
      sweep_option(),
      number_option(
          "planned-rate", "R",
          "sections per second that are planned: says utilisation and headroom, exit code 99 if "
          "they are too many",
          Range<double>{0.001, 10'000'000},
          [](auto& o) -> auto& { return o.capacity.planned_rate; }),
      extrapolate_option()};
  auto shared = some_run_options(
      {"strategies",    "keys",           "key-skew", "hold",          "warmup",
       "ttl",           "wait",           "renew",    "nodes",         "node-timeout",
       "replicas",      "lock-delay",     "resource", "wait-replicas", "wait-timeout",
       "counter-redis", "seed",           "rtt",      "out",           "store-timeout",
       "format",        "quiet",          "strict",   "config",        "acquire-timeout",
       "report",        "metrics-listen", "linger",   "push"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  auto servers = server_options();
  std::move(servers.begin(), servers.end(), std::back_inserter(options));
  return options;
}

}  // namespace lockbench::cli
