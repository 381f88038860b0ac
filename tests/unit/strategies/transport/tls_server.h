#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "strategies/transport/socket.h"
#include "testbed/servers/authority.h"
#include "tests/support/listener.h"

namespace lockbench::test {

/// A TLS server on a free port of 127.0.0.1, on a thread of its own: one connection after the
/// other. What cannot be set up throws std::runtime_error.
class TlsServer {
 public:
  struct Options {
    testbed::TlsFiles files{};
    bool demands_certificate = false;
    int max_version = TLS1_3_VERSION;
    /// One connection; it is closed afterwards. By default all that comes is sent back.
    std::function<void(SSL* peer)> serve = echo;
  };

  explicit TlsServer(Options options);
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer();

  SocketAddress address() const { return {.host = "127.0.0.1", .port = listener_.port()}; }

  static void echo(SSL* peer);

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  void run();

  const Options options_;
  const Listener listener_;
  const std::unique_ptr<SSL_CTX, Free> context_;
  std::mutex mutex_;
  int peer_ = -1;  ///< the connection
  bool over_ = false;
  std::thread thread_;
};

}  // namespace lockbench::test
