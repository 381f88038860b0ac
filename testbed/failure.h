#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace lockbench::testbed {

/// A server or another process did not do as requested.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The value; throws Failure for an error, which is a text or has one as `message`.
template <class T, class E>
T need(tl::expected<T, E> result) {
  if constexpr (std::is_same_v<E, std::string>) {
    if (!result) throw Failure(result.error());
  } else {
    if (!result) throw Failure(result.error().message);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Whether `what` is true in time; asks at least once, and then every millisecond.
template <class What>
bool comes_true(std::chrono::milliseconds within, const What& what) {
  constexpr std::chrono::milliseconds kPause{1};
  const auto give_up_at = std::chrono::steady_clock::now() + within;
  while (!what()) {
    if (std::chrono::steady_clock::now() > give_up_at) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

/// The result of the work; a Failure that it throws becomes the error.
template <class Work>
tl::expected<std::invoke_result_t<const Work&>, std::string> attempt(const Work& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<const Work&>>) {
      work();
      return {};
    } else {
      return work();
    }
  } catch (const Failure& failure) {
    return tl::unexpected<std::string>(failure.what());
  }
}

}  // namespace lockbench::testbed
