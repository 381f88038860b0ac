#include "hazards/client.h"

#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "deployment/failure.h"
#include "loadgen/record/redis_counter.h"
#include "strategies/carrier.h"
#include "strategies/programs/program.h"
#include "strategies/registry.h"

namespace lockbench::hazards {
namespace {

constexpr std::chrono::seconds kCommandTimeout{2};

/// Empty if the lock does not expire.
std::optional<TimePoint> end_of(const Lease& lease) {
  const TimePoint end = lease.state ? lease.state->valid_until() : TimePoint::max();
  return end == TimePoint::max() ? std::nullopt : std::optional(end);
}

StrategyOptions options_of(const ActorSettings& settings) {
  StrategyOptions options;
  options.command_timeout = kCommandTimeout;
  if (!settings.renews) options.renew = RenewPolicy{.kind = RenewPolicy::Kind::off};
  if (!settings.wait.empty()) {
    options.wait = deployment::need(parse_wait_policy(settings.wait));
  }
  options.renew_cap = settings.renew_cap;
  options.node_timeout = settings.node_timeout;
  options.wait_replicas = settings.wait_replicas;
  return options;
}

/// An Env with faults for one client: it counts commands, can fail at one of them, and can shift
/// the wall clock. Used on that client's thread.
class FaultEnv : public ForwardingEnv {
 public:
  explicit FaultEnv(ClientMachine& machine)
      : ForwardingEnv(machine.make_env()), machine_(machine) {}

  /// Replaces the previous fault and restarts its count.
  void arm(const CommandFault& fault) {
    fault_ = fault;
    passed_ = 0;
  }
  /// Whether to tell the play, once, that an acquisition has found the lock taken and starts to
  /// wait.
  void expect_wait(bool expected) { expects_wait_ = expected; }
  void shift_wall_clock(Duration by) { wall_offset_ += by; }
  /// Commands sent since the last call.
  int take_count() { return std::exchange(sent_, 0); }

  WallTime wall_now() override { return ForwardingEnv::wall_now() + wall_offset_; }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    report_waiting();
    return ForwardingEnv::wait(event, deadline, stop);
  }
  CommandFate before_command(const CommandInfo& command) override {
    ++sent_;
    if (command.blocks) report_waiting();
    strikes(CommandFault::Place::before);
    return ForwardingEnv::before_command(command);
  }
  CommandFate after_command(const CommandInfo& command, CommandEnd end) override {
    const CommandFate fate = ForwardingEnv::after_command(command, end);
    return strikes(CommandFault::Place::after) ? CommandFate::drop : fate;
  }

 private:
  void report_waiting() {
    if (std::exchange(expects_wait_, false)) machine_.tell({.waiting = true});
  }

  /// True if the answer must be dropped.
  bool strikes(CommandFault::Place place) {
    if (!fault_ || fault_->place != place || ++passed_ != fault_->command) return false;
    const CommandFault::Action action = fault_->action;
    fault_.reset();
    if (action == CommandFault::Action::die) machine_.die();
    if (action == CommandFault::Action::stall) machine_.stand_still();
    return action == CommandFault::Action::drop_answer;
  }

  ClientMachine& machine_;
  std::optional<CommandFault> fault_;
  int passed_ = 0;  ///< commands that have passed the fault's place since arm()
  int sent_ = 0;
  Duration wall_offset_{};
  bool expects_wait_ = false;
};

/// The carrier of a client beside which nothing runs: neither the renewal of its leases nor the
/// keeper of its session. The client itself goes on.
class LoneCarrier : public Carrier {
 public:
  LoneCarrier() { set_current(this); }
  LoneCarrier(const LoneCarrier&) = delete;
  LoneCarrier& operator=(const LoneCarrier&) = delete;
  ~LoneCarrier() override { set_current(nullptr); }

