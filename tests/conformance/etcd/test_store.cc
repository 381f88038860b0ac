#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <set>

#include "deployment/failure.h"
#include "strategies/etcd/client/rpc.grpc.pb.h"
#include "tests/conformance/etcd/etcd_test_store.h"
#include "tests/support/eventually.h"

namespace lockbench::test {
namespace {

void must_be_done(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error("probe: " + status.error_message());
}

/// Sets the range to all keys with this prefix.
template <class Request>
void select(Request& request, const std::string& prefix) {
  std::string end = prefix;
  if (!end.empty()) ++end.back();
  // A zero byte is the smallest key, and as range_end means all following keys.
  request.set_key(prefix.empty() ? std::string(1, '\0') : prefix);
  request.set_range_end(end.empty() ? std::string(1, '\0') : end);
}

struct Call : grpc::ClientContext {
  explicit Call(const std::string& token = {}) {
    set_deadline(std::chrono::system_clock::now() + kPatience);
    set_wait_for_ready(true);
    if (!token.empty()) AddMetadata("token", token);
  }
};

}  // namespace

struct EtcdProbe::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : auth(etcdserverpb::Auth::NewStub(channel)),
        kv(etcdserverpb::KV::NewStub(channel)),
        lease(etcdserverpb::Lease::NewStub(channel)) {}

  void log_in() {
    etcdserverpb::AuthenticateRequest request;
    request.set_name(std::string(testbed::kEtcdRoot));
    request.set_password(shared_testbed().secret());
    etcdserverpb::AuthenticateResponse response;
    Call call;
    must_be_done(auth->Authenticate(&call, request, &response));
    token = response.token();
  }

  /// A restarted server has forgotten its tokens.
  template <class Service, class Request, class Response>
  Response ask(Service& service,
               grpc::Status (Service::*method)(grpc::ClientContext*, const Request&, Response*),
               const Request& request) {
    if (token.empty()) log_in();
    Response response;
    Call call(token);
    grpc::Status status = (service.*method)(&call, request, &response);
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
      log_in();
      Call again(token);
      status = (service.*method)(&again, request, &response);
    }
    must_be_done(status);
    return response;
  }

  std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  std::string token;
};

EtcdProbe::EtcdProbe(std::uint16_t port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  stubs_ = std::make_unique<Stubs>(grpc::CreateCustomChannel(
      fmt::format("ipv4:127.0.0.1:{}", port), grpc::InsecureChannelCredentials(), arguments));
}

EtcdProbe::~EtcdProbe() = default;

std::vector<etcdserverpb::KeyValue> EtcdProbe::keys(const std::string& prefix) {
  etcdserverpb::RangeRequest request;
  select(request, prefix);
  request.set_sort_target(etcdserverpb::RangeRequest::CREATE);
  request.set_sort_order(etcdserverpb::RangeRequest::ASCEND);
  const auto response = stubs_->ask(*stubs_->kv, &etcdserverpb::KV::Stub::Range, request);
  return {response.kvs().begin(), response.kvs().end()};
}

std::int64_t EtcdProbe::revision() {
  etcdserverpb::RangeRequest request;
  select(request, {});
  return stubs_->ask(*stubs_->kv, &etcdserverpb::KV::Stub::Range, request).header().revision();
}

void EtcdProbe::put(const std::string& key, etcd::LeaseId lease) {
  etcdserverpb::TxnRequest request;
  etcdserverpb::PutRequest& written = *request.add_success()->mutable_request_put();
  written.set_key(key);
  written.set_lease(lease);
  stubs_->ask(*stubs_->kv, &etcdserverpb::KV::Stub::Txn, request);
}

void EtcdProbe::remove_all(const std::string& prefix) {
  etcdserverpb::DeleteRangeRequest request;
  select(request, prefix);
  stubs_->ask(*stubs_->kv, &etcdserverpb::KV::Stub::DeleteRange, request);
}

etcd::LeaseId EtcdProbe::grant(std::int64_t ttl) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(ttl);
  return stubs_->ask(*stubs_->lease, &etcdserverpb::Lease::Stub::LeaseGrant, request).id();
}

void EtcdProbe::revoke(etcd::LeaseId lease) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  stubs_->ask(*stubs_->lease, &etcdserverpb::Lease::Stub::LeaseRevoke, request);
}

bool EtcdProbe::is_alive(etcd::LeaseId lease) {
  etcdserverpb::LeaseTimeToLiveRequest request;
  request.set_id(lease);
  return stubs_->ask(*stubs_->lease, &etcdserverpb::Lease::Stub::LeaseTimeToLive, request).ttl() >=
         0;
}

namespace {

std::string lock_of(const std::string& key) { return key.substr(0, key.find('/')); }

}  // namespace

EtcdTestStore::EtcdTestStore()
    : server_(deployment::need(testbed::start_etcd(shared_testbed()))), probe_(server_->port()) {}

std::vector<std::string> EtcdTestStore::keys() {
  std::set<std::string> locks;
  for (const auto& key : probe_.keys()) locks.insert(lock_of(key.key()));
  return {locks.begin(), locks.end()};
}

std::vector<std::string> EtcdTestStore::staying() {
  std::vector<std::string> leaseless;
  for (const auto& key : probe_.keys()) {
    if (key.lease() == 0) leaseless.push_back(key.key());
  }
  return leaseless;
}

std::optional<TimePoint> EtcdTestStore::end_of(const std::string& key) {
  for (const auto& found : probe_.keys(key + "/record")) return end_of_record(found.value());
  return std::nullopt;
}

void EtcdTestStore::take_away(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) probe_.remove_all(key + "/");
}

int EtcdTestStore::other_connections() {
  probe_.keys();  // opens its own connection, so that it is counted each time
  return connections_to(server_->port());
}

int EtcdTestStore::waiting() {
  std::map<std::string, int> places;
  for (const auto& key : probe_.keys()) {
    if (key.key().find("/guard/") == std::string::npos) ++places[lock_of(key.key())];
  }
  int waiting = 0;
  for (const auto& [lock, count] : places) waiting += count - 1;
  return waiting;
}

EtcdTestStore& shared_etcd() { return dynamic_cast<EtcdTestStore&>(shared_store()); }

namespace {

const TestedStoreRegistration registration({.name = "etcd",
                                            .backends = {"etcd"},
                                            .shared = the_one<EtcdTestStore>,
                                            .make = another<EtcdTestStore>,
                                            .properties = etcd_properties});

}  // namespace

}  // namespace lockbench::test
