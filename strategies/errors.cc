#include "strategies/errors.h"

#include <algorithm>

namespace lockbench {

std::string printable(std::string_view said) {
  constexpr std::size_t kLongest = 300;
  constexpr unsigned char kDelete = 0x7f;
  std::string shown(said.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char byte) { return byte < ' ' || byte == kDelete; },
      ' ');
  return said.size() > kLongest ? shown + "..." : shown;
}

}  // namespace lockbench
