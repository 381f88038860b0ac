#pragma once

#include <string>

namespace lockbench::postgres {

/// Remembers why the certificate of one connection was refused: libpq says only that it was, and
/// frees the TLS session that knows why within the call that learned it.
class TlsWitness {
 public:
  /// Before the connection is begun.
  TlsWitness();

  /// Makes one call of libpq's, which must not park: others may free sessions on this thread then.
  template <class Call>
  auto observe(Call call) {
    forget();
    auto result = call();
    note();
    return result;
  }

  /// What was wrong with the certificate of the session that an observed call freed last; empty if
  /// nothing was.
  std::string refusal() const;

 private:
  static void forget();
  void note();

  long verdict_ = 0;  ///< OpenSSL's
};

}  // namespace lockbench::postgres
