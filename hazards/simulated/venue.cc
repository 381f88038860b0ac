#include "hazards/simulated/venue.h"

#include <fmt/format.h>

#include "hazards/simulated/client.h"
#include "hazards/simulated/line.h"
#include "hazards/simulated/servers.h"
#include "loadgen/fibers/scheduler.h"
#include "simulate/simulation.h"

namespace lockbench::hazards {
namespace {

/// The machines of one play. Made, used and destroyed on a fiber.
class SimulatedVenue final : public Venue {
 public:
  explicit SimulatedVenue(std::uint64_t seed)
      : world_(seed, {}),
        network_(world_, Duration::zero()),
        counter_(world_, network_, kCounter, simulate::kLocalRegion, {}),
        servers_{&counter_} {}

  tl::expected<std::shared_ptr<PrivateStore>, NotStarted> store(const Descriptor& strategy,
                                                                Setup setup) override {
    const deployment::StoreRequest request = request_of(strategy, setup);
    const auto& kind = *simulate::find_simulated_store(strategy.backend);
    try {
      for (int node = 0; node < request.nodes; ++node) {
        nodes_.push_back(kind.make(world_, network_, node, simulate::kLocalRegion,
                                   SimulatedServers::settings_of(kind, request, node == 0)));
        servers_.push_back(nodes_.back().get());
      }
    } catch (const deployment::NotOffered& impossible) {
      return tl::unexpected(NotStarted{impossible.what(), impossible.why});
    }
    if (kind.backend != kRedis) return std::make_shared<SimulatedServers>(kind, nodes_, request);
    return std::make_shared<SimulatedRedis>(kind, nodes_, request);
  }

  std::unique_ptr<ControlledClient> start_client() override {
    hosts_.push_back(std::make_unique<simulate::Host>(world_, static_cast<int>(hosts_.size()),
                                                      simulate::kLocalRegion, simulate::Clock(),
                                                      std::span<const simulate::Pauses>()));
    return std::make_unique<SimulatedClient>(*hosts_.back(), network_, servers_);
  }
  std::unique_ptr<testbed::Line> line_to(std::uint16_t port) override {
    return std::make_unique<SimulatedLine>(*hosts_.back(), port);
  }
  std::unique_ptr<testbed::ClockShim> make_clock() override {
    throw NotPlayable("not simulated: client programs");
  }
  std::string counter_url() const override {
    return simulate::find_simulated_store(kRedis)->url_of(kCounter);
  }
  std::uint64_t counter(const std::string& key) override {
    const simulate::Reply value = counter_.ask({"GET", key});
    return value.is_nil() ? 0 : std::stoull(value.text);
  }
  std::string fresh_key() override { return "lockbench:{1"; }

 private:
  static constexpr std::string_view kRedis = "redis";
  static constexpr int kCounter = 32;  ///< beyond all nodes

  simulate::World world_;
  simulate::Network network_;
  simulate::RedisNode counter_;
  simulate::Nodes nodes_;
  std::vector<simulate::Server*> servers_;
  std::vector<std::unique_ptr<simulate::Host>> hosts_;
};

}  // namespace

Cell play_simulated(const Scenario& scenario, const Descriptor& strategy, std::uint64_t seed) {
  Cell cell = make_cell(scenario, strategy);
  if (cell.played()) return cell;
  const auto fails = [&](const std::string& why) {
    cell.failed = true;
    cell.reason = why;
  };
  // Plays format much, and clients connect with everything.
  fibers::Stacks stacks(fibers::StackSize{.bytes = std::size_t{256} * 1024});
  auto scheduler = fibers::Scheduler::make(stacks, fibers::Time::virtual_time);
  if (!scheduler) {
    fails(scheduler.error());
    return cell;
  }
  const auto task = (*scheduler)
                        ->start(
                            [&](const std::stop_token&) {
                              SimulatedVenue venue(seed);
                              cell = play(venue, scenario, strategy);
                              cell.evidence["simulated"] = true;
                            },
                            fails);
  if (!task) {
    fails(task.error());
    return cell;
  }
  (*scheduler)->finish();
  (*scheduler)->run();
  return cell;
}

}  // namespace lockbench::hazards
