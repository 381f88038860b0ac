#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/transport/socket.h"
#include "strategies/url.h"

namespace lockbench {

/// OpenSSL's verdict on a certificate, which must be for `name`, in words. `setting` is the setting
/// that names the authorities.
std::string untrusted(long verdict, const std::string& name, std::string_view setting = "cacert");

/// Shared by connections with the same settings: authorities, client certificate, versions.
/// Immutable, so thread-safe.
class TlsContext {
 public:
  /// Shared, as loading a system's authorities takes a megabyte and some milliseconds. The error
  /// names the file that cannot be used. Thread-safe.
  static tl::expected<std::shared_ptr<const TlsContext>, std::string> share(
      const TlsSettings& settings);

  const TlsSettings& settings() const { return settings_; }
  SSL_CTX* get() const { return context_.get(); }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  explicit TlsContext(TlsSettings settings)
      : settings_(std::move(settings)), context_(SSL_CTX_new(TLS_client_method())) {}
  tl::expected<void, std::string> load();

  const TlsSettings settings_;
  std::unique_ptr<SSL_CTX, Free> context_;
};

/// TLS over another transport, which does all waiting: OpenSSL works on buffers here and never
/// touches a socket. The server's name is always verified. The end of a connection is not announced
/// to the server, as that could block; replies have lengths, so a cut one is noticed.
class TlsTransport : public Transport {
 public:
  /// The certificate must be for `host`, unless the settings give another name.
  static tl::expected<std::unique_ptr<TlsTransport>, std::string> make(
      std::unique_ptr<Transport> below, std::shared_ptr<const TlsContext> context,
      const std::string& host);

  /// False after `longest` or a stop. Send and receive nothing before it returns true.
  tl::expected<bool, std::string> shake_hands(Duration longest, const std::stop_token& stop);

  Status send(std::string_view bytes, Duration timeout) override;
  Received receive(std::span<char> buffer, Duration timeout, const std::stop_token& stop) override;
  int descriptor() const override { return holds_bytes_ ? -1 : below_->descriptor(); }
  std::string why_closed() override;

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  TlsTransport(std::unique_ptr<Transport> below, std::shared_ptr<const TlsContext> context,
               std::string name)
      : below_(std::move(below)),
        context_(std::move(context)),
        name_(std::move(name)),
        ssl_(SSL_new(context_->get())) {}

  tl::expected<void, std::string> prepare();
  /// The received bytes, decrypted; nothing without a whole record.
  std::optional<Received> open(std::span<char> buffer);
  /// True if a complete TLS record is buffered; a partial one is handed to OpenSSL.
  bool has_more();
  void feed(std::span<const char> sealed) {
    const std::scoped_lock lock(mutex_);
    BIO_write(in_, sealed.data(), static_cast<int>(sealed.size()));
  }
  /// Sends the bytes that OpenSSL has written.
  Status flush(Duration timeout);

  const std::unique_ptr<Transport> below_;
  const std::shared_ptr<const TlsContext> context_;
  const std::string name_;
  /// One caller may send while another receives. Never held while waiting.
  std::mutex mutex_;
  std::unique_ptr<SSL, Free> ssl_;
  BIO* in_ = nullptr;   ///< from the server, sealed; owned by `ssl_`
  BIO* out_ = nullptr;  ///< to the server
  std::string why_closed_;
  bool holds_bytes_ = false;  ///< not shown by a poll; used by the receiver
};

}  // namespace lockbench
