#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/redis/client/connection.h"

// What the commands of Redis, and the scripts of several strategies, can answer.
namespace lockbench::redis {

/// "it answered SET with the integer 1, expected OK or nil"
std::string describe_answer(std::string_view name, const Reply& reply, std::string_view expected);

/// An integer within these bounds.
std::optional<std::int64_t> number_in(const Reply& reply, std::int64_t least, std::int64_t most);

// NOLINTBEGIN(readability-identifier-naming): constants, though what they hold is made at the start
extern const Form<bool> kOk;
extern const Form<bool> kOkOrNil;  ///< SET with NX: whether it was set
extern const Form<bool> kFlag;     ///< 0 or 1: whether something was changed
extern const Form<std::int64_t> kCount;
extern const Form<std::string> kText;
extern const Form<std::optional<std::string>> kTextOrNil;
/// PTTL of what is in the way, Duration::max() if that does not end; nothing: granted.
extern const Form<std::optional<Duration>> kNilOrTimeLeft;
// NOLINTEND(readability-identifier-naming)

/// A message to a subscriber, or the error.
tl::expected<Push, std::string> read_push(const Reply& reply);

}  // namespace lockbench::redis
