#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "simulate/etcd/model.h"
#include "simulate/etcd/node.h"
#include "strategies/etcd/client/link.h"
#include "strategies/random.h"
#include "tests/support/eventually.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"
#include "tests/support/virtual_time.h"

namespace lockbench::simulate {
namespace {

/// Every call is the model's.
class ModelLink : public etcd::Link {
 public:
  explicit ModelLink(EtcdModel& model) : model_(model) {}

  bool ready() override { return true; }
  grpc::Status call(std::string_view method, const etcd::Message& request, etcd::Message& response,
                    const std::string& /*token*/, const etcd::Limits& /*limits*/) override {
    const auto answer = model_.execute(method, request.SerializeAsString(), TimePoint());
    EXPECT_TRUE(response.ParseFromString(answer.response));
    return answer.status;
  }
  std::unique_ptr<etcd::Stream> make_stream(std::string_view, const std::string&,
                                            Duration) override {
    return nullptr;
  }

 private:
  EtcdModel& model_;
};

struct ModelLinks : etcd::Links {
  tl::expected<std::unique_ptr<etcd::Link>, std::string> open(const Order&) override {
    return std::make_unique<ModelLink>(model);
  }
  EtcdModel model;
};

/// The same random commands for each store, with its own revisions and leases; answers in words
/// that do not contain these.
class EtcdPlayer {
 public:
  EtcdPlayer(const std::string& url, etcd::Links& links)
      : etcd_(test::must(etcd::parse_endpoint(url)), test::kPatience, *env_, links) {
    first_ = revision_ = etcd_.transact({}, {}).value().value().revision;
  }

  std::string play() {
    switch (below(10)) {
      case 0:
        return below(2) == 0 ? text_of(etcd_.remove_key({}, key()))
                             : text_of(etcd_.remove_prefix({}, prefix()));
      case 1:
        return below(2) == 0 ? grant() : revoke();
      case 2: {
        const auto listed = etcd_.list({}, prefix(), static_cast<std::int64_t>(below(3)));
        return listed ? text_of(*listed) : "refused";
      }
      case 3: {
        const auto found = etcd_.read({}, key());
        if (!found) return "refused";
        return *found ? text_of({**found}) : "none";
      }
      default:
        return transact();
    }
  }

 private:
  struct Connection : etcd::Connection {
    using etcd::Connection::call;
    using etcd::Connection::Connection;
  };

  std::size_t below(std::size_t count) { return random_() % count; }
  std::string prefix() { return below(2) == 0 ? "a/" : "b/"; }
  // Few enough for a stable order of keys of one revision.
  std::string key() {
    const std::string before = prefix();
    return fmt::format("{}{}", before, below(4));
  }
  std::int64_t revision() {
    return std::max<std::int64_t>(revision_ - static_cast<std::int64_t>(below(8)), first_);
  }
  /// Perhaps one that is gone.
  etcd::LeaseId lease() {
    constexpr std::size_t kLatest = 4;
    const std::size_t back = below(kLatest + 1);
    return back < leases_.size() && back < kLatest ? leases_[leases_.size() - 1 - back] : 0;
  }

  etcdserverpb::Compare condition() {
    const std::size_t kind = below(6);
    const std::string any = key(), all = prefix();
    const std::int64_t known = revision();
    switch (kind) {
      case 0:
        return etcd::exists(any);
      case 1:
        return etcd::absent(any);
      case 2:
        return etcd::created_in(any, known);
      case 3:
        return etcd::changed_in(any, known);
      case 4:
        return etcd::none_below(all);
      default:
        return etcd::none_below_before(all, known);
    }
  }

  /// etcd refuses two changes of one key.
  etcdserverpb::RequestOp operation(std::set<std::string>& changed) {
    const std::size_t kind = below(5);
    const std::string any = key(), all = prefix();
    const std::int64_t known = below(2) == 0 ? 0 : revision();
    const auto count = static_cast<std::int64_t>(1 + below(3));
    const etcd::LeaseId owner = lease();
    if (kind < 3 && !changed.insert(any).second) return etcd::get(any);
    switch (kind) {
      case 0:
        return etcd::put(any, owner);
      case 1:
        return etcd::put_value(any, fmt::format("v{}", count));
      case 2:
        return etcd::remove(any);
      case 3:
        return etcd::get(any);
      default:
        return etcd::newest(all, count, known);
    }
  }

  std::string transact() {
    etcd::Txn txn;
    for (std::size_t i = below(3); i > 0; --i) txn.conditions.push_back(condition());
    for (auto* const branch : {&txn.then, &txn.otherwise}) {
      std::set<std::string> changed;
      for (std::size_t i = below(4); i > 0; --i) branch->push_back(operation(changed));
    }
    const auto result = etcd_.transact({}, txn);
    if (!result) return "refused";
    if (!*result) return "a lease is gone";
    revision_ = (*result)->revision;
    std::string text = fmt::format("{} {}", (*result)->succeeded, revision_ - first_);
    for (const auto& found : (*result)->found) text += "; " + text_of(found);
    return text;
  }

