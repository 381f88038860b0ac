#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "testbed/servers/ports.h"

namespace lockbench::testbed {

class ProxyCore;
class ProxyLoop;

enum class Direction { to_server, to_client, both };

/// Which of a proxy's connections a fault concerns.
class Connections {
 public:
  /// Those open now and those to come.
  static Connections all() { return {}; }
  static Connections open_now();
  static Connections from_now_on();
  /// The nth that the proxy accepted, or will accept; counted from 1.
  static Connections number(std::uint64_t n);
  /// A part of them, from 0 to 1, chosen by their numbers and spread evenly: of any n in a row
  /// about n * part.
  Connections share(double part) const;

  bool concerns_open() const { return open_; }
  bool concerns_coming() const { return coming_; }
  bool has(std::uint64_t number) const;
  bool operator==(const Connections&) const = default;

 private:
  bool open_ = true, coming_ = true;
  std::uint64_t number_ = 0;  // 0: any
  double share_ = 1;
};

/// The thread that serves any number of proxies and connections. Proxies may outlive the pool: the
/// thread ends with the last of them.
class ProxyPool {
 public:
  static tl::expected<std::unique_ptr<ProxyPool>, std::string> start();

 private:
  friend class ProxyStarter;
  explicit ProxyPool(std::shared_ptr<ProxyLoop> loop) : loop_(std::move(loop)) {}

  const std::shared_ptr<ProxyLoop> loop_;
};

struct ProxyOptions {
  std::string host = "127.0.0.1";  ///< of the server behind it: an address
  /// The line's own delay each way: what heal() goes back to.
  std::chrono::nanoseconds delay{0};
  /// What is kept of one connection in one direction; when it is full, nothing more is read, so
  /// that the sender waits. Bounds the throughput under a delay: bytes per delay.
  std::size_t buffer_bytes = std::size_t{4} << 20;
  PortChooser choose_port = free_loopback_port;
};

/// What a proxy has done so far.
struct ProxyCounts {
  std::uint64_t accepted = 0;   ///< connections, refused ones included
  std::uint64_t refused = 0;    ///< reset as soon as they were accepted
  std::uint64_t open = 0;       ///< now
  std::uint64_t to_server = 0;  ///< bytes delivered
  std::uint64_t to_client = 0;
  std::uint64_t swallowed = 0;  ///< bytes lost in black holes
};

/// A TCP proxy in front of one server on a loopback port of its own, which lets every byte through
/// until told otherwise. Thread-safe; a fault is in force when the call that makes it returns. Of
/// two faults of one kind the later one counts.
class Proxy {
 public:
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  /// Resets what is open.
  ~Proxy();

  std::uint16_t port() const { return port_; }

  /// Bytes, and the end of the stream, come out no earlier than this after they came in, in order.
  /// What is under way already keeps the delay it set out with. Connecting is not delayed: a
  /// connection is accepted at once.
  void delay(std::chrono::nanoseconds each_way, Direction direction = Direction::both,
             const Connections& which = Connections::all());

  /// The other end has vanished: whatever is sent and whatever is under way is lost, and no end of
  /// a connection is told to the other side. New connections are accepted, as the kernel would,
  /// and never answered; this in both directions, as connecting needs both. heal() resets the
  /// connections that have lost anything.
  void black_hole(Direction direction = Direction::both,
                  const Connections& which = Connections::all());

  /// The clients' host has vanished: a black hole both ways, in which the server's kernel gets no
  /// answer either, neither acknowledgements nor what its keepalive asks for, which it would get
  /// from a proxy that keeps silent. The error says why the kernel would not do that.
  tl::expected<void, std::string> vanish(const Connections& which = Connections::all());

  /// The network is parted, and TCP will try again: nothing arrives, but nothing is lost, and
  /// heal() lets it all go on, however late. New connections fare as in a black hole.
  void hold(Direction direction = Direction::both, const Connections& which = Connections::all());

  /// Connections open now are reset at once, both ends.
  void cut(const Connections& which = Connections::open_now());

  /// New connections are reset as soon as they are accepted; open ones go on.
  void refuse(const Connections& which = Connections::from_now_on());

  /// Ends all faults, and goes back to the line's own delay.
  void heal();

  /// New connections go to the server on this port of the same host. Open ones are reset.
  void lead_to(std::uint16_t server);

  ProxyCounts counts() const;

 private:
  friend class ProxyStarter;
  Proxy(std::shared_ptr<ProxyLoop> loop, std::shared_ptr<ProxyCore> core, std::uint16_t port);

  const std::shared_ptr<ProxyLoop> loop_;
  const std::shared_ptr<ProxyCore> core_;  // used on the loop's thread only
  const std::uint16_t port_;
};

/// A proxy in front of the server on this port. Whether the server is there shows when a client
/// connects: if not, the client is reset.
tl::expected<std::unique_ptr<Proxy>, std::string> start_proxy(ProxyPool& pool, std::uint16_t server,
                                                              const ProxyOptions& options = {});

}  // namespace lockbench::testbed
