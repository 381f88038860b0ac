#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// A second encoder for ZooKeeper's messages: a fake must not share the mistakes of the encoder
/// under test (strategies/zookeeper/client/messages.h).
namespace lockbench::test::jute {

/// `size` bytes, big-endian.
inline std::string number(std::int64_t value, int size) {
  std::string bytes;
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> shift);
  }
  return bytes;
}

/// A text or packet, preceded by its length.
inline std::string text(std::string_view bytes) {
  return number(static_cast<std::int64_t>(bytes.size()), 4).append(bytes);
}

/// A signed number of 4 or 8 bytes.
inline std::int64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (const char byte : bytes.substr(at, size)) {
    value = (value << 8) | static_cast<unsigned char>(byte);
  }
  return size == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
}

}  // namespace lockbench::test::jute
