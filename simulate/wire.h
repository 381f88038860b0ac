#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/network.h"
#include "strategies/transport/socket.h"

namespace lockbench::simulate {

/// A server of any kind. These functions are called when a client's message has arrived.
class Server {
 public:
  Server(int its_number, int its_region, std::string its_host)
      : number(its_number), region(its_region), host(std::move(its_host)) {}
  virtual ~Server() = default;

  virtual void accept(const std::shared_ptr<Wire>& wire) = 0;
  virtual void arrive(const std::shared_ptr<Wire>& wire, std::string bytes) = 0;
  virtual void closed(const std::shared_ptr<Wire>& wire) = 0;

  const int number, region;
  const std::string host;  ///< its name
};

/// A TCP connection between a client and a server, with the state of both ends. Messages under way
/// keep it alive.
struct Wire : std::enable_shared_from_this<Wire> {
  enum class State { connecting, open, broken };

  Wire(Host& its_host, Network& its_network, Server& its_server)
      : host(its_host), network(its_network), server(its_server) {}

  Host& host;
  Network& network;
  Server& server;
  int port = 0;                 ///< of the server
  TimePoint last_arrival[2]{};  ///< of the messages to the server, and to the client
  Relay* relay = nullptr;       ///< on its way; null: none
  std::uint64_t number = 0;     ///< there

  // The client's end.
  State state = State::connecting;
  std::string input;
  std::string why;  ///< it is broken
  Event* waiting = nullptr;

  /// By the server's end: messages to the client that leave at `departs`.
  void answer(std::string bytes, TimePoint departs);
  void accepted();
  void refuse(std::string reason);
  /// By the client's end.
  void send(std::string bytes);
  bool has_news() const { return !input.empty() || state == State::broken; }
  /// What was sent still arrives.
  void close();

  /// The server's end: what the server keeps for it.
  struct Session {
    virtual ~Session() = default;
    std::size_t member = 0;  ///< of a cluster, to which the connection is
  };
  std::unique_ptr<Session> session;

 private:
  void broke(std::string reason);
  void wake() {
    if (waiting != nullptr) waiting->set();
    for (Event* const one : host.polling) one->set();
  }
};

/// Opens the connections of one client's process to simulated servers.
class SimulatedDialer : public Dialer {
 public:
  SimulatedDialer(Host& host, Network& network, const std::vector<Server*>& servers)
      : host_(host), network_(network), servers_(servers) {}

  tl::expected<std::unique_ptr<Connecting>, std::string> begin(const SocketAddress& address,
                                                               const Timeouts& timeouts,
                                                               const TlsSettings* tls) override;
  void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) override;
  tl::expected<std::unique_ptr<Poller>, std::string> make_poller() override;

 private:
  friend class SimulatedTransport;
  friend class SimulatedPoller;

  /// Whether one of them has input; marks which.
  bool look(std::span<pollfd> descriptors) const;

  Host& host_;
  Network& network_;
  const std::vector<Server*>& servers_;
  std::map<int, const Wire*> wires_;  ///< by their descriptors
  int last_descriptor_ = 0;
};

}  // namespace lockbench::simulate
