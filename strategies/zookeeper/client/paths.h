#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockbench::zookeeper {

/// Where the nodes of a run live: "/lockbench/20261121T012530Z-4f3a9c".
std::string run_path(std::string_view run_id);

/// The node that stands for a key: "/lockbench/<run>/{1}" for "lockbench:<run>:{1}". Slashes and
/// the like within a key are percent-encoded, so that no two keys share a node; other keys belong
/// to the run "-".
std::string node_of_key(std::string_view key);

/// "/a/b" of "/a/b/c"; empty for "/a".
std::string_view parent_of(std::string_view path);

/// The ten digits that ZooKeeper gives a sequential node's name, as a number; nothing if the name
/// does not end in them.
std::optional<std::int64_t> sequence_of(std::string_view name);

/// What a contender finds of itself among the children of a lock's node.
struct Place {
  bool there = false;                       ///< its own node is among them
  std::optional<std::string_view> ahead{};  ///< whom it waits for; nobody: it has the lock
};

/// By sequence, whatever their names begin with, which differs from one contender to another.
/// Children that are no contenders do not count. `ahead` views into `children`.
Place place_among(std::span<const std::string> children, std::string_view own);

}  // namespace lockbench::zookeeper
