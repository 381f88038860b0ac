#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "strategies/transport/socket.h"

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

/// A connection that carries packets: each is sent behind its length, in four bytes. One thread at
/// a time in each direction.
class Packets {
 public:
  /// How long one wait lasts where no stop can end it.
  static constexpr Duration kPace = std::chrono::milliseconds(20);
  /// Larger ones are not accepted. A list of 20'000 waiters takes 1 MiB.
  static constexpr std::size_t kLargest = std::size_t{4} << 20U;

  explicit Packets(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  /// False: the connection is broken, or its server does not read. Does not wait, as its session
  /// holds a mutex meanwhile.
  bool send(std::string_view framed) {
    return transport_->send(framed, Duration::zero()) == Transport::Status::ok;
  }
  /// Waits for bytes, for at most `longest`; looks only, if that is zero.
  Transport::Status receive(Duration longest, const std::stop_token& stop = {});
  /// The next whole packet that was received, without its length. Valid until the next receive().
  /// The error says that the other side does not send packets.
  tl::expected<std::optional<std::string_view>, std::string> next();

  /// After a receive() that found it closed.
  std::string why_closed() { return transport_->why_closed(); }
  int descriptor() const { return transport_->descriptor(); }

 private:
  std::unique_ptr<Transport> transport_;
  std::string received_;
  std::size_t read_ = 0;  ///< so much of it was handed out
};

}  // namespace lockbench::zookeeper