  bool shared() const noexcept override { return inner_.shared(); }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  WaitResult wait(Event* event, TimePoint deadline, const std::stop_token& stop) override {
    return inner_.wait(event, deadline, stop);
  }
  void poll(std::span<pollfd> descriptors, Duration longest, const std::stop_token& stop) override {
    inner_.poll(descriptors, longest, stop);
  }
  void keep(int descriptor) override { inner_.keep(descriptor); }
  void forget(int descriptor) noexcept override { inner_.forget(descriptor); }
  void yield() override { inner_.yield(); }
  tl::expected<std::unique_ptr<Task>, std::string> start(Body /*body*/,
                                                         OnFailure /*on_failure*/) override {
    return std::make_unique<Task>();
  }

 private:
  Carrier& inner_ = current();  ///< before this one is
};

/// A process of its own.
class ProcessMachine final : public ClientMachine {
 public:
  explicit ProcessMachine(int socket) : socket_(socket) {}

  std::unique_ptr<Env> make_env() override { return make_system_env(random_seed()); }
  void equip(Services& /*services*/, bool stalled) override {
    if (stalled) alone_.emplace();
  }
  void die() override { std::raise(SIGKILL); }
  void stand_still() override { std::raise(SIGSTOP); }
  void tell(const Answer& answer) override { (void)send(socket_, answer); }

 private:
  const int socket_;
  std::optional<LoneCarrier> alone_;
};

class ServedClient {
 public:
  ServedClient(ClientSetup setup, ClientMachine& machine)
      : setup_(std::move(setup)),
        options_(options_of(setup_.settings)),
        env_(machine),
        plain_(machine.make_env()) {
    machine.equip(services_, setup_.settings.renewal_stalls);
    if (!setup_.program.empty()) add_program();
    const Descriptor* const strategy = find_strategy(setup_.strategy);
    if (strategy == nullptr) throw std::runtime_error("no such strategy: " + setup_.strategy);
    strategy_ = make_strategy(*strategy, {.endpoints = setup_.endpoints,
                                          .options = options_,
                                          .env = env_,
                                          .services = services_,
                                          .client = setup_.settings.number,
                                          .ttl = setup_.ttl});
    program_ = dynamic_cast<program::ProgramLock*>(strategy_.get());
    deployment::need(strategy_->connect());
    env_.take_count();
  }

  Answer serve(const Request& request) {
    Answer answer;
    switch (request.what) {
      case Request::What::acquire:
        answer.grant = acquire(request);
        break;
      case Request::What::release:
        env_.take_count();
        answer.released = strategy_->release(lease(request)).outcome;
        answer.commands = env_.take_count();
        break;
      case Request::What::renew:
        env_.take_count();
        answer.renewed = strategy_->renew(lease(request), request.ttl).outcome;
        answer.commands = env_.take_count();
        break;
      case Request::What::belief:
        answer.belief = belief(lease(request), request.within);
        break;
      case Request::What::read:
        answer.counter = read(request);
        break;
      case Request::What::write:
        answer.written = session(request).write(0, reading_, lease(request).fencing);
        break;
      case Request::What::arm:
        env_.arm(request.fault);
        break;
      case Request::What::shift_clock:
        env_.shift_wall_clock(request.by);
        break;
      case Request::What::cancelled_release:
        answer.released = program_->release(lease(request), request.within).outcome;
        break;
      case Request::What::work:
        answer.cannot = work(request.within);
        break;
    }
    answer.at = plain_->now();
    return answer;
  }

 private:
  /// The program stays in this process's group, so that what stops and kills this process does the
  /// same to it.
  void add_program() {
    deployment::need(
        program::add({.name = setup_.strategy, .command = setup_.program, .about = setup_.about}));
    services_.provide(std::make_shared<program::Grouping>(program::Grouping{.own_group = false}));
    for (const auto& [name, value] : setup_.environment) setenv(name.c_str(), value.c_str(), 1);
  }

  /// Why it cannot; empty: it has done the work.
  std::string work(Duration busy) {
    const auto done = program_->work(busy);
    if (done == program::ProgramLock::Done::failed) throw std::runtime_error("its work failed");
    return done == program::ProgramLock::Done::unsupported ? "it does not support `work`" : "";
  }

