#include "cli/options/option.h"
#include "cli/options/option_types.h"
#include "exporter/listen_address.h"
#include "exporter/push_target.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using Set = tl::expected<void, std::string>;

Option listen_option() {
  Option option{.name = "metrics-listen", .value_name = "ADDR:PORT"};
  option.help =
      "serve /metrics for Prometheus meanwhile; without ADDR on the loopback; port 0: a free one";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const auto address = exporter::parse_listen_address(text);
    if (!address) return tl::unexpected(address.error());
    options.metrics.listen = *address;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (!options.metrics.listen) return nullptr;
    return options.metrics.listen->to_string();
  };
  return option;
}

Option push_option() {
  Option option{.name = "push", .value_name = "URL"};
  option.help =
      "push the final metrics to this Pushgateway: http[s]://[user[:password]@]host[:port][/path]";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const auto target = exporter::parse_push_target(text);
    if (!target) return tl::unexpected(target.error());
    options.metrics.push = text;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (!options.metrics.push) return nullptr;
    return exporter::parse_push_target(*options.metrics.push)->display();
  };
  return option;
}

}  // namespace

std::vector<Option> metrics_options() {
  return {listen_option(),
          duration_option(
              "linger", "how long /metrics is served after the run", {0s, 168h},
              [](auto& o) -> auto& { return o.metrics.linger; }),
          push_option()};
}

}  // namespace lockbench::cli
