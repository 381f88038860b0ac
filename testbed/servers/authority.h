#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "testbed/servers/machine.h"

namespace lockbench::testbed {

class Testbed;

/// PEM files of one side of TLS connections: its trusted authority, its certificate and its key.
struct TlsFiles {
  std::filesystem::path ca, certificate, key;
  bool asks_clients = false;  ///< a server that requires client certificates

  /// The end of a client's URL that trusts the authority: "?cacert=FILE", percent-encoded.
  std::string query(std::string_view before = "?cacert=") const;
};

/// A certificate authority of the run. Its key is only in memory. Thread-safe once made.
class Authority {
 public:
  /// Flaws of a certificate. For a certificate from an untrusted authority, make a second
  /// Authority.
  enum class Flaw { none, expired, wrong_name, self_signed };

  /// Writes its own certificate to "ca.pem" in a new folder. The folder and all issued files belong
  /// to the account, and only it may read them.
  static tl::expected<std::unique_ptr<Authority>, std::string> make(std::filesystem::path folder,
                                                                    Account account = {});

  /// A server's certificate for 127.0.0.1, ::1, localhost and a Mesh's names; good for clients too,
  /// as members of a cluster are both. `name` is for the files, and must be new.
  tl::expected<TlsFiles, std::string> issue(std::string_view name, Flaw flaw = Flaw::none) const;

  std::filesystem::path ca() const { return folder_ / "ca.pem"; }

 private:
  Authority(std::filesystem::path folder, Account account)
      : folder_(std::move(folder)), account_(std::move(account)) {}

  const std::filesystem::path folder_;
  const Account account_;
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
};

/// Certificates for `count` members of a cluster, which let only each other in: of their own
/// authority, in a new folder named after `what`.
tl::expected<std::vector<TlsFiles>, std::string> certify_members(Testbed& testbed,
                                                                 std::string_view what,
                                                                 std::size_t count);

}  // namespace lockbench::testbed
