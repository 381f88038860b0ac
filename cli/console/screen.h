#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "strategies/duration.h"

namespace lockbench::cli {

/// Of a terminal, in characters.
struct ScreenSize {
  std::size_t columns = 80, lines = 24;

  bool operator==(const ScreenSize&) const = default;
};

/// The whole terminal, on its alternate screen, with keys that need no enter. Given back as it was
/// when it is destroyed, and when a crash or a signal ends the process. One at a time; for one
/// thread.
class Screen {
 public:
  /// Draws on `out` and reads keys from `in`, which are descriptors of a terminal. Null if one of
  /// them is none, or cannot be switched.
  static std::unique_ptr<Screen> open(int in, int out);
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  ScreenSize size() const;
  /// False if the terminal is gone.
  bool draw(std::span<const std::string> lines);
  /// What was typed, after at most so long; empty: nothing.
  std::string typed(Duration within);

 private:
  Screen(int in, int out) : in_(in), out_(out) {}

  const int in_, out_;
  bool keys_ = true;  ///< false once the terminal has no more
};

/// What draws these lines from the top left corner, and clears the rest.
std::string frame(std::span<const std::string> lines);

}  // namespace lockbench::cli
