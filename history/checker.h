#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "history/operation.h"

namespace lockbench::history {

/// What a lock promises. A process takes it, and releases it itself; each key is another lock.
struct Model {
  enum class Kind {
    mutex,      ///< one process holds it, once
    reentrant,  ///< one process holds it, until it has released it as often as it acquired it
    shared,     ///< one process, or several that share it
    semaphore,  ///< `permits` processes, each once
    fenced,     ///< each grant's number is above those of all earlier grants
  };
  Kind kind = Kind::mutex;
  std::size_t permits = 1;  ///< of a semaphore
};
/// "mutex", "semaphore:3". The error quotes the text and says what is allowed.
tl::expected<Model, std::string> parse_model(const std::string& text);
std::string to_string(const Model& model);

/// Operations of one key that no order explains.
struct Contradiction {
  std::string why;
  std::vector<std::uint32_t> operations;  ///< their places in the history, by their begin
};

struct Judgement {
  std::uint64_t granted = 0;
  /// Grants to processes that began to wait while the lock was taken; in a fenced history, grants
  /// after the first one. Without any, the history proves nothing.
  std::uint64_t contended = 0;
  std::uint64_t contradictions = 0;  ///< grants and releases that cannot be explained
  std::uint64_t keys_contradicted = 0;
  std::optional<Contradiction> first{};  ///< of the earliest
};

/// Whether each operation can have taken effect at one moment between its begin and its end, so
/// that the lock kept its promise. An indefinite one, its process's last on the key, may take
/// effect at any later time or never. Takes O(n log n). The error names the line of an operation
/// that does not suit the model.
tl::expected<Judgement, std::string> judge(const History& history, const Model& model);

}  // namespace lockbench::history
