#include "strategies/zookeeper/client/jute.h"

namespace lockbench::zookeeper {

std::string_view Reader::take(std::size_t size) {
  if (!ok_ || size > rest_.size()) {
    ok_ = false;
    rest_ = {};
    return {};
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::uint64_t Reader::number(std::size_t size) {
  std::uint64_t number = 0;
  for (const char byte : take(size)) {
    number = (number << 8) | static_cast<unsigned char>(byte);
  }
  return number;
}

std::size_t Reader::length() {
  const std::int32_t length = int32();
  if (length < -1) ok_ = false;
  return ok_ && length > 0 ? static_cast<std::size_t>(length) : 0;
}

std::string_view Reader::text() { return take(length()); }

std::vector<std::string> Reader::texts() {
  constexpr std::size_t kShortest = sizeof(std::int32_t);
  const std::size_t count = length();
  std::vector<std::string> texts;
  // Before anything is allocated for them.
  if (count > rest_.size() / kShortest) ok_ = false;
  if (!ok_) return texts;
  texts.reserve(count);
  for (std::size_t i = 0; i < count && ok_; ++i) texts.emplace_back(text());
  return texts;
}

}  // namespace lockbench::zookeeper
