#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <system_error>
#include <variant>
#include <vector>

#include "testbed/proxy/proxy.h"
#include "testbed/proxy/proxy_connection.h"

namespace lockbench::testbed {

struct Refusal {};

/// A fault on some connections.
struct Rule {
  Connections which;
  Direction direction = Direction::both;
  std::variant<std::chrono::nanoseconds, Obstacle, Refusal> fault;

  bool concerns(Direction one_way) const {
    return direction == Direction::both || direction == one_way;
  }
};

/// One proxy. Used on its loop's thread only.
class ProxyCore : public std::enable_shared_from_this<ProxyCore> {
 public:
  /// `scratch`: the read buffer that all proxies of a loop share.
  ProxyCore(asio::io_context& io, std::vector<char>& scratch, const asio::ip::tcp::endpoint& server,
            const ProxyOptions& options)
      : shared_{io, scratch, server, options.buffer_bytes},
        delay_(options.delay),
        address_(asio::ip::make_address_v4(options.address)),
        acceptor_(io),
        pause_(io) {}

  std::error_code listen(std::uint16_t port);
  void apply(const Rule& rule);
  std::error_code vanish(const Connections& which);
  void cut(const Connections& which);
  void heal();
  void lead_to(std::uint16_t server);
  void close();
  ProxyCounts counts() const {
    ProxyCounts counts = shared_.counts;
    counts.open = open_.size();
    return counts;
  }

 private:
  void accept();
  void admit(asio::ip::tcp::socket client);
  void remember(const Rule& rule);
  /// A copy of open_, as closing a connection removes it from there.
  std::vector<std::shared_ptr<ProxyConnection>> chosen(const Connections& which) const;

  ProxyShared shared_;
  const std::chrono::nanoseconds delay_;
  const asio::ip::address_v4 address_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::vector<Rule> rules_;  // for connections to come, the oldest first
  std::map<std::uint64_t, std::shared_ptr<ProxyConnection>> open_;
};

}  // namespace lockbench::testbed
