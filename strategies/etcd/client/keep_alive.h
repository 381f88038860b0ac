#pragma once

#include <memory>

#include "strategies/descriptor.h"
#include "strategies/etcd/client/connection.h"
#include "strategies/renewal.h"

namespace lockbench::etcd {

/// Prolongs leases, whose numbers in hex are the tokens, on one LeaseKeepAlive stream that stays
/// open from batch to batch. What etcd answers is the TTL that it once granted, which the orders
/// have.
std::unique_ptr<RenewalChannel> make_keep_alive_channel(const Endpoint& endpoint, Duration timeout,
                                                        Env& env);

/// A lease of etcd that is kept alive by what all clients of the run share, from its grant until
/// stop(). Its state tells the end of its validity, by TTL as granted, and its loss.
class KeptLease {
 public:
  /// `asked_at`: before it was asked for. `tied_to`: another's state, once that is lost this one is
  /// kept no longer; null: it stands alone.
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
