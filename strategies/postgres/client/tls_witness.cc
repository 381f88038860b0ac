#include "strategies/postgres/client/tls_witness.h"

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <optional>

#include "strategies/transport/tls_transport.h"

namespace lockbench::postgres {
namespace {

/// Of the last session that was freed during a call.
thread_local std::optional<long> last_verdict;

/// OpenSSL calls it for every session that is freed.
void witness(void* session, void*, CRYPTO_EX_DATA*, int, long, void*) {
  last_verdict = SSL_get_verify_result(static_cast<SSL*>(session));
}

}  // namespace

TlsWitness::TlsWitness() {
  static const int watching = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, witness);
  static_cast<void>(watching);
}

void TlsWitness::forget() { last_verdict.reset(); }

void TlsWitness::note() { verdict_ = last_verdict.value_or(verdict_); }

std::string TlsWitness::refusal() const {
  // libpq checks the name itself, and says so.
  return verdict_ == X509_V_OK ? "" : untrusted(verdict_, "this server", "sslrootcert");
}

}  // namespace lockbench::postgres
