#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "strategies/tls.h"

namespace lockbench {

/// What connections with the same settings share: authorities, client certificate, versions.
/// Immutable, so thread-safe.
class TlsContext {
 public:
  /// One for all connections with these settings: the authorities of a system take a megabyte and
  /// some milliseconds. The error names the file that cannot be used. Thread-safe.
  static tl::expected<std::shared_ptr<const TlsContext>, std::string> share(
      const TlsSettings& settings);

  const TlsSettings& settings() const { return settings_; }
  SSL_CTX* get() const { return context_.get(); }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  explicit TlsContext(TlsSettings settings);
  tl::expected<void, std::string> load();

  const TlsSettings settings_;
  std::unique_ptr<SSL_CTX, Free> context_;
};

}  // namespace lockbench
