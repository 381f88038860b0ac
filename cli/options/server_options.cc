#include "cli/options/option.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

/// The user's own servers of a store. Shown without their secrets.
Option server_option(const StoreKind& kind) {
  Option option{.name = kind.name,
                .value_name = kind.value_name,
                .help = std::string(kind.help),
                .repeatable = kind.repeatable};
  option.set = [&kind](RunOptions& options,
                       const std::string& text) -> tl::expected<void, std::string> {
    if (!kind.not_built.empty()) {
      return tl::unexpected("this build is without " + std::string(kind.name));
    }
    if (auto shown = kind.display(text); !shown) return tl::unexpected(shown.error());
    std::vector<std::string>& urls = options.servers[std::string(kind.name)];
    if (!kind.repeatable) urls.clear();
    urls.push_back(text);
    return {};
  };
  option.get = [&kind](const RunOptions& options) -> results::OptionValue {
    const auto urls = options.servers.find(kind.name);
    if (urls == options.servers.end()) return nullptr;
    std::vector<std::string> shown;
    for (const std::string& url : urls->second) shown.push_back(kind.display(url).value_or("?"));
    if (kind.repeatable) return shown;
    return shown.front();
  };
  return option;
}

}  // namespace

Option counter_redis_option() {
  Option option{.name = "counter-redis", .value_name = "URL"};
  option.help =
      "where the counter of --resource redis and redis-fenced lives (--redis, or a private server)";
  option.set = [](RunOptions& options, const std::string& text) -> tl::expected<void, std::string> {
    if (auto shown = find_store_kind("redis")->display(text); !shown) {
      return tl::unexpected(shown.error());
    }
    options.counter_redis = text;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (!options.counter_redis) return nullptr;
    return find_store_kind("redis")->display(*options.counter_redis).value_or("?");
  };
  return option;
}

std::vector<Option> server_options() {
  std::vector<Option> all;
  for (const StoreKind* kind : store_kinds()) all.push_back(server_option(*kind));
  return all;
}

}  // namespace lockbench::cli
