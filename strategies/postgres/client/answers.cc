#include "strategies/postgres/client/answers.h"

#include <charconv>

namespace lockbench::postgres {

std::optional<std::uint64_t> read_number(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

std::optional<bool> read_flag(std::string_view text) {
  if (text != "t" && text != "f") return std::nullopt;
  return text == "t";
}

}  // namespace lockbench::postgres
