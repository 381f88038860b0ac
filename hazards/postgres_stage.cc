#include <fmt/format.h>

#include "hazards/client_process.h"
#include "hazards/stage.h"
#include "testbed/postgres_server.h"

namespace lockbench::hazards {
namespace {

class PostgresStage : public Stage {
 public:
  tl::expected<void, std::string> open(House& house, Ground ground) {
    testbed::PostgresOptions options{.max_clients = 200};
    if (ground == Ground::clocked) {
      auto clock = testbed::ClockShim::make(house.testbed(), house.options().clock_shim);
      if (!clock) return tl::unexpected(clock.error());
      clock_ = *std::move(clock);
      options.clock = clock_.get();
    }
    auto server = testbed::start_postgres(house.testbed(), options);
    if (!server) return tl::unexpected(server.error());
    server_ = *std::move(server);
    return {};
  }

  Endpoints endpoints(std::uint16_t port) const override {
    return {{"postgres",
             {fmt::format("postgresql://postgres@127.0.0.1:{}/postgres",
                          port != 0 ? port : this->port())}}};
  }
  std::uint16_t port() const override { return server_->port(); }

  void restart() override {
    auto done = server_->kill_hard();
    if (done) done = server_->restart(true);
    if (!done) throw StageFailure(done.error());
  }
  void jump_clock(Duration ahead) override { clock_->set(ahead); }

 private:
  std::unique_ptr<testbed::ClockShim> clock_;
  std::unique_ptr<testbed::PostgresServer> server_;
};

tl::expected<std::shared_ptr<Stage>, NoStage> make_stage(House& house, Ground ground) {
  if (ground == Ground::volatile_) {
    return tl::unexpected(NoStage{"PostgreSQL keeps everything on disk", true});
  }
  if (ground == Ground::cramped) {
    return tl::unexpected(NoStage{"PostgreSQL evicts nothing", true});
  }
  if (ground == Ground::replicated) {
    return tl::unexpected(NoStage{"the testbed has no PostgreSQL replica"});
  }
  auto stage = std::make_shared<PostgresStage>();
  auto opened = stage->open(house, ground);
  if (!opened) return tl::unexpected(NoStage{opened.error()});
  return stage;
}

const StageRegistration registration("postgres", make_stage);

}  // namespace
}  // namespace lockbench::hazards
