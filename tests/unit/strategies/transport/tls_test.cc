#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <pthread.h>

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "strategies/transport/tls_transport.h"
#include "testbed/servers/authority.h"
#include "tests/support/listener.h"
#include "tests/support/temporary_folder.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;
using testbed::Authority;
using testing::HasSubstr;

/// A TLS server on a free port of 127.0.0.1, with its own thread; serves one connection after the
/// other. Throws std::runtime_error if it cannot be set up.
class TlsServer {
 public:
  struct Options {
    testbed::TlsFiles files{};
    bool demands_certificate = false;
    int max_version = TLS1_3_VERSION;
    /// Serves one connection, which is closed afterwards. The default is an echo.
    std::function<void(SSL* peer)> serve = echo;
  };

  explicit TlsServer(Options options)
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
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
      ::shutdown(listener_.fd(), SHUT_RDWR);
      if (peer_ >= 0) ::shutdown(peer_, SHUT_RDWR);
    }
    thread_.join();
  }

  SocketAddress address() const { return {.host = "127.0.0.1", .port = listener_.port()}; }

  static void echo(SSL* peer) {
    std::array<char, 4096> buffer;
    while (true) {
      const int got = SSL_read(peer, buffer.data(), static_cast<int>(buffer.size()));
      if (got <= 0 || SSL_write(peer, buffer.data(), got) != got) return;
    }
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  void run() {
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

  const Options options_;
  const Listener listener_;
  const std::unique_ptr<SSL_CTX, Free> context_;
  std::mutex mutex_;
  int peer_ = -1;  ///< the connection
  bool over_ = false;
  std::thread thread_;
};

/// An authority and a certificate, made once.
class Tls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    authority = Authority::make(folder.emplace() / "own").value();
    files = authority->issue("server").value();
  }
  static void TearDownTestSuite() {
    authority.reset();
    folder.reset();
  }

  static TlsSettings trusting() { return {.ca_file = authority->ca()}; }
  static TlsSettings with_certificate() {
    TlsSettings settings = trusting();
    settings.certificate_file = files.certificate;
    settings.key_file = files.key;
    return settings;
  }

  static std::unique_ptr<Transport> connected(const TlsServer& server,
                                              const TlsSettings& settings = trusting()) {
    auto transport = connect_socket(server.address(), kPatience, {}, &settings);
    EXPECT_TRUE(transport) << transport.error();
    return transport ? *std::move(transport) : nullptr;
  }

  /// Receives until this many bytes have come, or nothing comes.
  static std::string receive(Transport& transport, std::size_t bytes) {
    std::array<char, 100> buffer;
    std::string text;
    while (text.size() < bytes) {
      const auto got = transport.receive(buffer, kPatience, {});
      if (got.status != Transport::Status::ok) break;
      text.append(buffer.data(), got.bytes);
    }
    return text;
  }

  static inline std::optional<TemporaryFolder> folder;
  static inline std::unique_ptr<Authority> authority;
  static inline testbed::TlsFiles files;
};

TEST_F(Tls, OneThreadMaySendWhileAnotherReceives) {
  const TlsServer server({.files = files});
  const auto transport = connected(server);
  ASSERT_TRUE(transport);
  // Short ones, and one longer than a record.
  std::vector<std::string> all(500, "ping");
  all.emplace_back(100'000, 'x');
  std::string sent;
  for (const std::string& one : all) sent += one;
  std::thread sending([&] {
    for (const std::string& one : all) {
      if (transport->send(one, kPatience) != Transport::Status::ok) return;
    }
  });
  EXPECT_EQ(receive(*transport, sent.size()), sent);
  sending.join();
}

/// tests/integration/run/tls_test.cc has certificates with flaws.
TEST_F(Tls, VerifiesNameAuthorityAndVersion) {
  const TlsSettings only_1_3{.ca_file = authority->ca(), .only_1_3 = true};
  const struct {
    TlsSettings settings;
    int max_version;
    const char* said;
  } cases[] = {
      {{}, TLS1_3_VERSION, "from an untrusted authority"},
      {{.ca_file = authority->ca(), .server_name = "db.example"},
       TLS1_3_VERSION,
       "not for db.example"},
      {{.ca_file = authority->ca(), .server_name = "localhost"}, TLS1_3_VERSION, "connected"},
      {only_1_3, TLS1_3_VERSION, "connected"},
      {only_1_3, TLS1_2_VERSION, "allowed here (1.3)"},
      {trusting(), TLS1_2_VERSION, "connected"},
  };
  for (const auto& [settings, max_version, said] : cases) {
    const TlsServer server({.files = files, .max_version = max_version});
    const auto transport = connect_socket(server.address(), kPatience, {}, &settings);
    EXPECT_THAT(transport ? "connected" : transport.error(), HasSubstr(said));
  }
}

/// With TLS 1.2; tests/integration/run/tls_test.cc does it with 1.3, where a client learns it
/// later.
TEST_F(Tls, SaysThatTheServerWantsACertificate) {
  const TlsServer server(
      {.files = files, .demands_certificate = true, .max_version = TLS1_2_VERSION});
  const TlsSettings settings = trusting();
  const auto refused = connect_socket(server.address(), kPatience, {}, &settings);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error(), HasSubstr("client certificate: cert=FILE&key=FILE"));
}

