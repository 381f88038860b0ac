#pragma once

#include <memory>

#include "strategies/descriptor.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/renewal.h"

namespace lockbench::etcd {

/// An etcd lease that the run's scheduler keeps alive from its grant until stop(). Its state has
/// the end of its validity, by the granted TTL, and its loss.
class KeptLease {
 public:
  /// `asked_at`: the time before the grant was requested. `tied_to`: another lease; once it is
  /// lost, this one is not renewed any more. May be null.
  KeptLease(const Context& context, const Endpoint& endpoint, const GrantedLease& granted,
            TimePoint asked_at, std::shared_ptr<const LeaseState> tied_to);

  LeaseId id() const { return granted_.id; }
  Duration ttl() const { return granted_.ttl; }
  const std::shared_ptr<LeaseState>& state() const { return state_; }
  void stop() { renewal_->stop(); }

 private:
  GrantedLease granted_;
  std::shared_ptr<LeaseState> state_;
  std::shared_ptr<Renewal> renewal_;
};

}  // namespace lockbench::etcd
