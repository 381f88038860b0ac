#include "strategies/transport/library_tls.h"

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace lockbench {

thread_local long last_tls_verdict = X509_V_OK;
thread_local const std::function<void()>* on_tls_session = nullptr;

namespace {

void note_made(void*, void*, CRYPTO_EX_DATA*, int, long, void*) {
  if (on_tls_session != nullptr) (*on_tls_session)();
}

void note_freed(void* session, void*, CRYPTO_EX_DATA*, int, long, void*) {
  last_tls_verdict = SSL_get_verify_result(static_cast<SSL*>(session));
}

}  // namespace

void watch_library_tls() {
  [[maybe_unused]] static const int watching =
      SSL_get_ex_new_index(0, nullptr, note_made, nullptr, note_freed);
}

}  // namespace lockbench
