#pragma once

#include <functional>

namespace lockbench {

/// For client libraries that have OpenSSL make their TLS sessions: what they do not tell. Call it
/// before the first session.
void watch_library_tls();

/// OpenSSL's verdict on the certificate of the session that this thread freed last. A library says
/// only that it was refused, and frees the session, which knows why, before its call returns.
extern thread_local long last_tls_verdict;

/// Called for each session that this thread makes; null: nothing.
extern thread_local const std::function<void()>* on_tls_session;

}  // namespace lockbench
