#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/etcd/client/connection.h"
#include "strategies/lease.h"

namespace lockbench::etcd {

/// What the holder of a chubby lock shows to the servers that it works with (Burrows 2006, 2.4):
/// the lock, the mode in which it is held, and which holding of it this is. Later ones have higher
/// generations.
struct Sequencer {
  std::string name;
  Mode mode = Mode::exclusive;
  std::uint64_t generation = 0;

  bool operator==(const Sequencer&) const = default;
};

/// Of a lease that chubby has granted.
Sequencer sequencer_of(const Lease& lease);

/// "exclusive:42:NAME"
std::string to_string(const Sequencer& sequencer);
tl::expected<Sequencer, std::string> parse_sequencer(std::string_view text);

/// For a server that is shown one: whether the lock is held so, in this mode and generation, by a
/// session that is there. On a connection of the server's own.
StoreResult<bool> check_sequencer(Connection& etcd, const Sequencer& sequencer,
                                  const std::stop_token& stop = {});

}  // namespace lockbench::etcd
