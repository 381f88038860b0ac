#pragma once

#include <memory>
#include <vector>

#include "strategies/descriptor.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/renewal.h"

namespace lockbench::etcd {

/// An etcd lease that the run's scheduler keeps alive from its grant until stop(). Its state has
/// the end of its validity, by the granted TTL, and its loss.
class KeptLease {
 public:
  /// `asked_at`: the time before the grant was requested. `outlasting`: leases with longer TTLs
  /// that are renewed right before this one, so that they end later by the difference whenever the
  /// renewals cease. May be empty.
  KeptLease(const Context& context, const Endpoint& endpoint, const GrantedLease& granted,
            TimePoint asked_at, const std::vector<LeaseId>& outlasting);

  Duration ttl() const { return granted_.ttl; }
  const std::shared_ptr<LeaseState>& state() const { return state_; }
  void stop() { renewal_->stop(); }

 private:
  GrantedLease granted_;
  std::shared_ptr<LeaseState> state_;
  std::shared_ptr<Renewal> renewal_;
};

}  // namespace lockbench::etcd
