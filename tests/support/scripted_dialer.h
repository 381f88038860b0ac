#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "strategies/transport/socket.h"

namespace lockbench::test {

/// A server without sockets, which gives one answer for each message, in this order, on all of its
/// connections. For one thread.
class ScriptedDialer : public Dialer {
 public:
  explicit ScriptedDialer(std::deque<std::string> answers) : answers_(std::move(answers)) {}

  tl::expected<std::unique_ptr<Connecting>, std::string> begin(const SocketAddress&,
                                                               const Timeouts&,
                                                               const TlsSettings*) override {
    return std::make_unique<Dialled>(*this);
  }

  /// Closes the connections. As in TCP, what a client sends then is lost in silence.
  void close() { closed_ = connections_; }
  /// Sends this unasked, on the connection that receives next.
  void send(std::string bytes) { unasked_ = std::move(bytes); }

  int connections() const { return connections_; }
  /// How often a client looked for input without waiting.
  int looks() const { return looks_; }

 private:
  class Line : public Transport {
   public:
    explicit Line(ScriptedDialer& server) : server_(server), number_(++server.connections_) {}

    Status send(std::string_view, Duration) override {
      if (is_closed() || server_.answers_.empty()) return Status::ok;
      input_ += server_.answers_.front();
      server_.answers_.pop_front();
      return Status::ok;
    }
    Received receive(std::span<char> buffer, Duration timeout, const std::stop_token&) override {
      if (timeout <= Duration::zero()) ++server_.looks_;
      input_.insert(0, std::exchange(server_.unasked_, {}));
      if (input_.empty()) return {is_closed() ? Status::closed : Status::timed_out, 0};
      const std::size_t bytes = std::min(buffer.size(), input_.size());
      std::memcpy(buffer.data(), input_.data(), bytes);
      input_.erase(0, bytes);
      return {Status::ok, bytes};
    }
    int descriptor() const override { return -1; }

   private:
    bool is_closed() const { return number_ <= server_.closed_; }

    ScriptedDialer& server_;
    const int number_;
    std::string input_;
  };

  struct Dialled : Connecting {
    explicit Dialled(ScriptedDialer& its_server) : server(its_server) {}
    tl::expected<std::unique_ptr<Transport>, std::string> get(Duration,
                                                              const std::stop_token&) override {
      return std::make_unique<Line>(server);
    }
    ScriptedDialer& server;
  };

  std::deque<std::string> answers_;
  std::string unasked_;
  int connections_ = 0, closed_ = 0, looks_ = 0;
};

}  // namespace lockbench::test
