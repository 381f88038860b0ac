#include "strategies/transport/tls_transport.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <utility>

#include "strategies/carrier.h"
#include "strategies/transport/tls_failure.h"

namespace lockbench {
namespace {

using Sealed = std::array<char, 4096>;

}  // namespace

TlsTransport::TlsTransport(std::unique_ptr<Transport> below,
                           std::shared_ptr<const TlsContext> context, std::string name)
    : below_(std::move(below)),
      context_(std::move(context)),
      name_(std::move(name)),
      ssl_(SSL_new(context_->get())) {}

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
  // Each round takes bytes from the server, or ends.
  for (Duration left = longest;;
       left = std::max(end - Carrier::current().now(), Duration::zero())) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const bool failed = done != 1 && SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ;
    std::string why = failed ? tls_failure(ssl_.get(), context_->settings(), name_) : std::string();
    // After a failure too: the server is told. Where sending fails, receiving says why.
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

void TlsTransport::feed(std::span<const char> sealed) {
  const std::scoped_lock lock(mutex_);
  BIO_write(in_, sealed.data(), static_cast<int>(sealed.size()));
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
  // An alert may have come after the last look: sending fails before it is read.
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
