#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>

namespace lockbench::testbed {

class ProxyCore;
class ProxyLoop;

/// The connections of a proxy that a fault affects; by default all.
struct Connections {
  bool open = true;          ///< those open now
  bool new_ones = true;      ///< future ones
  std::uint64_t number = 0;  ///< only the nth that the proxy accepted, or will accept; 0: any
  /// A share of them, from 0 to 1, spread evenly over their numbers: about n * share of any n in a
  /// row.
  double share = 1;

  bool has(std::uint64_t connection) const;
  bool operator==(const Connections&) const = default;
};

struct ProxyOptions {
  /// Permanent delay each way; heal() returns to it.
  std::chrono::nanoseconds delay{0};
  std::string address = "127.0.0.1";  ///< where it listens: a loopback address
  std::uint16_t port = 0;             ///< 0: a free one
};

/// The thread that serves any number of proxies and connections. Proxies may outlive the pool: the
/// thread ends with the last of them.
struct ProxyPool {
  static tl::expected<std::unique_ptr<ProxyPool>, std::string> start();

  std::shared_ptr<ProxyLoop> loop;
};

/// Counted since the proxy was started.
struct ProxyCounts {
  std::uint64_t accepted = 0;   ///< connections
  std::uint64_t open = 0;       ///< now
  std::uint64_t to_server = 0;  ///< bytes delivered
  std::uint64_t to_client = 0;
  std::uint64_t from_server = 0;  ///< bytes that the server has sent, delivered or not
  std::uint64_t swallowed = 0;    ///< bytes lost in black holes
};

/// A way from clients to one server, on which faults strike. Without a fault it forwards every
/// byte. A fault is in force when the call that makes it returns; a later fault of the same kind
/// replaces an earlier one.
class Line {
 public:
  virtual ~Line() = default;

  /// Where clients connect.
  virtual std::uint16_t port() const = 0;

  /// Delays bytes, and the end of the stream, by at least this, in order. Bytes in transit keep
  /// their earlier delay. Connections are accepted without delay.
  virtual void delay(std::chrono::nanoseconds each_way, const Connections& which = {}) = 0;

  /// As if the other end had vanished: all bytes sent or in transit are lost, and neither side
  /// learns that a connection was closed. New connections are accepted, as the kernel would, and
  /// never answered. heal() resets the connections that have lost anything.
  virtual void black_hole(const Connections& which = {}) = 0;

  /// As if the clients' host had vanished: a black hole in which the server's kernel does not even
  /// get TCP acknowledgements or answers to keepalive probes, which a silent proxy would still
  /// send. The error says why the kernel refused that.
  virtual tl::expected<void, std::string> vanish() = 0;

  /// As if the network were partitioned and TCP retransmitted: nothing arrives and nothing is lost
  /// until heal() delivers everything, however late. New connections are treated as in a black
  /// hole.
  virtual void hold(const Connections& which = {}) = 0;

  /// Resets both ends of all open connections.
  virtual void cut() = 0;

  /// Ends all faults, and returns to the permanent delay.
  virtual void heal() = 0;

  /// Leads new connections to the server on this port, and resets open ones.
  virtual void lead_to(std::uint16_t server) = 0;

  virtual ProxyCounts counts() const = 0;
};

/// A TCP proxy on its own loopback port. Thread-safe.
class Proxy final : public Line {
 public:
  /// See start_proxy().
  Proxy(std::shared_ptr<ProxyLoop> loop, std::shared_ptr<ProxyCore> core, std::uint16_t port)
      : loop_(std::move(loop)), core_(std::move(core)), port_(port) {}
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  /// Resets open connections.
  ~Proxy() override;

  std::uint16_t port() const override { return port_; }
  void delay(std::chrono::nanoseconds each_way, const Connections& which = {}) override;
  void black_hole(const Connections& which = {}) override;
  tl::expected<void, std::string> vanish() override;
  void hold(const Connections& which = {}) override;
  void cut() override;
  void heal() override;
  void lead_to(std::uint16_t server) override;
  ProxyCounts counts() const override;

 private:
  const std::shared_ptr<ProxyLoop> loop_;
  const std::shared_ptr<ProxyCore> core_;  // used on the loop's thread only
  const std::uint16_t port_;
};

/// A proxy in front of the server on this loopback port. Does not connect to it: if there is no
/// server, clients are reset when they connect.
tl::expected<std::unique_ptr<Proxy>, std::string> start_proxy(ProxyPool& pool, std::uint16_t server,
                                                              const ProxyOptions& options = {});

}  // namespace lockbench::testbed
