#include "tests/conformance/etcd/probe.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <stdexcept>

#include "strategies/etcd/client/rpc.grpc.pb.h"

namespace lockbench::test {
namespace {

void must(const grpc::Status& status) {
  if (!status.ok()) throw std::runtime_error("probe: " + status.error_message());
}

/// For a range of all keys that begin so.
template <class Request>
void select(Request& request, const std::string& prefix) {
  std::string end = prefix;
  if (!end.empty()) ++end.back();
  // A zero byte is the lowest key, and as an end stands for all that follows.
  request.set_key(prefix.empty() ? std::string(1, '\0') : prefix);
  request.set_range_end(end.empty() ? std::string(1, '\0') : end);
}

struct Call : grpc::ClientContext {
  Call() {
    set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    set_wait_for_ready(true);
  }
};

}  // namespace

struct EtcdProbe::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : kv(etcdserverpb::KV::NewStub(channel)), lease(etcdserverpb::Lease::NewStub(channel)) {}
  std::unique_ptr<etcdserverpb::KV::Stub> kv;
  std::unique_ptr<etcdserverpb::Lease::Stub> lease;
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
  etcdserverpb::RangeResponse response;
  Call call;
  must(stubs_->kv->Range(&call, request, &response));
  return {response.kvs().begin(), response.kvs().end()};
}

void EtcdProbe::put(const std::string& key, etcd::LeaseId lease) {
  etcdserverpb::PutRequest request;
  request.set_key(key);
  request.set_lease(lease);
  etcdserverpb::PutResponse response;
  Call call;
  must(stubs_->kv->Put(&call, request, &response));
}

void EtcdProbe::remove(const std::string& key) {
  etcdserverpb::DeleteRangeRequest request;
  request.set_key(key);
  etcdserverpb::DeleteRangeResponse response;
  Call call;
  must(stubs_->kv->DeleteRange(&call, request, &response));
}

void EtcdProbe::remove_all(const std::string& prefix) {
  etcdserverpb::DeleteRangeRequest request;
  select(request, prefix);
  etcdserverpb::DeleteRangeResponse response;
  Call call;
  must(stubs_->kv->DeleteRange(&call, request, &response));
}

etcd::LeaseId EtcdProbe::grant(std::int64_t ttl) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(ttl);
  etcdserverpb::LeaseGrantResponse response;
  Call call;
  must(stubs_->lease->LeaseGrant(&call, request, &response));
  return response.id();
}

void EtcdProbe::revoke(etcd::LeaseId lease) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseRevokeResponse response;
  Call call;
  must(stubs_->lease->LeaseRevoke(&call, request, &response));
}

bool EtcdProbe::is_alive(etcd::LeaseId lease) {
  etcdserverpb::LeaseTimeToLiveRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseTimeToLiveResponse response;
  Call call;
  must(stubs_->lease->LeaseTimeToLive(&call, request, &response));
  return response.ttl() >= 0;
}

}  // namespace lockbench::test
