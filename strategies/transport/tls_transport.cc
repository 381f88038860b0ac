#include "strategies/transport/tls_transport.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "strategies/carrier.h"

namespace lockbench {
namespace {

using Sealed = std::array<char, 4096>;

using Done = tl::expected<void, std::string>;

Done unusable(std::string_view setting, const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return tl::unexpected(fmt::format("{}: {} cannot be used: {}", setting, file,
                                    reason == nullptr ? "it cannot be read" : reason));
}

/// Why the handshake, or the connection after it, failed: one line that says what to do, without
/// the server's name. Call it right after the failed call, on its thread. The server's certificate
/// must be for `name`.
std::string tls_failure(const SSL* ssl, const TlsSettings& settings, const std::string& name) {
  const unsigned long error = ERR_peek_error();
  switch (ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      return untrusted(SSL_get_verify_result(ssl), name);
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
      return "the server does not speak TLS";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return fmt::format("the server accepts no TLS version that is allowed here ({})",
                         settings.only_1_3 ? "1.3" : "1.2 and 1.3");
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      // Go and Java servers send the latter if there is no certificate.
      return settings.certificate_file.empty()
                 ? "the server requires a client certificate: cert=FILE&key=FILE"
                 : "the server does not accept the client certificate";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      // TLS 1.2 has only this alert.
      if (settings.certificate_file.empty()) {
        return "the server refused the TLS handshake: it may require a client certificate: "
               "cert=FILE&key=FILE";
      }
      break;
    default:
      break;
  }
  const char* const reason = ERR_reason_error_string(error);
  return fmt::format("TLS failed: {}", reason == nullptr ? "the connection was closed" : reason);
}

}  // namespace

std::string untrusted(long verdict, const std::string& name, std::string_view setting) {
  switch (verdict) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return fmt::format("its certificate is self-signed and not trusted: name it with {}=FILE",
                         setting);
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format(
          "its certificate is from an untrusted authority: name the authority with {}=FILE",
          setting);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format(
          "its certificate is not for {}: set server-name=NAME to a name that it is for", name);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet";
    default:
      return fmt::format("its certificate is not accepted: {}",
                         X509_verify_cert_error_string(verdict));
  }
}

tl::expected<std::shared_ptr<const TlsContext>, std::string> TlsContext::share(
    const TlsSettings& settings) {
  // Never destroyed: threads that end late may still connect.
  static auto& mutex = *new std::mutex;
  static auto& contexts = *new std::vector<std::weak_ptr<const TlsContext>>;
  const std::scoped_lock lock(mutex);
  std::erase_if(contexts, [](const auto& one) { return one.expired(); });
  for (const auto& one : contexts) {
    auto context = one.lock();
    if (context && context->settings() == settings) return context;
  }
  const std::shared_ptr<TlsContext> made(new TlsContext(settings));
  if (auto loaded = made->load(); !loaded) return tl::unexpected(std::move(loaded.error()));
  contexts.emplace_back(made);
  return made;
}

Done TlsContext::load() {
  ERR_clear_error();
  SSL_CTX* const context = context_.get();
  if (context == nullptr) return tl::unexpected<std::string>("TLS: out of memory");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_min_proto_version(context, settings_.only_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // An idle connection would keep 34 KB of buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  // Without this, OpenSSL would ask at the terminal for the passphrase of a key.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return -1; });
  const std::string& ca = settings_.ca_file;
  const int trusted = ca.empty() ? SSL_CTX_set_default_verify_paths(context)
                                 : SSL_CTX_load_verify_file(context, ca.c_str());
  if (trusted != 1) return unusable("cacert", ca.empty() ? "the system's" : ca);
  if (settings_.certificate_file.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, settings_.certificate_file.c_str()) != 1) {
    return unusable("cert", settings_.certificate_file);
  }
  // Also checks that the key belongs to the certificate.
  if (SSL_CTX_use_PrivateKey_file(context, settings_.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return unusable("key", settings_.key_file);
  }
  return {};
}

tl::expected<std::unique_ptr<TlsTransport>, std::string> TlsTransport::make(
    std::unique_ptr<Transport> below, std::shared_ptr<const TlsContext> context,
    const std::string& host) {
  const std::string& wanted = context->settings().server_name;
  std::unique_ptr<TlsTransport> made(
      new TlsTransport(std::move(below), context, wanted.empty() ? host : wanted));
  if (auto prepared = made->prepare(); !prepared) return tl::unexpected(prepared.error());
  return made;
}

tl::expected<void, std::string> TlsTransport::prepare() {
  in_ = BIO_new(BIO_s_mem());
  out_ = BIO_new(BIO_s_mem());
  if (!ssl_ || in_ == nullptr || out_ == nullptr) {
    BIO_free(in_);
    BIO_free(out_);
    return tl::unexpected<std::string>("TLS: out of memory");
  }
  SSL_set_bio(ssl_.get(), in_, out_);
  SSL_set_connect_state(ssl_.get());
  X509_VERIFY_PARAM* const verified = SSL_get0_param(ssl_.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(verified, name_.c_str()) == 1) return {};
  X509_VERIFY_PARAM_set_hostflags(verified, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_host(verified, name_.c_str(), name_.size()) != 1 ||
      SSL_set_tlsext_host_name(ssl_.get(), name_.c_str()) != 1) {
    return tl::unexpected("TLS: not a server's name: " + name_);
  }
  return {};
}

tl::expected<bool, std::string> TlsTransport::shake_hands(Duration longest,
                                                          const std::stop_token& stop) {
  const TimePoint end = Carrier::current().now() + longest;
  Sealed sealed;
  // Bounded: each round takes bytes from the server, or ends.
  for (Duration left = longest;;
       left = std::max(end - Carrier::current().now(), Duration::zero())) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const bool failed = done != 1 && SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ;
    std::string why = failed ? tls_failure(ssl_.get(), context_->settings(), name_) : std::string();
    // After a failure too, to tell the server. If sending fails, receiving says why.
    (void)flush(left);
    if (failed) return tl::unexpected(std::move(why));
    if (done == 1) return true;
    const Received got = below_->receive(sealed, left, stop);
    if (got.status == Status::timed_out || got.status == Status::stopped) return false;
    if (got.status != Status::ok) {
      return tl::unexpected<std::string>(
          "the connection was closed in the TLS handshake: the server may not speak TLS");
    }
    feed({sealed.data(), got.bytes});
  }
}

