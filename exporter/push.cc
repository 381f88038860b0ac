#include "exporter/push.h"

#include <fmt/format.h>
#include <prometheus/gateway.h>
#include <unistd.h>

#include <array>
#include <future>
#include <thread>

namespace lockbench::exporter {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

}  // namespace

tl::expected<void, std::string> push(const PushTarget& target,
                                     const std::shared_ptr<prometheus::Collectable>& metrics,
                                     Duration within) {
  // The library supports neither time-outs nor paths: it joins its first two arguments with a colon
  // and appends /metrics.
  std::packaged_task<int()> task([target, metrics] {
    prometheus::Gateway gateway(
        fmt::format("{}://{}", target.scheme, target.host), target.port + target.path, "lockbench",
        prometheus::Gateway::GetInstanceLabel(host_name()), target.user, target.password);
    gateway.RegisterCollectable(metrics);
    return gateway.Push();
  });
  std::future<int> answer = task.get_future();
  // The thread owns everything it uses, so it may outlive this call.
  std::thread(std::move(task)).detach();
  if (answer.wait_for(within) != std::future_status::ready) {
    return tl::unexpected(
        fmt::format("no answer from {} within {}", target.display(), format_duration(within)));
  }
  const int status = answer.get();
  if (status >= 200 && status < 300) return {};
  if (status < 100) return tl::unexpected(target.display() + " cannot be reached");
  return tl::unexpected(fmt::format("{} answered with status {}", target.display(), status));
}

}  // namespace lockbench::exporter
