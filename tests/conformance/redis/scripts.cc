#include <algorithm>

#include "tests/conformance/common/bench.h"
#include "tests/conformance/redis/own_properties.h"

namespace lockbench::test {
namespace {

/// EVALSHA is answered by NOSCRIPT once, and followed by EVAL, not more.
std::string survives_a_script_flush(const Descriptor& descriptor) {
  Bench bench(descriptor);
  const auto client = bench.client();
  warm_up(*client, bench.key());
  RedisProbe(shared_redis().port()).ask({"SCRIPT", "FLUSH"});
  RedisMonitor monitor(shared_redis().port());
  const AcquireResult held = client->try_once(bench.key());
  if (!held.lease) return unexpected(held, AcquireOutcome::acquired);
  const ReleaseOutcome released = client->release(*held.lease);
  if (released != ReleaseOutcome::released)
    return fmt::format("release gave {}", name_of(released));
  const std::vector<std::string> arrived = monitor.take();
  const auto fallen_back = std::count(arrived.begin(), arrived.end(), "EVAL");
  if (fallen_back == 0) return "no EVAL, though the server had forgotten all scripts";
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    if (arrived[i] == "EVAL" && (i == 0 || arrived[i - 1] != "EVALSHA")) {
      return "EVAL without EVALSHA before it: " + fmt::format("{}", fmt::join(arrived, " "));
    }
  }
  return bench.is_held() ? "still held" : "";
}

bool uses_scripts(const Descriptor& descriptor) {
  const auto is_script = [](std::string_view command) { return command.starts_with("EVALSHA"); };
  return std::any_of(descriptor.acquire_commands.begin(), descriptor.acquire_commands.end(),
                     is_script) ||
         std::any_of(descriptor.release_commands.begin(), descriptor.release_commands.end(),
                     is_script);
}

}  // namespace

std::vector<Property> script_properties() {
  return {{"SurvivesAScriptFlush", uses_scripts, survives_a_script_flush}};
}

}  // namespace lockbench::test
