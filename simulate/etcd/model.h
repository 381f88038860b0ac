#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/duration.h"
#include "strategies/etcd/client/messages.h"

namespace lockbench::simulate {

/// The keys and leases of an etcd cluster, and the calls of its API that strategies make. Answers
/// as etcd 3.4, errors included. It has no clock and no connections: the caller passes the leader's
/// monotonic time. Not thread-safe.
class EtcdModel {
 public:
  /// What a call takes before its answer.
  enum class Path {
    here,    ///< nothing
    quorum,  ///< most members confirm that this one leads
    log,     ///< it goes through the cluster's log
  };
  struct Answer {
    grpc::Status status{};
    std::string response{};
    Path path = Path::here;
    /// It renews a lease that has expired, so the answer waits until expire() has ended that: only
    /// then execute it again.
    bool waits = false;
  };

  /// Of the method of that name, with both messages as on the wire.
  Answer execute(std::string_view method, const std::string& request, TimePoint now);

  /// Removes the leases that have expired, with their keys.
  void expire(TimePoint now);
  /// A new leader counts every lease's time from the beginning.
  void lead(TimePoint now);
  std::optional<TimePoint> next_expiry() const;
  /// When each lease expires.
  std::map<etcd::LeaseId, TimePoint> ends() const;
  /// A new cluster takes its place. Its leases have other numbers, as real ones are made of the
  /// time.
  void lose_all();
  /// The keys that were deleted since the last call, in order.
  std::vector<std::string> take_deleted() { return std::exchange(deleted_, {}); }
  std::int64_t revision() const { return revision_; }
  /// Of all keys, in order.
  std::vector<std::string> names() const;

 private:
  struct Value {
    std::int64_t created = 0, changed = 0;  ///< revisions
    etcd::LeaseId lease = 0;
    std::string text{};
  };
  struct Lease {
    std::int64_t seconds = 0;
    TimePoint expires{};
    std::set<std::string> keys{};
  };
  using Values = std::map<std::string, Value, std::less<>>;

  template <class Request, class Response>
  Answer run(const std::string& bytes, grpc::Status (EtcdModel::*call)(const Request&, Response&));

  grpc::Status range(const etcdserverpb::RangeRequest& request,
                     etcdserverpb::RangeResponse& response);
  grpc::Status remove(const etcdserverpb::DeleteRangeRequest& request,
                      etcdserverpb::DeleteRangeResponse& response);
  grpc::Status transact(const etcdserverpb::TxnRequest& request,
                        etcdserverpb::TxnResponse& response);
  grpc::Status grant(const etcdserverpb::LeaseGrantRequest& request,
                     etcdserverpb::LeaseGrantResponse& response);
  grpc::Status revoke(const etcdserverpb::LeaseRevokeRequest& request,
                      etcdserverpb::LeaseRevokeResponse& response);
  grpc::Status keep_alive(const etcdserverpb::LeaseKeepAliveRequest& request,
                          etcdserverpb::LeaseKeepAliveResponse& response);

  /// Those of a request's key, or of the range up to its end.
  std::pair<Values::iterator, Values::iterator> of(const std::string& key,
                                                   const std::string& until);
  bool holds(const etcdserverpb::Compare& condition);
  // Changes within the revision after the present one.
  void put(const etcdserverpb::PutRequest& request);
  std::int64_t erase(Values::iterator first, Values::iterator last);
  /// Ends that revision, if something has changed in it.
  void commit();
  void end(std::map<etcd::LeaseId, Lease>::iterator lease);

  TimePoint now_{};     ///< of the call
  bool waits_ = false;  ///< the call's answer
  std::int64_t revision_ = 1;
  bool changed_ = false;
  Values values_;
  std::map<etcd::LeaseId, Lease> leases_;
  etcd::LeaseId latest_lease_ = 0;
  std::vector<std::string> deleted_;
};

}  // namespace lockbench::simulate
