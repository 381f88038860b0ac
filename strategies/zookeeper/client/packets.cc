#include "strategies/zookeeper/client/packets.h"

#include <fmt/format.h>

#include <array>

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

Transport::Status Packets::receive(Duration longest, const std::stop_token& stop) {
  received_.erase(0, std::exchange(read_, 0));
  // On the stack of each fiber that waits; nearly all answers are short.
  std::array<char, 4096> bytes;  // NOLINT(*-member-init): written before it is read
  const auto got = transport_->receive(bytes, longest, stop);
  if (got.status == Transport::Status::ok) received_.append(bytes.data(), got.bytes);
  return got.status;
}

tl::expected<std::optional<std::string_view>, std::string> Packets::next() {
  constexpr std::size_t kLength = sizeof(std::int32_t);
  const std::string_view rest = std::string_view(received_).substr(read_);
  if (rest.size() < kLength) return std::nullopt;
  const std::int32_t length = Reader(rest).int32();
  if (length < 0 || static_cast<std::size_t>(length) > kLargest) {
    return tl::unexpected(fmt::format("it sent a packet of {} bytes", length));
  }
  const auto size = static_cast<std::size_t>(length);
  if (rest.size() - kLength < size) return std::nullopt;
  read_ += kLength + size;
  return rest.substr(kLength, size);
}

}  // namespace lockbench::zookeeper
