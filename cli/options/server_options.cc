#include <optional>

#include "cli/options/option.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

/// Names the user's own server of a backend. Shown without its secrets.
Option server_option(std::string_view name, std::string_view value_name, std::string_view help,
                     std::optional<std::string> RunOptions::*place) {
  Option option{.name = name, .value_name = value_name, .help = std::string(help)};
  option.set = [=](RunOptions& options,
                   const std::string& text) -> tl::expected<void, std::string> {
    const StoreKind* const kind = find_store_kind(name);
    if (kind == nullptr) return tl::unexpected("this build is without " + std::string(name));
    if (auto shown = kind->display(text); !shown) return tl::unexpected(shown.error());
    options.*place = text;
    return {};
  };
  option.get = [=](const RunOptions& options) -> results::OptionValue {
    if (!(options.*place)) return nullptr;
    return find_store_kind(name)->display(*(options.*place)).value_or("?");
  };
  return option;
}

}  // namespace

std::vector<Option> server_options() {
  return {server_option("memcached", "HOST:PORT", "use this memcached instead of a private one",
                        &RunOptions::memcached),
          server_option("etcd", "URL",
                        "use this etcd instead of a private one: "
                        "etcd://[user:password@]host[:port][,host[:port]...]",
                        &RunOptions::etcd),
          server_option("postgres", "DSN",
                        "use this PostgreSQL database instead of a private one: "
                        "postgresql://[user[:password]@]host[:port]/database or "
                        "\"host=... dbname=...\"",
                        &RunOptions::postgres),
          server_option("zookeeper", "HOSTS",
                        "use this ZooKeeper instead of a private one: "
                        "[zk://[user:password@]]host[:port][,host[:port]...][/chroot]",
                        &RunOptions::zookeeper)};
}

}  // namespace lockbench::cli
