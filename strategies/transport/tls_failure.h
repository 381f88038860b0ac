#pragma once

#include <openssl/ssl.h>

#include <string>
#include <string_view>

#include "strategies/tls.h"

namespace lockbench {

/// What is wrong with the certificate of a server that must be called `name`, from OpenSSL's
/// verdict. `setting`: which names the authorities.
std::string untrusted(long verdict, const std::string& name, std::string_view setting = "cacert");

/// Why the handshake, or the connection after it, failed: one line that says what to do, without
/// the server's name. To be called right after the call that failed, on its thread. `name`: that
/// the server's certificate must be for.
std::string tls_failure(const SSL* ssl, const TlsSettings& settings, const std::string& name);

}  // namespace lockbench
