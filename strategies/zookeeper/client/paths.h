#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockbench::zookeeper {

/// The parent of all nodes of a run: "/lockbench/20261121T012530Z-4f3a9c".
std::string run_path(std::string_view run_id);

/// The node of a key: "/lockbench/<run>/{1}" for "lockbench:<run>:{1}". Characters that a node's
/// name cannot have are percent-encoded, so that no two keys share a node. Keys of another form
/// belong to the run "-".
std::string node_of_key(std::string_view key);

/// "/a/b" of "/a/b/c"; empty for "/a".
std::string_view parent_of(std::string_view path);

/// The ten digits that ZooKeeper appends to the name of a sequential node; nothing if the name does
/// not end in them.
std::optional<std::int64_t> sequence_of(std::string_view name);

/// A contender's place among the children of a lock's node.
struct Place {
  bool there = false;  ///< its node is among them
  std::optional<std::string_view>
      ahead{};  ///< the node that it waits for; nothing: it has the lock
};

/// Compares sequence numbers only, as the names' prefixes differ. Children without a number are
/// ignored. `ahead` views into `children`.
Place place_among(std::span<const std::string> children, std::string_view own);

}  // namespace lockbench::zookeeper
