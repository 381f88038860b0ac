#include <fmt/format.h>

#include "hazards/client_process.h"
#include "hazards/stage.h"
#include "testbed/servers/memcached_server.h"

namespace lockbench::hazards {
namespace {

class MemcachedStage : public Stage {
 public:
  tl::expected<void, std::string> open(House& house, Ground ground) {
    testbed::MemcachedOptions options{.max_clients = 1000};
    if (ground == Ground::cramped) options.memory_megabytes = 2;
    if (ground == Ground::clocked) {
      auto clock = testbed::ClockShim::make(house.testbed(), house.options().clock_shim);
      if (!clock) return tl::unexpected(clock.error());
      clock_ = *std::move(clock);
      options.clock = clock_.get();
    }
    auto server = testbed::start_memcached(house.testbed(), options);
    if (!server) return tl::unexpected(server.error());
    server_ = *std::move(server);
    return {};
  }

  Endpoints endpoints(std::uint16_t port) const override {
    return {{"memcached", {fmt::format("127.0.0.1:{}", port != 0 ? port : this->port())}}};
  }
  std::uint16_t port() const override { return server_->port(); }

  void restart() override {
    auto done = server_->kill_hard();
    if (done) done = server_->restart(false);
    if (!done) throw StageFailure(done.error());
  }
  void jump_clock(Duration ahead) override { clock_->set(ahead); }

  /// Memory is divided by the size of items, so the lock goes for want of room among its like: keys
  /// as long as its own, with values of the sizes that locks have.
  void fill_memory(const std::string& key) override {
    constexpr int kDigits = 8, kItems = 40'000;
    const std::string prefix =
        key.substr(0, key.size() - std::min<std::size_t>(key.size(), kDigits));
    for (const std::size_t size : {1, 16, 32, 48}) {
      std::string request;
      const std::string value(size, 'x');
      for (int i = 0; i < kItems; ++i) {
        request += fmt::format("set {}{:0{}} 0 86400 {} noreply\r\n{}\r\n", prefix, i, kDigits,
                               size, value);
      }
      request += "version\r\n";
      const auto done = testbed::ask_until(
          port(), request, std::chrono::seconds(20),
          [](std::string_view text) { return text.find("VERSION") != std::string_view::npos; });
      if (!done) throw StageFailure(done.error());
    }
  }

 private:
  std::unique_ptr<testbed::ClockShim> clock_;
  std::unique_ptr<testbed::MemcachedServer> server_;
};

tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& house, Ground ground) {
  if (ground == Ground::durable) {
    return tl::unexpected(NoStage{"memcached keeps nothing on disk", true});
  }
  if (ground == Ground::replicated) {
    return tl::unexpected(NoStage{"memcached has no replicas", true});
  }
  auto stage = std::make_shared<MemcachedStage>();
  auto opened = stage->open(house, ground);
  if (!opened) return tl::unexpected(NoStage{opened.error()});
  return stage;
}

const StageRegistration registration("memcached", make_stage);

}  // namespace
}  // namespace lockbench::hazards
