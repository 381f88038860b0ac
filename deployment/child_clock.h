#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "strategies/duration.h"
#include "testbed/process/clock_page.h"

namespace lockbench::deployment {

/// The wall clock of the programs that this process starts after it was made, if their runtimes ask
/// the C library for the time. For one thread.
class ChildClock {
 public:
  /// Changes this process's environment. The error says what is missing.
  static tl::expected<std::unique_ptr<ChildClock>, std::string> make();
  ChildClock(const ChildClock&) = delete;
  ChildClock& operator=(const ChildClock&) = delete;
  ~ChildClock();

  /// Moves it ahead, or back.
  void shift(Duration by);
  /// The number of programs that use it.
  std::int64_t loads() const;

 private:
  ChildClock(int file, testbed::ClockPage* page) : file_(file), page_(page) {}

  const int file_;
  testbed::ClockPage* const page_;
};

}  // namespace lockbench::deployment
