#include <fmt/format.h>

#include "cli/options/option.h"
#include "strategies/redis/client/endpoint.h"

namespace lockbench::cli {
namespace {

using Set = tl::expected<void, std::string>;

// Only ever shown without its secrets.
std::string display(const std::string& url) {
  const auto endpoint = redis::parse_endpoint(url);
  if (!endpoint) return "?";
  if (endpoint->database == 0) return endpoint->display();
  return fmt::format("{}{}{}", endpoint->display(),
                     endpoint->path.empty() ? "/" : "?db=", endpoint->database);
}

Option redis_option() {
  Option option{.name = "redis", .value_name = "URL", .repeatable = true};
  option.help =
      "use this Redis instead of a private one: redis://[[user]:password@]host[:port][/db] or "
      "unix://[[user]:password@]/path, or "
      "redis+sentinel://[[user]:password@]host[:port],.../name[/db] "
      "for the master that these sentinels watch; repeatable: Redlock's nodes, the first is for "
      "all "
      "others";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    if (auto endpoint = redis::parse_endpoint(text); !endpoint) {
      return tl::unexpected(endpoint.error());
    }
    options.redis.push_back(text);
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (options.redis.empty()) return nullptr;
    std::vector<std::string> endpoints;
    for (const std::string& url : options.redis) endpoints.push_back(display(url));
    return endpoints;
  };
  return option;
}

Option counter_redis_option() {
  Option option{.name = "counter-redis", .value_name = "URL"};
  option.help =
      "where the counter of --resource redis and redis-fenced lives (--redis, or a private server)";
  option.set = [](RunOptions& options, const std::string& text) -> Set {
    if (auto endpoint = redis::parse_endpoint(text); !endpoint) {
      return tl::unexpected(endpoint.error());
    }
    options.counter_redis = text;
    return {};
  };
  option.get = [](const RunOptions& options) -> results::OptionValue {
    if (!options.counter_redis) return nullptr;
    return display(*options.counter_redis);
  };
  return option;
}

}  // namespace

std::vector<Option> redis_options() { return {redis_option(), counter_redis_option()}; }

}  // namespace lockbench::cli
