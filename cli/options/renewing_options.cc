#include <fmt/format.h>

#include "cli/options/option.h"
#include "cli/options/option_types.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using Set = tl::expected<void, std::string>;

Option renew_option() {
  Option option{.name = "renew", .value_name = "P"};
  option.help =
      "renewal of held leases, where the strategy can: off, auto (every third of the TTL) or an "
      "interval (its own)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    auto& renew = options.workload.strategy.renew;
    if (text == "off" || text == "auto") {
      renew = RenewPolicy{text == "off" ? RenewPolicy::Kind::off : RenewPolicy::Kind::automatic};
      return {};
    }
    const auto period = parse_duration(text);
    if (!period) {
      return tl::unexpected(
          fmt::format("\"{}\" is neither off nor auto nor a duration such as 250ms", text));
    }
    if (auto allowed = check_range(text, *period, {1ms, 24h}); !allowed) return allowed;
    renew = RenewPolicy{RenewPolicy::Kind::every, *period};
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& renew = options.workload.strategy.renew;
    if (!renew) return nullptr;
    if (renew->kind == RenewPolicy::Kind::every) return seconds(renew->period);
    return std::string(renew->kind == RenewPolicy::Kind::off ? "off" : "auto");
  };
  return option;
}

Option renew_cap_option() {
  Option option{.name = "renew-cap", .value_name = "D"};
  option.help = "the longest that renewal may prolong one lease, from its grant (no bound)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    const auto cap = parse_duration(text);
    if (!cap) return tl::unexpected(cap.error());
    if (auto allowed = check_range(text, *cap, {1ms, 168h}); !allowed) return allowed;
    options.workload.strategy.renew_cap = *cap;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    const auto& cap = options.workload.strategy.renew_cap;
    if (!cap) return nullptr;
    return seconds(*cap);
  };
  return option;
}

}  // namespace

std::vector<Option> renewing_options() { return {renew_option(), renew_cap_option()}; }

}  // namespace lockbench::cli
