#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace lockbench {

/// Why a command failed. A lock that is taken is not an error.
struct StoreError {
  enum class Kind {
    not_sent,    ///< the command was not sent: it took no effect
    unanswered,  ///< sent, but without an answer: it may have taken effect
    rejected,    ///< the store answered with an error: it took no effect
    refused,     ///< not done, or taken back: it would be less safe than requested
  };

  /// For `rejected`: the error in the store's answer, if some caller acts on it. Set where the
  /// answer is parsed.
  enum class Code {
    other,
    unknown_script,
    no_login,
    no_permission,
    read_only,
    moved,      ///< another server of the cluster has the key
    asked,      ///< the same, for this command only, as the key's slot is moving
    try_again,  ///< the command's keys are on both of these servers
  };

  Kind kind = Kind::not_sent;
  /// One line that names the endpoint, never a secret.
  std::string message;
  Code code = Code::other;
};

template <class T>
using StoreResult = tl::expected<T, StoreError>;

/// The result of a step before the lock itself is requested: if the step was unanswered, the
/// request was not sent.
template <class T>
StoreResult<T> before_request(StoreResult<T> result) {
  if (!result && result.error().kind == StoreError::Kind::unanswered) {
    result.error().kind = StoreError::Kind::not_sent;
  }
  return result;
}

/// A store's words, for use in a message: without control characters, and truncated.
inline std::string printable(std::string_view said) {
  constexpr std::size_t kLongest = 300;
  std::string shown(said.substr(0, kLongest));
  for (char& byte : shown) {
    if (static_cast<unsigned char>(byte) < ' ' || byte == 0x7f) byte = ' ';
  }
  return said.size() > kLongest ? shown + "..." : shown;
}

/// A failure at the server with this display name: one line, which begins with that name.
inline tl::unexpected<StoreError> failure_at(std::string_view display, StoreError::Kind kind,
                                             std::string_view why,
                                             StoreError::Code code = StoreError::Code::other) {
  std::string text = printable(why);
  if (!text.starts_with(display)) text = fmt::format("{}: {}", display, text);
  return tl::unexpected(StoreError{kind, std::move(text), code});
}

}  // namespace lockbench
