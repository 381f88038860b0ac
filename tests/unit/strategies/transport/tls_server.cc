#include "tests/unit/strategies/transport/tls_server.h"

#include <pthread.h>

#include <array>
#include <csignal>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace lockbench::test {

TlsServer::TlsServer(Options options)
    : options_(std::move(options)), context_(SSL_CTX_new(TLS_server_method())) {
  SSL_CTX* const context = context_.get();
  const bool ready =
      SSL_CTX_use_certificate_chain_file(context, options_.files.certificate.c_str()) == 1 &&
      SSL_CTX_use_PrivateKey_file(context, options_.files.key.c_str(), SSL_FILETYPE_PEM) == 1 &&
      SSL_CTX_load_verify_file(context, options_.files.ca.c_str()) == 1 &&
      SSL_CTX_set_max_proto_version(context, options_.max_version) == 1;
  if (!ready) throw std::runtime_error("no TLS server");
  if (options_.demands_certificate) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  thread_ = std::thread([this] { run(); });
}

TlsServer::~TlsServer() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
    ::shutdown(listener_.fd(), SHUT_RDWR);
    if (peer_ >= 0) ::shutdown(peer_, SHUT_RDWR);
  }
  thread_.join();
}

void TlsServer::run() {
  // OpenSSL writes to sockets without MSG_NOSIGNAL.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  while (true) {
    const int fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    {
      const std::scoped_lock lock(mutex_);
      if (fd < 0 || over_) {
        if (fd >= 0) ::close(fd);
        return;
      }
      peer_ = fd;
    }
    {
      const std::unique_ptr<SSL, Free> ssl(SSL_new(context_.get()));
      SSL_set_fd(ssl.get(), fd);
      if (SSL_accept(ssl.get()) == 1) options_.serve(ssl.get());
    }
    const std::scoped_lock lock(mutex_);
    peer_ = -1;
    ::close(fd);
  }
}

void TlsServer::echo(SSL* peer) {
  std::array<char, 4096> buffer;
  while (true) {
    const int got = SSL_read(peer, buffer.data(), static_cast<int>(buffer.size()));
    if (got <= 0 || SSL_write(peer, buffer.data(), got) != got) return;
  }
}

}  // namespace lockbench::test
