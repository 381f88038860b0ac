#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lockbench::cli {

/// Of a terminal, in characters.
struct ScreenSize {
  std::size_t columns = 80, lines = 24;
};

/// The default if the terminal does not tell.
ScreenSize screen_size(int terminal);

/// Writes the text whole. False if the terminal is gone.
bool write_to(int terminal, std::string_view text);

/// What draws these lines from the top left corner, and clears the rest.
std::string frame(std::span<const std::string> lines);

}  // namespace lockbench::cli
