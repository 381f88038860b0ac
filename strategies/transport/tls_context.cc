#include "strategies/transport/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <mutex>
#include <utility>
#include <vector>

namespace lockbench {
namespace {

using Done = tl::expected<void, std::string>;

Done unusable(std::string_view setting, const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return tl::unexpected(fmt::format("{}: {} cannot be used: {}", setting, file,
                                    reason == nullptr ? "it cannot be read" : reason));
}

/// Without this, OpenSSL would ask at the terminal for the passphrase of a key.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*data*/) { return -1; }

struct Shared {
  std::mutex mutex;
  std::vector<std::weak_ptr<const TlsContext>> contexts;
};

/// Never destroyed: threads that end late may still connect.
Shared& shared() {
  static Shared& one = *new Shared;
  return one;
}

}  // namespace

TlsContext::TlsContext(TlsSettings settings)
    : settings_(std::move(settings)), context_(SSL_CTX_new(TLS_client_method())) {}

tl::expected<std::shared_ptr<const TlsContext>, std::string> TlsContext::share(
    const TlsSettings& settings) {
  const std::scoped_lock lock(shared().mutex);
  auto& contexts = shared().contexts;
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
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  const std::string& ca = settings_.ca_file;
  const int trusted = ca.empty() ? SSL_CTX_set_default_verify_paths(context)
                                 : SSL_CTX_load_verify_file(context, ca.c_str());
  if (trusted != 1) return unusable("cacert", ca.empty() ? "the system's" : ca);
  if (settings_.certificate_file.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, settings_.certificate_file.c_str()) != 1) {
    return unusable("cert", settings_.certificate_file);
  }
  // Also checks that it belongs to the certificate.
  if (SSL_CTX_use_PrivateKey_file(context, settings_.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return unusable("key", settings_.key_file);
  }
  return {};
}

}  // namespace lockbench
