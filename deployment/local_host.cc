#include "deployment/local_host.h"

#include "deployment/failure.h"

namespace lockbench::deployment {
namespace {

tl::expected<testbed::TlsFiles, std::string> issue_certificate(const testbed::Testbed& testbed) {
  const auto authority = testbed::Authority::make(testbed.folder() / "tls", testbed.account());
  if (!authority) return tl::unexpected(authority.error());
  return (*authority)->issue("server");
}

}  // namespace

tl::expected<std::unique_ptr<LocalHost>, std::string> LocalHost::open(bool tls) {
  std::unique_ptr<LocalHost> host(new LocalHost);
  auto testbed = testbed::Testbed::start();
  if (!testbed) return tl::unexpected(testbed.error());
  host->testbed_ = *std::move(testbed);
  if (tls) {
    auto issued = issue_certificate(*host->testbed_);
    if (!issued) return tl::unexpected(issued.error());
    host->tls_ = *std::move(issued);
  }
  auto proxies = testbed::ProxyPool::start();
  if (!proxies) return tl::unexpected(proxies.error());
  host->proxies_ = *std::move(proxies);
  return host;
}

std::unique_ptr<testbed::Proxy> LocalHost::line_to(std::uint16_t port, Duration rtt) {
  testbed::ProxyOptions options;
  options.delay = each_way(rtt);
  return need(testbed::start_proxy(*proxies_, port, options));
}

}  // namespace lockbench::deployment