  Grant acquire(const Request& request) {
    if (request.at) plain_->wait(nullptr, *request.at, {});
    Grant grant;
    grant.asked_at = env_.now();
    env_.expect_wait(request.within > Duration::zero());
    env_.take_count();
    AcquireResult result = strategy_->acquire(
        {.key = request.key, .ttl = request.ttl, .deadline = grant.asked_at + request.within});
    env_.expect_wait(false);
    grant.outcome = result.outcome;
    grant.answered_at = env_.now();
    grant.commands = env_.take_count();
    grant.reason = std::move(result.reason);
    if (!result.lease) return grant;
    if (request.release_at_once) (void)strategy_->release(*result.lease);
    grant.lease = next_lease_;
    grant.valid_until = end_of(*result.lease);
    grant.fencing = result.lease->fencing;
    leases_.emplace(next_lease_++, *std::move(result.lease));
    return grant;
  }

  Lease& lease(const Request& request) { return leases_.at(request.lease); }

  Belief belief(const Lease& lease, Duration within) {
    const TimePoint give_up_at = env_.now() + within;
    if (program_ != nullptr) program_->look(lease);
    TimePoint now = env_.now();
    for (; lease.state->valid_at(now) && now < give_up_at; now = env_.now()) {
      const TimePoint next = now + std::chrono::milliseconds(1);
      if (plain_->wait(nullptr, next, {}) == WaitResult::stopped) break;  // it was killed
      if (program_ != nullptr) program_->look(lease);
    }
    Belief belief{.valid = lease.state->valid_at(now), .until = end_of(lease)};
    const auto lost = lease.state->lost_at();
    if (lost && (!belief.until || *lost < *belief.until)) belief.until = lost;
    return belief;
  }

  std::uint64_t read(const Request& request) {
    reading_ = loadgen::Reading{};
    reading_ = deployment::need(session(request).read(0, lease(request).fencing));
    return reading_.value;
  }

  /// The counter of the current key. It uses an Env without faults: faults strike the lock's
  /// commands only.
  loadgen::CounterSession& session(const Request& request) {
    if (session_ && counted_key_ == request.key) return *session_;
    session_.reset();
    counter_ = deployment::need(loadgen::make_redis_counter(
        {.connections =
             services_.get_or_make<redis::ConnectionFactory>(redis::make_connection_factory),
         .endpoint = deployment::need(redis::parse_endpoint(setup_.counter)),
         .env = *plain_,
         .key_name = [name = request.key + ":counter"](int) { return name; },
         .checks_fencing = setup_.settings.checks_fencing}));
    counted_key_ = request.key;
    session_ = counter_->open(*plain_);
    return *session_;
  }

  const ClientSetup setup_;
  const StrategyOptions options_;
  FaultEnv env_;
  const std::unique_ptr<Env> plain_;
  Services services_;
  std::unique_ptr<LockStrategy> strategy_;
  program::ProgramLock* program_ = nullptr;  ///< the same; null if it is lockbench's own
  std::map<int, Lease> leases_;              ///< destroyed before the strategy and its services
  int next_lease_ = 0;
  std::unique_ptr<loadgen::Counter> counter_;
  std::string counted_key_;
  std::unique_ptr<loadgen::CounterSession> session_;
  loadgen::Reading reading_;
};

}  // namespace

Client make_client(const ClientSetup& setup, ClientMachine& machine) {
  return [client = std::make_shared<ServedClient>(setup, machine)](const Request& request) {
    return client->serve(request);
  };
}

int serve_client(int socket) {
  // Otherwise a stopped process would outlive its parent, which is the play's thread. If that ended
  // before this call, the socket is closed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  ProcessMachine machine(socket);
  Client client;  // made by the first message
  bool connected = true;
  while (connected) {
    try {
      if (client) {
        const auto request = receive<Request>(socket);
        connected = request && send(socket, client(*request));
      } else {
        const auto setup = receive<ClientSetup>(socket);
        if (setup) client = make_client(*setup, machine);
        connected = setup && send(socket, Answer{});
      }
    } catch (const std::exception& error) {
      connected = send(socket, Answer{.error = error.what()});
    }
  }
  return 0;
}

}  // namespace lockbench::hazards
