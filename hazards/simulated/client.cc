#include "hazards/simulated/client.h"

#include <utility>

#include "simulate/stores.h"

namespace lockbench::hazards {
namespace {

constexpr std::chrono::seconds kObeysWithin{10};
/// For what a client sent, or its death, to reach the servers before the play goes on.
constexpr std::chrono::milliseconds kInTransit{1};

/// Of a service that gets no turn.
class StalledEnv final : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;

  WaitResult wait(Event* /*event*/, TimePoint /*deadline*/, const std::stop_token& stop) override {
    return ForwardingEnv::wait(nullptr, TimePoint::max(), stop);
  }
};

/// Of such a service: it hears of new work and of its end, but of no time and no answer.
class StalledPoller final : public Poller {
 public:
  explicit StalledPoller(std::unique_ptr<Poller> poller) : poller_(std::move(poller)) {}

  void watch(int /*descriptor*/, std::uint64_t /*tag*/) override {}
  void unwatch(int /*descriptor*/) override {}
  void wake() noexcept override { poller_->wake(); }
  std::span<const std::uint64_t> wait(Duration /*longest*/) override {
    return poller_->wait(Duration::max());
  }

 private:
  const std::unique_ptr<Poller> poller_;
};

class StalledDialer final : public simulate::SimulatedDialer {
 public:
  using SimulatedDialer::SimulatedDialer;

  tl::expected<std::unique_ptr<Poller>, std::string> make_poller() override {
    auto poller = SimulatedDialer::make_poller();
    if (!poller) return poller;
    return std::make_unique<StalledPoller>(*std::move(poller));
  }
};

}  // namespace

SimulatedClient::SimulatedClient(simulate::Host& host, simulate::Network& network,
                                 const std::vector<simulate::Server*>& servers)
    : host_(host),
      network_(network),
      servers_(servers),
      asked_(Carrier::current().make_event()),
      changed_(Carrier::current().make_event()),
      task_(need(
          Carrier::current().start([this](const std::stop_token& stop) { run(stop); },
                                   [this](const std::string& why) { tell({.error = why}); }))) {}

SimulatedClient::~SimulatedClient() {
  if (!host_.dead()) die();
  task_.reset();  // waits for its end
}

std::unique_ptr<Env> SimulatedClient::make_env() {
  return std::make_unique<simulate::HostEnv>(host_, host_.world().random()(), false);
}

void SimulatedClient::equip(Services& services, bool stalled) {
  simulate::provide_connections(
      services, stalled ? std::make_shared<StalledDialer>(host_, network_, servers_)
                        : std::make_shared<simulate::SimulatedDialer>(host_, network_, servers_));
  const auto make = [&host = host_, stalled]() -> std::unique_ptr<Env> {
    auto env = std::make_unique<simulate::HostEnv>(host, host.world().random()(), true);
    if (!stalled) return env;
    return std::make_unique<StalledEnv>(std::move(env));
  };
  services.provide(std::make_shared<EnvSource>(EnvSource{make}));
}

void SimulatedClient::die() {
  host_.kill();
  asked_->set();
  changed_->set();
}

void SimulatedClient::stand_still() {
  host_.stop();
  changed_->set();
  host_.pass_pause();
}

void SimulatedClient::tell(const Answer& answer) {
  answers_.push_back(answer);
  changed_->set();
}

void SimulatedClient::run(const std::stop_token& stop) {
  Client client;  // made by the first message
  while (const auto message = next(stop)) {
    Answer answer;
    try {
      if (const auto* const request = std::get_if<Request>(&*message)) {
        answer = client(*request);
      } else {
        client = make_client(std::get<ClientSetup>(*message), *this);
      }
    } catch (const std::exception& error) {
      answer = {.error = error.what()};
    }
    if (!host_.dead()) tell(answer);
  }
}

std::optional<SimulatedClient::Message> SimulatedClient::next(const std::stop_token& stop) {
  while (inbox_.empty() && !host_.dead() && !stop.stop_requested()) {
    Carrier::current().wait(asked_.get(), TimePoint::max(), stop);
  }
  host_.pass_pause();
  if (host_.dead() || stop.stop_requested()) return std::nullopt;
  Message message = std::move(inbox_.front());
  inbox_.pop_front();
  return message;
}

// For the play, on its fiber.

void SimulatedClient::require_life() const {
  if (host_.dead()) throw Failure("a client process has ended");
}

void SimulatedClient::deliver(Message message) {
  require_life();
  inbox_.push_back(std::move(message));
  asked_->set();
}

bool SimulatedClient::await(Duration within, const std::function<bool()>& change) {
  const TimePoint give_up_at = PlayClock::now() + within;
  while (!change() && PlayClock::now() < give_up_at) {
    Carrier::current().wait(changed_.get(), give_up_at, {});
  }
  return change();
}

std::optional<Answer> SimulatedClient::receive(Duration within) {
  await(within, [this] { return !answers_.empty() || host_.dead(); });
  if (answers_.empty()) return std::nullopt;
  Answer answer = std::move(answers_.front());
  answers_.pop_front();
  return answer;
}

void SimulatedClient::kill() {
  require_life();
  die();
  PlayClock::sleep_for(kInTransit);
}

void SimulatedClient::stop() {
  require_life();
  host_.stop();
}

void SimulatedClient::await_death() {
  if (!await(kObeysWithin, [this] { return host_.dead(); })) {
    throw Failure("a client process did not die in time");
  }
}

void SimulatedClient::await_stop() {
  if (!await(kObeysWithin, [this] { return host_.stopped(); })) {
    throw Failure("a client process did not stop in time");
  }
  PlayClock::sleep_for(kInTransit);
}

}  // namespace lockbench::hazards
