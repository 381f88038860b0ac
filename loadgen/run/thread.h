#pragma once

#include <pthread.h>

#include <functional>
#include <string>
#include <tl/expected.hpp>

namespace lockbench::loadgen {

/// A thread with a small stack, which std::thread does not offer: with thousands of clients in one
/// process, each should cost kilobytes. Joins when destroyed.
class SmallThread {
 public:
  /// `body` must not throw.
  static tl::expected<SmallThread, std::string> start(std::function<void()> body);

  SmallThread(SmallThread&& other) noexcept;
  SmallThread& operator=(SmallThread&&) = delete;
  SmallThread(const SmallThread&) = delete;
  SmallThread& operator=(const SmallThread&) = delete;
  ~SmallThread();

 private:
  explicit SmallThread(pthread_t handle) : handle_(handle), joinable_(true) {}

  pthread_t handle_;
  bool joinable_;
};

}  // namespace lockbench::loadgen
