#include "strategies/transport/tls_failure.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

namespace lockbench {

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
          "its certificate is of an authority that is not trusted: name that with {}=FILE",
          setting);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format(
          "its certificate is not for {}: set server-name=NAME to one that it is for", name);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is not valid yet";
    default:
      return fmt::format("its certificate is not accepted: {}",
                         X509_verify_cert_error_string(verdict));
  }
}

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
      // The latter is what Go and Java send where there is none.
      return settings.certificate_file.empty()
                 ? "the server requires a client certificate: cert=FILE&key=FILE"
                 : "the server does not accept the client certificate";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      // What TLS 1.2 has instead.
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

}  // namespace lockbench
