#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/store_server.h"
#include "simulate/zookeeper/tree.h"

namespace lockbench::simulate {

struct ZookeeperSettings {
  int members = 1;
  /// How long a follower takes to carry out what it got.
  DurationDistribution lag = DurationDistribution::exponential(std::chrono::microseconds(200));
  bool durable = true;  ///< a restart comes back with everything agreed
};

/// A ZooKeeper ensemble at one address; each connection is to a random member. The first one leads:
/// it orders all changes, counts the time of sessions, and is never behind. The others learn of the
/// end of a session when they carry it out, and tell the leader now and then which clients they
/// have heard. Most faults strike all of them. Everything agreed is on disk.
class ZookeeperNode final : public StoreServer {
 public:
  ZookeeperNode(World& world, Network& network, int number, int region, ZookeeperSettings settings);

  void restart() override;
  /// What was under way between its members comes at once, in its order.
  void thaw() override;
  /// The followers elect a leader: it keeps sessions, and counts their time anew.
  bool fail_over() override;
  bool evict(bool /*only_volatile*/) override { return false; }
  /// It still answers what it can, until it has waited for the others as long as these wait for it.
  void isolate(std::size_t member) override;
  void reunite() override;
  bool remove(const std::string& key) override;
  bool end_session(const std::string& key) override;
  std::vector<std::string> keys() const override { return agreed_.locked_keys(); }

 private:
  static constexpr std::size_t kLeader = 0;

  struct Client;
  struct Member {
    ZookeeperTree tree{};
    TimePoint last_arrival{};        ///< of what was agreed
    std::set<std::int64_t> heard{};  ///< sessions, since its latest report to the leader
  };
  struct Session {
    Duration timeout{};
    std::string password{};
    TimePoint ends{};              ///< by the server's clock
    std::uint64_t connection = 0;  ///< its number; 0: none
    std::size_t member = 0;
  };
  /// Where a request came from.
  struct Origin {
    std::uint64_t connection = 0;  ///< its number; 0: the server itself
    std::size_t member = kLeader;
    std::int64_t session = 0;
    bool asked = true;  ///< it waits for an answer
  };
  struct Agreed {
    ZookeeperRequest request;
    ZookeeperChange change;
    Origin origin;
  };

  /// Null: the server does not know the connection any more.
  static Client* client_of(const std::shared_ptr<Wire>& wire);
  std::unique_ptr<Wire::Session> open_session() const override;
  bool take(const std::shared_ptr<Wire>& wire, std::string_view bytes) override;
  void work(const std::shared_ptr<Wire>& wire) override;
  void leave(const std::shared_ptr<Wire>& wire) override;
  void break_all() override;
  // False: the connection has ended, or waits for what its request changes.
  bool greet(const std::shared_ptr<Wire>& wire, std::string_view packet);
  bool answer(const std::shared_ptr<Wire>& wire, std::string_view packet);

  std::int64_t begin_session(Duration asked_timeout, const Client& client);
  /// Null: it has ended.
  Session* find_session(std::int64_t id);
  void touch(Session& session);
  /// A member has heard its client: the leader learns it with the member's next report.
  void hear(std::size_t member, std::int64_t id);
  /// Ends the session at its time.
  void await_end(std::int64_t id);

  /// Within the ensemble: not while it is frozen, nor in a later life.
  void later(TimePoint when, std::function<void()> act);
  /// On its way to the leader.
  void submit(const ZookeeperRequest& request, const Origin& origin);
  void agree(const ZookeeperRequest& request, const Origin& origin);
  void carry_out(std::size_t member, const Agreed& agreed);
  /// The member of its origin has carried it out.
  void finish(const Agreed& agreed);
  void remove_containers();
  /// Of this leader.
  void begin_term();

  const ZookeeperSettings settings_;
  ZookeeperTree agreed_;  ///< without watches
  std::vector<Member> members_;
  std::int64_t transactions_ = 0;
  bool leaderless_ = false;  ///< the leader is apart: nothing is agreed on until the next term
  std::map<std::int64_t, Session> sessions_;  ///< by their ids
  std::int64_t last_session_;
  std::map<std::uint64_t, std::shared_ptr<Wire>> connections_;  ///< by their numbers
  std::uint64_t connections_made_ = 0;
  std::vector<std::function<void()>> held_;  ///< what is due while it is frozen, in order
};

}  // namespace lockbench::simulate
