#pragma once

#include <functional>
#include <future>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <tl/expected.hpp>
#include <type_traits>

#include "strategies/duration.h"

namespace lockbench {

/// A thread whose body cannot end the program: an exception becomes a line of text. The destructor
/// asks the body to stop, and joins.
class Thread {
 public:
  using Body = std::function<void(const std::stop_token& stop)>;
  /// Called on the thread, with one line, if the body threw. Must not throw.
  using OnFailure = std::function<void(const std::string& why)>;

  Thread() = default;  ///< no thread
  /// The error says that there is no thread, and why.
  static tl::expected<Thread, std::string> start(Body body, OnFailure on_failure);

  bool started() const { return thread_.joinable(); }
  /// The processor time used so far; zero after the body's end, or without a thread.
  Duration cpu_time();
  /// Asks the body to stop, and joins. Does nothing without a thread.
  void finish() noexcept { thread_ = {}; }

 private:
  std::jthread thread_;
};

/// Runs `work` in the background, or in the caller if no thread can be started. The future also
/// holds its exception.
template <class Work>
std::future<std::invoke_result_t<Work>> in_background(Work work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    auto done = std::async(std::launch::deferred, work);
    done.wait();
    return done;
  }
}

}  // namespace lockbench
