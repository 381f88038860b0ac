#include "strategies/zookeeper/client/packets.h"

#include <fmt/format.h>

#include <array>

#include "strategies/carrier.h"
#include "strategies/zookeeper/client/jute.h"

namespace lockbench::zookeeper {

bool Packets::send(std::string_view framed) {
  const Duration longest = Carrier::current().shared() ? Duration::zero() : kPatience;
  return transport_->send(framed, longest) == Transport::Status::ok;
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
