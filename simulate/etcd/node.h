#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulate/etcd/link.h"
#include "simulate/etcd/model.h"
#include "simulate/store_server.h"

namespace lockbench::simulate {

/// An etcd cluster of one or three members, at the address of its leader. What it has acknowledged
/// is on the disks of most of them, so another leader has it, and so has a restart if they are
/// `durable`.
class EtcdNode final : public StoreServer {
 public:
  EtcdNode(World& world, Network& network, int number, int region, int members,
           bool durable = true);

  void restart() override;
  /// Another member leads.
  bool fail_over() override;
  /// It never does.
  bool evict(bool /*only_volatile*/) override { return false; }
  void depose_leader() override;
  /// The former leader ends the leases that have expired by its own count: its successor, which has
  /// renewed them, gets that passed on (etcd 15247). A real one loses the first 16.
  void resume_deposed() override;
  bool remove(const std::string& key) override;
  bool end_session(const std::string& key) override;
  std::vector<std::string> keys() const override;

 private:
  struct Client;
  struct Watch {
    std::shared_ptr<Wire> wire;
    std::uint32_t call = 0;
  };
  using Watches = std::multimap<std::string, Watch, std::less<>>;

  std::unique_ptr<Wire::Session> open_session() const override;
  bool take(const std::shared_ptr<Wire>& wire, std::string_view bytes) override;
  void work(const std::shared_ptr<Wire>& wire) override;
  void leave(const std::shared_ptr<Wire>& wire) override;
  void break_all() override;

  void execute(const std::shared_ptr<Wire>& wire, const Frame& frame);
  /// `changed`: what is answered has just become known by a change.
  void reply(const std::shared_ptr<Wire>& wire, const Frame& frame, bool changed);
  void watch(const std::shared_ptr<Wire>& wire, const Frame& frame);
  /// Another user's call.
  template <class Request, class Response>
  Response ask(const etcd::Method<Request, Response>& method, const Request& request);
  void revoke(etcd::LeaseId lease);
  /// The watchers of keys that were deleted.
  void tell_watchers();
  void lead();
  void await_expiry();
  void look_at(TimePoint when);
  /// When a call of this kind that is executed now can be answered.
  TimePoint ready_at(EtcdModel::Path path);
  /// By the clock that counts the times of leases.
  TimePoint its_now() const { return clock.now(world_.now()); }

  const int members_;
  const bool durable_;
  EtcdModel data_;
  Watches watches_;                        ///< by key
  TimePoint looks_at_ = TimePoint::max();  ///< for expired leases
  /// Renewals that wait until it has looked, and those behind them on their streams.
  std::deque<std::pair<std::shared_ptr<Wire>, Frame>> waiting_;
  std::map<etcd::LeaseId, TimePoint> former_ends_;  ///< of leases, as the deposed leader knows them
};

}  // namespace lockbench::simulate
