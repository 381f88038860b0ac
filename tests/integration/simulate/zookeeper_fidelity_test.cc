#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "simulate/zookeeper/node.h"
#include "simulate/zookeeper/tree.h"
#include "strategies/random.h"
#include "strategies/zookeeper/client/link.h"
#include "tests/support/eventually.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"
#include "tests/support/virtual_time.h"

namespace lockbench::simulate {
namespace {

using zookeeper::Reader;
using zookeeper::Request;
using zookeeper::Writer;
using Kind = Request::Kind;

/// What a packet says, without times of day and the order of lists.
std::string said_in(std::string_view packet,
                    const std::map<std::int32_t, std::int32_t>& operations) {
  Reader from(packet);
  const std::int32_t xid = from.int32();
  const std::int64_t transaction = from.int64();
  const std::int32_t code = from.int32();
  if (xid == zookeeper::Xid::kEvent) {
    const std::int32_t type = from.int32(), state = from.int32();
    const std::string_view path = from.text();
    return fmt::format("event {} {} {}, left {}", type, state, path, from.left());
  }
  std::string said = fmt::format("{} {} {}", xid, transaction, code);
  const auto stat = [&] {
    for (int i = 0; i < 2; ++i) said += fmt::format(" by {}", from.int64());
    const std::int64_t made = from.int64(), changed = from.int64();
    said += made == changed ? "" : " changed";
    for (int i = 0; i < 3; ++i) said += fmt::format(" {}", from.int32());
    said += fmt::format(" owner {:x},", from.int64());
    for (int i = 0; i < 2; ++i) said += fmt::format(" {}", from.int32());
    said += fmt::format(" children by {}", from.int64());
  };
  using Operation = ZookeeperRequest;
  switch (code == 0 ? operations.at(xid) : 0) {
    case Operation::kCreate:
    case Operation::kCreateContainer:
      said += fmt::format(" {}", from.text());
      stat();
      break;
    case Operation::kGetData:
      said += fmt::format(" {}", from.text());
      stat();
      break;
    case Operation::kExists:
      stat();
      break;
    case Operation::kGetChildren: {
      std::vector<std::string> children = from.texts();
      std::ranges::sort(children);
      said += fmt::format(" {}", fmt::join(children, ","));
      break;
    }
    case Operation::kSync:
      said += fmt::format(" {}", from.text());
      break;
    default:
      break;
  }
  return said + fmt::format(", left {}", from.left());
}

/// One change may cause several events, in no certain order.
std::vector<std::string> in_order(std::vector<std::string> said) {
  const auto is_event = [](const std::string& one) { return one.starts_with("event"); };
  for (auto from = said.begin(); from != said.end();) {
    const auto to = std::find_if_not(from, said.end(), is_event);
    std::sort(from, to);
    from = to == said.end() ? to : to + 1;
  }
  return said;
}

/// A session at the server.
class RealSession {
 public:
  explicit RealSession(const zookeeper::Endpoint& endpoint) : link_(endpoint, *env_) {
    constexpr std::chrono::hours kTimeout{1};
    link_.begin(test::kPatience);
    const TimePoint until = env_->now() + test::kPatience;
    std::optional<zookeeper::Greeting> greeting;
    while (!greeting && env_->now() < until) {
      greeting = link_.advance({}, kTimeout, *env_, zookeeper::Packets::kPace);
    }
    if (!greeting) throw std::runtime_error("no session: " + link_.why());
    id_ = greeting->id;
    operations_[zookeeper::Xid::kAuth] = 0;
    operations_[zookeeper::Xid::kSetWatches] = ZookeeperRequest::kSetWatches;
    send(zookeeper::authenticate(endpoint.user, endpoint.password));
    receive(1);
    said_.clear();
  }

  std::int64_t id() const { return id_; }
  /// Numbers of its requests, and their operations.
  std::map<std::int32_t, std::int32_t>& operations() { return operations_; }
  void send(const std::string& framed) { link_.packets().send(framed); }
  /// Until there are so many answers more.
  void receive(int answers) {
    const TimePoint until = env_->now() + test::kPatience;
    while (answers > 0) {
      const auto packet = test::must(link_.packets().next());
      if (packet) {
        said_.push_back(said_in(*packet, operations_));
        answers -= said_.back().starts_with("event") ? 0 : 1;
        continue;
      }
      if (env_->now() > until) throw std::runtime_error("no answer");
      const auto status = link_.packets().receive(zookeeper::Packets::kPace);
      if (status == Transport::Status::closed) throw std::runtime_error("the connection is closed");
    }
  }
  std::vector<std::string> take_said() { return in_order(std::exchange(said_, {})); }

