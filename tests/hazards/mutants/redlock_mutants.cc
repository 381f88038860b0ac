// Redlocks with one defect that declare what a correct one does. They register themselves in
// the programs that they are linked into.

#include "strategies/redis/redlock_lock.h"
#include "strategies/redis/scripts.h"
#include "strategies/registry.h"
#include "strategies/waiting/retry.h"

namespace lockbench::redis {
namespace {

struct Flaws {
  bool minority = false;   ///< two votes are enough
  bool late = false;       ///< ignores the remaining validity
  bool hoarding = false;   ///< keeps the votes of a lost round
  bool unanimous = false;  ///< needs every vote
};

/// Asks one node after the other and waits for each.
template <Flaws kFlaws>
class Redlock : public LockStrategy {
 public:
  explicit Redlock(const Context& context) : env_(context.env), waiting_(context.waiting) {
    auto& factory = context.services.get_or_make<ConnectionFactory>(make_hiredis_factory);
    auto& observer = context.services.get<QuorumObserver>();
    observer_ = &observer;
    for (const std::string& url : context.urls) {
      const Duration patience =
          context.options.node_timeout.value_or(context.options.command_timeout);
      nodes_.push_back(factory.make(parse_endpoint(url).value(), patience, env_));
    }
  }

  StoreResult<void> connect() override {
    for (const auto& node : nodes_) {
      if (auto connected = node->connect(); !connected) return connected;
    }
    return {};
  }

  AcquireResult acquire(const AcquireRequest& request) override {
    Lease lease{.key = std::string(request.key)};
    return retry(request, env_, waiting_, [&](const AcquireRequest& once) -> Attempt {
      lease.token = random_token(env_);
      return vote(once, lease);
    });
  }

  ReleaseResult release(const Lease& lease) override {
    int freed = 0;
    for (const auto& node : nodes_) {
      const auto reply = node->call(scripts::release_if_token, {lease.key}, {lease.token});
      freed += reply && reply->is_integer(1) ? 1 : 0;
    }
    return {freed >= needed() ? ReleaseOutcome::released : ReleaseOutcome::not_owner, {}};
  }

  RenewResult renew(const Lease& /*lease*/, Duration /*ttl*/) override {
    return {RenewOutcome::unsupported, {}};
  }

 private:
  int needed() const {
    const auto nodes = static_cast<int>(nodes_.size());
    if (kFlaws.unanimous) return nodes;
    return kFlaws.minority ? 2 : majority_of(nodes);
  }

  Attempt vote(const AcquireRequest& request, Lease& lease) {
    const TimePoint started = env_.now();
    const std::string ttl = std::to_string(ceil_milliseconds(request.ttl));
    int granted = 0, failed = 0;
    for (const auto& node : nodes_) {
      const auto reply = node->call({"SET", lease.key, lease.token, "NX", "PX", ttl});
      granted += reply && reply->is_text("OK") ? 1 : 0;
      failed += reply ? 0 : 1;
    }
    const Duration validity = validity_of(request.ttl, env_.now() - started);
    observer_->on_round(false, validity);
    if (granted >= needed() && (kFlaws.late || validity > Duration::zero())) {
      lease.state = std::make_shared<LeaseState>(started + request.ttl, started);
      return std::optional(lease);
    }
    if (!kFlaws.hoarding) release(lease);
    if (failed > static_cast<int>(nodes_.size()) - needed()) {
      return tl::unexpected(StoreError{StoreError::Kind::not_sent, "too few nodes"});
    }
    return std::nullopt;
  }

  Env& env_;
  const WaitPolicy waiting_;
  QuorumObserver* observer_ = nullptr;
  std::vector<std::unique_ptr<Connection>> nodes_;
};

template <Flaws kFlaws>
Descriptor described(std::string_view name) {
  return {.name = name,
          .backend = "redis",
          .summary = "a correct Redlock with one defect",
          .acquire_commands = {"SET key token NX PX ttl"},
          .release_commands = {"EVALSHA release_if_token key token"},
          .source = "our own",
          .traits = redlock_traits(),
          .hazards = redlock_hazards(),
          .make = construct<Redlock<kFlaws>>};
}

const Registration sound(described<Flaws{}>("test-redlock"));
const Registration minority(described<Flaws{.minority = true}>("test-redlock-minority"));
const Registration late(described<Flaws{.late = true}>("test-redlock-late"));
const Registration unanimous(described<Flaws{.unanimous = true}>("test-redlock-unanimous"));
const Registration hoarding(described<Flaws{.hoarding = true}>("test-redlock-hoarding"));

}  // namespace
}  // namespace lockbench::redis