TEST_F(Tls, APlainClientIsAskedWhetherItIsATlsPort) {
  const TlsServer server({.files = files});
  const auto plain = connect_socket(server.address(), kPatience, {});
  ASSERT_TRUE(plain) << plain.error();
  (*plain)->send("PING\r\nPING\r\n", kPatience);
  EXPECT_EQ(receive(**plain, 1), "");
  EXPECT_THAT(describe(Transport::Status::closed, kPatience, plain->get()),
              HasSubstr("is it a TLS port?"));
}

/// With TLS 1.3 the server sends its tickets after the handshake: they are no answer.
TEST_F(Tls, IsQuietUntilTheServerSaysGoodbye) {
  const TlsServer server({.files = files, .serve = [](SSL* peer) {
                            std::array<char, 16> buffer;
                            SSL_read(peer, buffer.data(), static_cast<int>(buffer.size()));
                            SSL_shutdown(peer);
                            SSL_read(peer, buffer.data(), static_cast<int>(buffer.size()));
                          }});
  const auto transport = connected(server);
  ASSERT_TRUE(transport);
  EXPECT_TRUE(transport->is_quiet());
  ASSERT_EQ(transport->send("go", kPatience), Transport::Status::ok);
  EXPECT_TRUE(eventually([&] { return !transport->is_quiet(); }));
}

/// Sends all bytes of two records except the last one, which follows once the client has sent
/// something.
void send_in_pieces(SSL* peer) {
  BIO* const sealed = BIO_new(BIO_s_mem());
  SSL_set0_wbio(peer, sealed);
  SSL_write(peer, "one", 3);
  SSL_write(peer, "two", 3);
  std::string bytes(static_cast<std::size_t>(BIO_pending(sealed)), '\0');
  BIO_read(sealed, bytes.data(), static_cast<int>(bytes.size()));
  ::send(SSL_get_rfd(peer), bytes.data(), bytes.size() - 1, MSG_NOSIGNAL);
  std::array<char, 16> buffer;
  if (SSL_read(peer, buffer.data(), static_cast<int>(buffer.size())) <= 0) return;
  ::send(SSL_get_rfd(peer), &bytes.back(), 1, MSG_NOSIGNAL);
  SSL_read(peer, buffer.data(), static_cast<int>(buffer.size()));
}

/// A poll would wait in vain for bytes that are already decrypted, or spin over half a record.
TEST_F(Tls, WhatIsDecryptedCountsAsInputAndHalfARecordDoesNot) {
  const TlsServer server({.files = files, .serve = send_in_pieces});
  const auto transport = connected(server);
  ASSERT_TRUE(transport);
  std::array<char, 2> small;
  std::array<char, 100> buffer;
  ASSERT_EQ(transport->receive(small, kPatience, {}).bytes, 2U);
  EXPECT_EQ(transport->descriptor(), -1);
  ASSERT_EQ(transport->receive(buffer, Duration::zero(), {}).bytes, 1U);
  while (transport->descriptor() == -1) {
    EXPECT_EQ(transport->receive(buffer, Duration::zero(), {}).status, Transport::Status::ok);
  }
  EXPECT_EQ(transport->receive(buffer, 20ms, {}).status, Transport::Status::timed_out);
  EXPECT_GE(transport->descriptor(), 0);
  ASSERT_EQ(transport->send("go on", kPatience), Transport::Status::ok);
  EXPECT_EQ(receive(*transport, 3), "two");
}

TEST_F(Tls, AStopEndsAWait) {
  const TlsServer server({.files = files});
  const auto transport = connected(server);
  ASSERT_TRUE(transport);
  std::stop_source stop;
  std::jthread stopping([&] { stop.request_stop(); });
  std::array<char, 16> buffer;
  EXPECT_EQ(transport->receive(buffer, kPatience, stop.get_token()).status,
            Transport::Status::stopped);
}

TEST_F(Tls, NamesTheFileThatCannotBeUsed) {
  TlsSettings settings = trusting();
  settings.ca_file = files.key;
  EXPECT_THAT(TlsContext::share(settings).error(),
              testing::AllOf(HasSubstr("cacert: "), HasSubstr(files.key.string())));
  settings = with_certificate();
  settings.certificate_file = files.key;
  EXPECT_THAT(TlsContext::share(settings).error(), HasSubstr("cert: "));
  settings = with_certificate();
  settings.key_file = authority->issue("another").value().key;
  EXPECT_THAT(TlsContext::share(settings).error(), HasSubstr("key: "));
}

}  // namespace
}  // namespace lockbench::test