  std::string grant() {
    // Longer than the test takes.
    const auto granted = etcd_.grant_lease(static_cast<std::int64_t>(5000 + below(3)), {});
    if (!granted) return "refused";
    leases_.push_back(granted->id);
    return format_duration(granted->ttl);
  }
  std::string revoke() {
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(lease());
    etcdserverpb::LeaseRevokeResponse response;
    const auto revoked = etcd_.call(etcd::kLeaseRevoke, {}, {}, request, response);
    if (!revoked) return "refused";
    return *revoked ? "revoked" : "no such lease";
  }

  static std::string text_of(const StoreResult<std::int64_t>& deleted) {
    return deleted ? std::to_string(*deleted) : "refused";
  }
  std::string text_of(const std::vector<etcd::Key>& keys) const {
    std::string text;
    for (const etcd::Key& key : keys) {
      const auto lease = std::ranges::find(leases_, key.lease);
      text += fmt::format("{} {} {} lease {} \"{}\", ", key.name, key.created - first_,
                          key.changed - first_, lease - leases_.begin(), key.value);
    }
    return text;
  }

  const std::unique_ptr<Env> env_ = make_system_env(1);
  Connection etcd_;
  Random random_{20261130};
  std::vector<etcd::LeaseId> leases_;
  std::int64_t first_ = 0, revision_ = 0;  ///< of the store
};

TEST(EtcdFidelity, TwentyThousandRandomCommandsGetTheAnswersOfARealServer) {
  const auto server = test::must(testbed::start_etcd(test::shared_testbed()));
  ModelLinks links;
  EtcdPlayer model("etcd://model:1", links), real(server->url(), etcd::Links::real());
  // The real one writes each change to its disk before the next: more would take a minute.
  constexpr int kCommands = 20'000;
  std::set<std::string> different;
  for (int i = 0; i < kCommands; ++i) {
    const std::string modelled = model.play();
    ASSERT_EQ(modelled, real.play()) << "command " << i;
    different.insert(modelled);
  }
  EXPECT_GT(different.size(), 1000U);
  EXPECT_TRUE(different.contains("a lease is gone"));
  EXPECT_TRUE(different.contains("no such lease"));
  EXPECT_FALSE(different.contains("refused"));
}

/// What a client sees of a lease that is renewed once and then ends.
std::string end_of_a_lease(etcd::Links& links, Env& env, const std::string& url) {
  const etcd::Endpoint endpoint = test::must(etcd::parse_endpoint(url));
  etcd::Connection client(endpoint, test::kPatience, env, links);
  const auto lease = client.grant_lease(1, {}).value();
  const etcd::Txn txn{.then = {etcd::put("lease/a", lease.id), etcd::put("lease/b", lease.id)}};
  const bool put = client.transact({}, txn).value().has_value();
  std::shared_ptr<etcd::Completions> completions;
  const etcd::Limits limits{{}, test::kPatience};
  const auto link = links
                        .open({.member = endpoint.hosts.front(),
                               .endpoint = endpoint,
                               .limits = limits,
                               .env = env,
                               .completions = completions})
                        .value();
  const auto stream = link->make_stream(etcd::kLeaseKeepAlive.name, {}, Duration::max());
  bool open = stream->begin(limits);
  const auto renew = [&] {
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease.id);
    open = open && stream->write(request, limits) && stream->read(limits);
    return static_cast<const etcdserverpb::LeaseKeepAliveResponse&>(stream->response()).ttl();
  };
  const TimePoint asked_at = env.now();
  const std::int64_t renewed = renew();
  const bool gone = client.await_deletion({}, "lease/a", asked_at + test::kPatience, {}).value();
  const bool in_time = env.now() - asked_at >= lease.ttl;
  const std::size_t left = client.list({}, "lease/").value().size();
  const std::int64_t late = renew();
  const bool put_late = client.transact({}, txn).value().has_value();
  return fmt::format("{} {} {} {} {} {} {} {} {}", format_duration(lease.ttl), put, renewed, gone,
                     in_time, left, late, put_late, open);
}

TEST(EtcdFidelity, ALeaseEndsAsAtARealServer) {
  const auto server = test::must(testbed::start_etcd(test::shared_testbed()));
  const auto env = make_system_env(1);
  const std::string real = end_of_a_lease(etcd::Links::real(), *env, server->url());
  test::on_virtual_time([&] {
    World world{1, {}};
    Network network{world, {}};
    EtcdNode node(world, network, 0, kLocalRegion, 1);
    const std::vector<Server*> servers{&node};
    Host host(world, 1, kLocalRegion, Clock(), {});
    SimulatedLinks links(std::make_shared<SimulatedDialer>(host, network, servers));
    HostEnv host_env(host, 1, false);
    EXPECT_EQ(end_of_a_lease(links, host_env, "etcd://etcd-0:2379"), real);
  });
  EXPECT_EQ(real, "1s true 1 true true 0 0 false true");
}

}  // namespace
}  // namespace lockbench::simulate