Transport::Status TlsTransport::send(std::string_view bytes, Duration timeout) {
  if (bytes.empty()) return Status::ok;
  {
    const std::scoped_lock lock(mutex_);
    ERR_clear_error();
    std::size_t written = 0;
    if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) != 1) {
      why_closed_ = tls_failure(ssl_.get(), context_->settings(), name_);
      return Status::closed;
    }
  }
  return flush(timeout);
}

Transport::Received TlsTransport::receive(std::span<char> buffer, Duration timeout,
                                          const std::stop_token& stop) {
  const TimePoint end = Carrier::current().now() + timeout;
  Sealed sealed;
  for (Duration left = timeout;; left = end - Carrier::current().now()) {
    if (const auto opened = open(buffer)) return *opened;
    if (left < Duration::zero()) return {Status::timed_out, 0};
    const Received got = below_->receive(sealed, left, stop);
    if (got.status != Status::ok) return {got.status, 0};
    feed({sealed.data(), got.bytes});
  }
}

std::optional<Transport::Received> TlsTransport::open(std::span<char> buffer) {
  const std::scoped_lock lock(mutex_);
  ERR_clear_error();
  std::size_t bytes = 0;
  if (SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &bytes) == 1) {
    holds_bytes_ = has_more();
    return Received{Status::ok, bytes};
  }
  const int error = SSL_get_error(ssl_.get(), 0);
  holds_bytes_ = error != SSL_ERROR_WANT_READ;
  if (!holds_bytes_) return std::nullopt;
  if (error != SSL_ERROR_ZERO_RETURN && why_closed_.empty()) {
    why_closed_ = tls_failure(ssl_.get(), context_->settings(), name_);
  }
  return Received{Status::closed, 0};
}

bool TlsTransport::has_more() {
  if (SSL_pending(ssl_.get()) > 0) return true;
  if (BIO_pending(in_) == 0) return false;
  char first = 0;
  std::size_t bytes = 0;
  return SSL_peek_ex(ssl_.get(), &first, 1, &bytes) == 1 ||
         SSL_get_error(ssl_.get(), 0) != SSL_ERROR_WANT_READ;
}

Transport::Status TlsTransport::flush(Duration timeout) {
  std::string sealed;
  {
    const std::scoped_lock lock(mutex_);
    sealed.resize(static_cast<std::size_t>(BIO_pending(out_)));
    if (sealed.empty()) return Status::ok;
    BIO_read(out_, sealed.data(), static_cast<int>(sealed.size()));
  }
  return below_->send(sealed, timeout);
}

std::string TlsTransport::why_closed() {
  // An alert may have arrived after the last look: sending can fail before it is read.
  std::array<char, 256> rest;
  bool known = false;
  {
    const std::scoped_lock lock(mutex_);
    known = !why_closed_.empty();
  }
  if (!known) (void)receive(rest, Duration::zero(), {});
  const std::scoped_lock lock(mutex_);
  return why_closed_.empty() ? Transport::why_closed() : why_closed_;
}

}  // namespace lockbench
