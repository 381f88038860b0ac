#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <limits>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench::history {

enum class Function : std::uint8_t { acquire, release, acquire_shared, release_shared };
/// Their names in files, in that order.
inline constexpr std::array<std::string_view, 4> kFunctions{"acquire", "release", "acquire-shared",
                                                            "release-shared"};
constexpr bool acquires(Function f) {
  return f == Function::acquire || f == Function::acquire_shared;
}
constexpr bool is_shared(Function f) {
  return f == Function::acquire_shared || f == Function::release_shared;
}

enum class Outcome : std::uint8_t {
  ok,
  fail,  ///< without effect
  info,  ///< indefinite: it may take effect at any later time, or never
};
inline constexpr std::array<std::string_view, 3> kOutcomes{"ok", "fail", "info"};

/// The end of an indefinite operation.
inline constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();

/// What a process asked of a lock, from the call to the answer, in nanoseconds.
struct Operation {
  std::int64_t begin = 0, end = kOpen;
  std::int64_t value = -1;            ///< the fencing number of a grant; negative: none
  std::int32_t process = 0, key = 0;  ///< their places in the History
  std::uint32_t line = 0;             ///< of the file, where it began
  Function f = Function::acquire;
  Outcome outcome = Outcome::info;
};

struct History {
  /// In the order of the file.
  std::vector<Operation> operations;
  std::vector<std::string> keys, processes;  ///< their names
  std::uint64_t ignored = 0;                 ///< operations of other functions
};

enum class Form {
  edn,    ///< Jepsen's: a map for the call, and one for its end
  jsonl,  ///< an object for each operation, with the fields of Porcupine's Operation
};
/// By the extension of the path.
tl::expected<Form, std::string> form_of(const std::string& path);

/// Reads a history of the form that its extension names. Operations of other functions than those
/// of locks, and of processes without a number (Jepsen's nemesis), are left out. The error names
/// the file, the line and what is allowed.
tl::expected<History, std::string> read(const std::string& path);
/// `name` is that of the file.
tl::expected<History, std::string> read(std::istream& from, Form form, std::string_view name);

}  // namespace lockbench::history
