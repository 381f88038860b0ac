#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/transport/socket.h"

namespace lockbench::fuzz {

/// A server that sends these bytes regardless of requests, and hangs up. They come in pieces; the
/// first bytes are the lengths.
class ScriptedTransport : public Transport {
 public:
  explicit ScriptedTransport(std::string_view bytes) : bytes_(bytes), rest_(bytes_) {}

  Status send(std::string_view /*bytes*/, Duration /*timeout*/) override { return Status::ok; }
  Received receive(std::span<char> buffer, Duration /*timeout*/,
                   const std::stop_token& /*stop*/) override {
    if (rest_.empty()) return {Status::closed, 0};
    const std::size_t piece = 1 + static_cast<unsigned char>(rest_.front()) % 64;
    const std::size_t size = std::min({buffer.size(), rest_.size(), piece});
    std::memcpy(buffer.data(), rest_.data(), size);
    rest_.remove_prefix(size);
    return {Status::ok, size};
  }
  int descriptor() const override { return -1; }

 private:
  const std::string bytes_;
  std::string_view rest_;
};

}  // namespace lockbench::fuzz
