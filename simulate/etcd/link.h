#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "strategies/etcd/client/link.h"
#include "strategies/transport/socket.h"

namespace lockbench::simulate {

/// One message of a call, as it is carried between a client and a simulated etcd: many calls share
/// a connection.
struct Frame {
  std::uint32_t call = 0;  ///< its number
  std::uint32_t code = 0;  ///< of the answer's status
  std::string text{};      ///< the method, empty if the call is over; or the status's message
  std::string body{};      ///< the request or the response

  std::string bytes() const;
  /// The first of `input`, which is removed from it; nothing if it is not complete.
  static std::optional<Frame> take(std::string& input);
};

/// Links to simulated etcd servers.
class SimulatedLinks final : public etcd::Links {
 public:
  explicit SimulatedLinks(std::shared_ptr<Dialer> dialer) : dialer_(std::move(dialer)) {}

  tl::expected<std::unique_ptr<etcd::Link>, std::string> open(const Order& order) override;

 private:
  const std::shared_ptr<Dialer> dialer_;
};

}  // namespace lockbench::simulate
