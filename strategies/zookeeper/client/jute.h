#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockbench::zookeeper {

/// Writes jute, the encoding of ZooKeeper's messages: numbers with the big end first, text and
/// lists behind their lengths.
class Writer {
 public:
  Writer& put(std::int32_t number) { return put_number(static_cast<std::uint32_t>(number), 4); }
  Writer& put(std::int64_t number) { return put_number(static_cast<std::uint64_t>(number), 8); }
  Writer& put(bool flag) { return put_number(flag ? 1 : 0, 1); }
  Writer& put(std::string_view bytes) {
    put(static_cast<std::int32_t>(bytes.size()));
    bytes_ += bytes;
    return *this;
  }
  Writer& put(const char*) = delete;  // would become a bool

  /// The packet: what was written, behind its length.
  std::string framed() const {
    Writer packet;
    packet.put(std::string_view(bytes_));
    return std::move(packet.bytes_);
  }

 private:
  Writer& put_number(std::uint64_t number, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
      bytes_ += static_cast<char>(number >> shift);
    }
    return *this;
  }

  std::string bytes_;
};

/// Reads jute that may be anything. Once something does not fit, it and all that follows reads as
/// zero or empty, and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::int32_t int32() { return static_cast<std::int32_t>(number(4)); }
  std::int64_t int64() { return static_cast<std::int64_t>(number(8)); }
  bool boolean() { return number(1) != 0; }
  /// Views into the bytes. Empty for null, which has the length -1.
  std::string_view text();
  std::vector<std::string> texts();

  bool ok() const { return ok_; }
  std::size_t left() const { return rest_.size(); }
  /// Everything fitted, and nothing is left.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t size);
  std::uint64_t number(std::size_t size);
  /// A length, or -1 for null, read as 0.
  std::size_t length();

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace lockbench::zookeeper
