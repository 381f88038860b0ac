#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "testbed/process/supervisor.h"
#include "testbed/proxy/proxy.h"
#include "testbed/servers/authority.h"
#include "testbed/servers/machine.h"
#include "testbed/servers/ports.h"

namespace lockbench::testbed {

/// The user of private servers, if they let us choose it.
inline constexpr std::string_view kUser = "lockbench";

/// Private servers of one process, and the proxies in front of them: their folder in $TMPDIR, else
/// /tmp, and a supervisor that ends the servers and removes the folder when this process ends, even
/// if it is killed. Other users of the machine can neither enter the folder nor, without the
/// secret, use the servers. Thread-safe, so that servers can be started side by side. A Server may
/// outlive its Testbed; it is then a stopped server.
class Testbed {
 public:
  /// `tls`: makes a certificate for its servers, of an authority that clients trust.
  static tl::expected<std::unique_ptr<Testbed>, std::string> start(bool tls = false);

  /// Ends all servers and removes the folder, within about 10 s.
  ~Testbed();

  const std::filesystem::path& folder() const { return folder_; }

  /// The account that runs the servers.
  const Account& account() const { return account_; }
  /// The password of all servers: 128 random bits in hexadecimal digits.
  const std::string& secret() const { return secret_; }
  /// User and secret for a URL: "lockbench:...@".
  std::string login(std::string_view user = kUser) const {
    return std::string(user) + ":" + secret_ + "@";
  }

  /// A new folder for one server, "<kind>-<n>", with an empty folder "data" in it. Both belong to
  /// the account, and only it may enter.
  tl::expected<std::filesystem::path, std::string> make_server_folder(std::string_view kind);
  /// A new file that only the account may read.
  tl::expected<void, std::string> write_file(const std::filesystem::path& path,
                                             std::string_view text) const {
    return account_.write_file(path, text);
  }
  /// A copy in `folder` for the account, which may not be able to reach the file itself.
  tl::expected<std::filesystem::path, std::string> lend(const std::filesystem::path& file,
                                                        const std::filesystem::path& folder) const;

  const std::shared_ptr<Supervisor>& supervisor() const { return supervisor_; }
  ProxyPool& proxies() { return *proxies_; }
  /// Null without TLS.
  const TlsFiles* tls() const { return tls_ ? &*tls_ : nullptr; }

  /// For servers started after it was set.
  PortChooser choose_port = free_loopback_port;

 private:
  Testbed(std::filesystem::path folder, Account account, std::string secret,
          std::shared_ptr<Supervisor> supervisor)
      : folder_(std::move(folder)),
        account_(std::move(account)),
        secret_(std::move(secret)),
        supervisor_(std::move(supervisor)) {}

  const std::filesystem::path folder_;
  const Account account_;
  const std::string secret_;
  const std::shared_ptr<Supervisor> supervisor_;
  std::atomic<unsigned> folders_ = 0;
  std::unique_ptr<ProxyPool> proxies_;
  std::optional<TlsFiles> tls_;
};

}  // namespace lockbench::testbed
