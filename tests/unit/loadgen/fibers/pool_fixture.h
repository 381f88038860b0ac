#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "loadgen/fibers/scheduler.h"
#include "strategies/carrier.h"
#include "tests/support/eventually.h"

namespace lockbench::fibers {

using namespace std::chrono_literals;

/// Bounds a broken wait; the awaited events come long before.
constexpr Duration kBound = test::kPatience;

inline TimePoint bound() { return Carrier::current().now() + kBound; }

/// A pool of two threads.
class PoolTest : public testing::Test {
 protected:
  void start(int on, std::function<void()> body) {
    const auto on_failure = [this](const std::string& why) {
      const std::scoped_lock lock(mutex_);
      failures_.push_back(why);
    };
    auto task = pool_->start(
        on, [body = std::move(body)](const std::stop_token&) { body(); }, on_failure);
    ASSERT_TRUE(task) << task.error();
    tasks_.push_back(std::move(*task));
  }
  /// Runs a body that may use locals of the test, on the first thread, and waits for its end.
  void run(std::function<void()> body) {
    start(0, std::move(body));
    end();
  }
  /// Asks all bodies to stop and waits for their ends.
  void end() { tasks_.clear(); }

  std::unique_ptr<Pool> pool_ = Pool::make(2).value();
  std::mutex mutex_;
  std::vector<std::string> failures_;  ///< exceptions of bodies
  std::vector<std::unique_ptr<Task>> tasks_;
};

}  // namespace lockbench::fibers
