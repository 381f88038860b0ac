#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch/sighting.h"

// Recognises by their names and values who keeps a lock in which way. Takes any bytes.
namespace lockbench::watch {

/// The name of a sequence node below a lock's node, in the form of any known library.
struct SequenceNode {
  std::string maker;   ///< a UUID; empty: the name does not tell
  std::string prefix;  ///< before the number, without the maker: "lock-", "__lock__"
  std::uint64_t sequence = 0;
  bool shared = false;  ///< of a read lock
};
/// Reads Curator's "_c_<uuid>-lock-0000000001", kazoo's "<uuid>__lock__0000000001" and plain
/// "lock-0000000001"; nothing for any other name.
std::optional<SequenceNode> read_sequence_node(std::string_view name);

/// What a string value says: a token, or one with a number that grows ("token:17", "17:token").
/// Shape::unknown for what is no owner: empty, long or structured texts.
struct TokenValue {
  Shape shape = Shape::unknown;
  std::string owner;
  std::optional<std::uint64_t> fence;
};
TokenValue read_token(std::string_view value);

/// "550e8400-e29b-41d4-a716-446655440000", or the same without dashes.
bool is_uuid(std::string_view text);

/// Columns of a table of locks that says who holds which until when, as ShedLock's does.
struct LockTableColumns {
  std::string name, until, by;
};
/// Nothing: the table is none.
std::optional<LockTableColumns> read_lock_table(const std::vector<std::string>& columns);

}  // namespace lockbench::watch
