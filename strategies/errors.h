#pragma once

#include <string>
#include <tl/expected.hpp>

namespace lockbench {

/// Why a store did not do what it was asked. Contention is not an error.
struct StoreError {
  enum class Kind {
    not_sent,    ///< The command never left: it took no effect.
    unanswered,  ///< Sent, but no answer came: it may have taken effect.
    rejected,    ///< The store answered with an error: it took no effect.
    refused,     ///< Done, but not as safely as was asked: it has been taken back.
  };

  Kind kind = Kind::not_sent;
  /// One line that names the endpoint, never a secret.
  std::string message;
};

template <class T>
using StoreResult = tl::expected<T, StoreError>;

}  // namespace lockbench
