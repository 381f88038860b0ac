#include "strategies/etcd/sequencer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "strategies/etcd/chubby_keys.h"
#include "strategies/etcd/client/txn.h"

namespace lockbench::etcd {
namespace {

constexpr std::string_view kExclusive = "exclusive", kShared = "shared";

}  // namespace

Sequencer sequencer_of(const Lease& lease) {
  return {.name = lease.key, .mode = lease.mode, .generation = lease.fencing.value_or(0)};
}

std::string to_string(const Sequencer& sequencer) {
  return fmt::format("{}:{}:{}", sequencer.mode == Mode::exclusive ? kExclusive : kShared,
                     sequencer.generation, sequencer.name);
}

tl::expected<Sequencer, std::string> parse_sequencer(std::string_view text) {
  const auto malformed = [] {
    return tl::unexpected(std::string("a sequencer is exclusive:GENERATION:NAME or shared:..."));
  };
  const std::size_t first = text.find(':');
  if (first == std::string_view::npos) return malformed();
  const std::size_t second = text.find(':', first + 1);
  if (second == std::string_view::npos) return malformed();
  Sequencer sequencer{.name = std::string(text.substr(second + 1))};
  const std::string_view mode = text.substr(0, first);
  if (mode != kExclusive && mode != kShared) return malformed();
  sequencer.mode = mode == kShared ? Mode::shared : Mode::exclusive;
  const char* const end = text.data() + second;
  const auto [rest, error] = std::from_chars(text.data() + first + 1, end, sequencer.generation);
  if (error != std::errc() || rest != end || sequencer.name.empty()) return malformed();
  return sequencer;
}

StoreResult<bool> check_sequencer(Connection& etcd, const Sequencer& sequencer,
                                  const std::stop_token& stop) {
  // Guards and queue as of one moment: a guard alone is that of a holder who has failed.
  etcdserverpb::RangeRequest request;
  request.set_key(sequencer.name + "/");
  request.set_range_end(end_of_prefix(request.key()));
  request.set_keys_only(true);
  const auto all = etcd.range(sequencer.name, request, stop);
  if (!all) return tl::unexpected(all.error());
  const auto& keys = all->kvs();
  const std::string guards = guards_of(sequencer.name, sequencer.mode);
  const auto guard = std::find_if(keys.begin(), keys.end(), [&](const auto& key) {
    return key.key().starts_with(guards) &&
           static_cast<std::uint64_t>(key.create_revision()) == sequencer.generation;
  });
  if (guard == keys.end()) return false;
  const std::string place =
      queue_of(sequencer.name, sequencer.mode) + guard->key().substr(guards.size());
  return std::any_of(keys.begin(), keys.end(), [&](const auto& key) { return key.key() == place; });
}

}  // namespace lockbench::etcd