 private:
  const std::unique_ptr<Env> env_ = make_system_env(0);
  zookeeper::Link link_;
  std::int64_t id_ = 0;
  std::map<std::int32_t, std::int32_t> operations_;
  std::vector<std::string> said_;
};

/// The model's end of all sessions.
class Model {
 public:
  /// As the server has changed something by itself.
  void change(std::int64_t transaction) {
    tree_.apply({.transaction = transactions_ = transaction});
  }
  std::int64_t transactions() const { return transactions_; }

  void ask(std::int64_t session, std::string_view framed) {
    const auto watcher = static_cast<ZookeeperTree::Watcher>(session);
    const auto request = ZookeeperRequest::read(framed.substr(sizeof(std::int32_t)));
    if (!request) throw std::runtime_error("a request is not understood");
    if (!request->is_agreed()) {
      inboxes_[watcher] += tree_.read(*request, watcher);
      return;
    }
    ZookeeperChange change = tree_.plan(*request, session);
    if (request->operation != ZookeeperRequest::kSync) ++transactions_;
    change.transaction = transactions_;
    for (const ZookeeperTree::Event& event : tree_.apply(change)) {
      inboxes_[event.watcher] += event.packet;
    }
    inboxes_[watcher] += tree_.answer(*request, change);
    if (change.kind == ZookeeperChange::Kind::end_session) tree_.forget(watcher);
    if (change.kind == ZookeeperChange::Kind::make) made.push_back(change.path);
  }
  std::vector<std::string> take_said(std::int64_t session,
                                     const std::map<std::int32_t, std::int32_t>& operations) {
    const std::string all =
        std::exchange(inboxes_[static_cast<ZookeeperTree::Watcher>(session)], {});
    std::vector<std::string> said;
    for (Reader from(all); from.left() > 0;) said.push_back(said_in(from.text(), operations));
    return in_order(std::move(said));
  }

  std::vector<std::string> made;  ///< paths

 private:
  ZookeeperTree tree_;
  std::int64_t transactions_ = 0;
  std::map<ZookeeperTree::Watcher, std::string> inboxes_;
};

class RandomRequests {
 public:
  RandomRequests(std::uint64_t seed, const Model& model) : random_(seed), model_(model) {}

  std::size_t below(std::size_t count) { return random_() % count; }

  std::string next(std::int32_t xid) {
    if (below(40) == 0) return set_watches();
    if (below(40) == 0) return removal_of_a_version(xid);
    constexpr std::array kKinds{Kind::make,           Kind::make_ephemeral, Kind::make_sequential,
                                Kind::make_ephemeral, Kind::children,       Kind::watch_children,
                                Kind::look,           Kind::exists,         Kind::watch_exists,
                                Kind::sync,           Kind::remove,         Kind::remove,
                                Kind::remove};
    const Kind kind = kKinds.at(below(kKinds.size()));
    const bool makes = kind == Kind::make_sequential;
    return zookeeper::write(xid, {kind, path() + (makes ? "/token-" : "")}, "", false);
  }

 private:
  std::string path() {
    if (below(4) == 0 && !model_.made.empty()) {
      return model_
          .made[model_.made.size() - 1 - below(std::min<std::size_t>(40, model_.made.size()))];
    }
    const char* const deeper[] = {"", "", "/x", "/y", "/x/z"};
    return fmt::format("/f{}{}", below(4), deeper[below(std::size(deeper))]);
  }
  std::string set_watches() {
    std::vector<std::string> paths(below(4));
    for (std::string& one : paths) one = path();
    const auto ago = static_cast<std::int64_t>(below(30));
    return zookeeper::set_watches(model_.transactions() - ago, "", paths);
  }
  std::string removal_of_a_version(std::int32_t xid) {
    const std::string of = path();
    const auto version = static_cast<std::int32_t>(below(2));
    return Writer()
        .put(xid)
        .put(ZookeeperRequest::kDelete)
        .put(std::string_view(of))
        .put(version)
        .framed();
  }

  Random random_;
  const Model& model_;
};

TEST(ZookeeperFidelity, AHundredThousandRandomRequestsGetTheAnswersOfARealServer) {
  // Its own removals would be changes that the test does not know of.
  const auto server = test::must(testbed::start_zookeeper(
      test::shared_testbed(), {.java = {"-Dznode.container.checkIntervalMs=86400000"}}));
  const auto endpoint = test::must(zookeeper::parse_endpoint(server->url()));
  Model model;
  RandomRequests requests(20261130, model);
  std::array<std::unique_ptr<RealSession>, 3> sessions;
  std::int32_t xid = 0;
  const auto ask = [&](RealSession& session, const std::string& framed) {
    Reader header(std::string_view(framed).substr(sizeof(std::int32_t)));
    const std::int32_t number = header.int32();
    session.operations()[number] = header.int32();
    session.send(framed);
    model.ask(session.id(), framed);
  };
  const auto compare = [&](RealSession& session, int answers) {
    session.receive(answers);
    const auto real = session.take_said();
    EXPECT_EQ(real, model.take_said(session.id(), session.operations()));
  };
  for (auto& session : sessions) session = std::make_unique<RealSession>(endpoint);
  {
    // Where the server's transactions are.
    RealSession& first = *sessions.front();
    first.operations()[++xid] = ZookeeperRequest::kExists;
    first.send(zookeeper::write(xid, {Kind::exists, "/f0"}, "", false));
    first.receive(1);
    const std::string said = first.take_said().front();
    model.change(std::stoll(said.substr(said.find(' ') + 1)));
  }
  constexpr int kBatches = 2000, kBatch = 50;
  for (int batch = 0; batch < kBatches && !testing::Test::HasFailure(); ++batch) {
    auto& session = sessions.at(requests.below(sessions.size()));
    if (requests.below(20) == 0) {
      ask(*session, zookeeper::end_session(++xid));
      compare(*session, 1);
      session = std::make_unique<RealSession>(endpoint);
      model.change(model.transactions() + 1);
    }
    for (int i = 0; i < kBatch; ++i) ask(*session, requests.next(++xid));
    compare(*session, kBatch);
  }
}

/// What the last member says to clients that go on with a session which the first member has begun:
/// with its password, with another one, and one that has seen what will be.
std::vector<std::string> greetings(const std::vector<zookeeper::Endpoint>& members, Env& env,
                                   const zookeeper::Connector& connector) {
  const auto greet = [&](const zookeeper::Endpoint& member, const zookeeper::Identity& session,
                         std::optional<zookeeper::Greeting>& greeting) -> std::string {
    constexpr std::chrono::seconds kTimeout{30};
    zookeeper::Link link(member, env, connector);
    link.begin(test::kPatience);
    const TimePoint until = env.now() + test::kPatience;
    while (!greeting && link.why().empty() && env.now() < until) {
      greeting = link.advance(session, kTimeout, env, zookeeper::Packets::kPace);
    }
    if (!greeting) return "closed";
    return greeting->timeout > Duration::zero() ? "goes on" : "refused";
  };
  std::optional<zookeeper::Greeting> begun;
  std::vector<std::string> said{greet(members.front(), {}, begun)};
  if (!begun) return said;
  const zookeeper::Identity session{.id = begun->id, .password = begun->password};
  zookeeper::Identity stranger = session, prophet = session;
  stranger.password.assign(session.password.size(), 'x');
  prophet.seen = std::int64_t{1} << 60;
  for (const auto& one : {session, stranger, prophet}) {
    std::optional<zookeeper::Greeting> greeting;
    said.push_back(greet(members.back(), one, greeting));
  }
  return said;
}

TEST(ZookeeperFidelity, AMemberGreetsAsThatOfARealEnsemble) {
  const auto expected = testing::ElementsAre("goes on", "goes on", "refused", "closed");
  const auto servers = test::must(testbed::start_zookeeper_ensemble(test::shared_testbed()));
  std::vector<zookeeper::Endpoint> members;
  members.reserve(servers.size());
  for (const auto& server : servers) {
    members.push_back(test::must(zookeeper::parse_endpoint(server->url())));
  }
  const auto env = make_system_env(0);
  EXPECT_THAT(greetings(members, *env, {}), expected);
  test::on_virtual_time([&] {
    World world(1, {});
    Network network(world, {});
    ZookeeperNode node(world, network, 0, kLocalRegion, {.members = 3});
    const std::vector<Server*> nodes{&node};
    Host host(world, 0, kLocalRegion, Clock(), {});
    HostEnv client(host, 1, false);
    SimulatedDialer dialer(host, network, nodes);
    const auto member = test::must(zookeeper::parse_endpoint("zk://zookeeper-0:2181"));
    EXPECT_THAT(greetings({member}, client, zookeeper::connect_by(dialer, nullptr)), expected);
  });
}

}  // namespace
}  // namespace lockbench::simulate
