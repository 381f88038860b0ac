#include "strategies/etcd/client/channel.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "strategies/transport/socket.h"

namespace lockbench::etcd {

tl::expected<std::shared_ptr<Completions>, std::string> Completions::shared() {
  static std::mutex mutex;
  static std::weak_ptr<Completions> latest;
  const std::scoped_lock lock(mutex);
  if (auto known = latest.lock()) return known;
  auto made = std::make_shared<Completions>();
  auto thread = Thread::start(
      [queue = made->queue()](const std::stop_token&) {
        void* tag = nullptr;
        bool ok = false;
        while (queue->Next(&tag, &ok)) {
          auto& operation = *static_cast<Completion*>(tag);
          operation.ok_ = ok;
          operation.event_->set();  // its caller may now destroy it
        }
      },
      [](const std::string&) {});
  if (!thread) return tl::unexpected(std::move(thread.error()));
  made->thread_ = *std::move(thread);
  latest = made;
  return made;
}

bool Completion::ends_by(TimePoint deadline) {
  ended_ = ended_ || Carrier::current().wait(event_.get(), deadline, {}) == WaitResult::signalled;
  return ended_;
}

bool Completion::succeeds() {
  while (!ends_by(TimePoint::max())) {
  }
  return ok_;
}

std::string grpc_target(const HostPort& member) {
  const auto is_numeric = [&](int family) {
    in6_addr parsed{};
    return inet_pton(family, member.host.c_str(), &parsed) == 1;
  };
  const std::string_view scheme = is_numeric(AF_INET)    ? "ipv4:"
                                  : is_numeric(AF_INET6) ? "ipv6:"
                                                         : "dns:///";
  return std::string(scheme) + member.display();
}

namespace {

/// How often a wait for a connection checks for a stop: gRPC's wait for a change of state cannot be
/// cancelled.
constexpr Duration kSlice = std::chrono::milliseconds(20);
constexpr std::string_view kNobody = "no etcd server answers";

/// A deadline for gRPC, on the monotonic clock.
gpr_timespec from_now(Duration time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<std::int64_t>(time.count(), 0), GPR_TIMESPAN));
}

std::shared_ptr<grpc::Channel> make_channel(const HostPort& member, const Endpoint& endpoint,
                                            const Credentials& credentials) {
  grpc::ChannelArguments arguments;
  // Otherwise all clients of the process would share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // No retries and no HTTP proxy behind the strategy's back.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  if (endpoint.tls && !endpoint.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(endpoint.tls->server_name);
  }
  return grpc::CreateCustomChannel(grpc_target(member), credentials, arguments);
}

tl::expected<std::string, std::string> text_of(const std::string& file) {
  if (file.empty()) return {};
  std::ifstream stream(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (stream && !text.empty()) return text;
  return tl::unexpected(fmt::format("cannot read {}", file));
}

}  // namespace

tl::expected<Credentials, std::string> credentials_of(const Endpoint& endpoint) {
  // gRPC would log to stderr; its errors are returned instead.
  [[maybe_unused]] static const bool silent = [] {
    gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  if (!endpoint.tls) return grpc::InsecureChannelCredentials();
  const auto authority = text_of(endpoint.tls->ca_file);
  const auto certificate = text_of(endpoint.tls->certificate_file);
  const auto key = text_of(endpoint.tls->key_file);
  for (const auto* part : {&authority, &certificate, &key}) {
    // Without this, gRPC would trust the system's authorities instead.
    if (!*part) return tl::unexpected(part->error());
  }
  return grpc::SslCredentials(
      {.pem_root_certs = *authority, .pem_private_key = *key, .pem_cert_chain = *certificate});
}

std::string why_silent(const HostPort& member, const Endpoint& endpoint, Duration within,
                       const std::stop_token& stop) {
  std::string nobody(kNobody);
  const SocketAddress address{.host = member.host, .port = member.port};
  const Duration each = within / 2;
  if (!endpoint.tls) {
    if (!connect_socket(address, each, stop)) return nobody;
    const TlsSettings by_default;
    const auto secured = connect_socket(address, each, stop, &by_default);
    const bool speaks_tls = secured || secured.error().starts_with("its certificate");
    return speaks_tls ? "the server speaks TLS: use https://" : nobody;
  }
  const auto secured = connect_socket(address, each, stop, endpoint.tls.get());
  if (!secured) return secured.error();
  // With TLS 1.3 a server refuses a client only after the handshake.
  std::array<char, 64> first{};
  const auto received = (*secured)->receive(first, each, stop);
  if (received.status != Transport::Status::closed) return nobody;
  return describe(received.status, each, secured->get());
}

GrpcLink::GrpcLink(const HostPort& member, const Endpoint& endpoint, const Credentials& credentials,
                   std::shared_ptr<Completions> its_completions)
    : completions(std::move(its_completions)),
      channel(make_channel(member, endpoint, credentials)),
      auth(etcdserverpb::Auth::NewStub(channel)),
      kv(etcdserverpb::KV::NewStub(channel)),
      lease(etcdserverpb::Lease::NewStub(channel)),
      maintenance(etcdserverpb::Maintenance::NewStub(channel)),
      watch(etcdserverpb::Watch::NewStub(channel)) {}

tl::expected<void, std::string> GrpcLink::await_ready(const Links::Order& order) {
  const Duration limit = order.limits.longest;
  const TimePoint give_up_at = order.env.now() + limit;
  grpc_connectivity_state state = channel->GetState(true);
  while (state != GRPC_CHANNEL_READY) {
    const TimePoint now = order.env.now();
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) {
      return tl::unexpected(order.probes ? why_silent(order.member, order.endpoint,
                                                      give_up_at - now, order.limits.stop)
                                         : std::string(kNobody));
    }
    if (order.limits.stop.stop_requested()) {
      return tl::unexpected(std::string("stopped while connecting"));
    }
    if (now >= give_up_at) {
      return tl::unexpected("no connection within " + format_duration(limit));
    }
    Completion changed;
    channel->NotifyOnStateChange(state, from_now(std::min(kSlice, give_up_at - now)),
                                 completions->queue(), changed.tag());
    changed.succeeds();
    state = channel->GetState(true);
  }
  return {};
}

tl::expected<std::unique_ptr<Link>, std::string> Links::open(const Order& order) {
  const auto credentials = credentials_of(order.endpoint);
  if (!credentials) return tl::unexpected(credentials.error());
  auto completions = Completions::shared();
  if (!completions) return tl::unexpected(completions.error());
  order.completions = *std::move(completions);
  auto made =
      std::make_unique<GrpcLink>(order.member, order.endpoint, *credentials, order.completions);
  if (auto ready = made->await_ready(order); !ready) return tl::unexpected(ready.error());
  return made;
}

Links& Links::real() {
  static Links links;
  return links;
}

namespace {

using Unary =
    std::function<grpc::Status(GrpcLink&, grpc::ClientContext*, const Message&, Message&)>;

/// The call that this function of that stub starts.
template <class Request, class Response, class Service>
std::pair<const std::string_view, Unary> unary(
    const Method<Request, Response>& method, const std::unique_ptr<Service> GrpcLink::*stub,
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Service::*start)(
        grpc::ClientContext*, const Request&, grpc::CompletionQueue*)) {
  return {method.name, [stub, start](GrpcLink& link, grpc::ClientContext* context,
                                     const Message& request, Message& response) {
            const auto begun = ((*(link.*stub)).*start)(
                context, static_cast<const Request&>(request), link.completions->queue());
            grpc::Status status;
            Completion operation;
            begun->Finish(static_cast<Response*>(&response), &status, operation.tag());
            operation.succeeds();
            return status;
          }};
}

const std::map<std::string_view, Unary>& unary_calls() {
  namespace api = etcdserverpb;
  static const std::map<std::string_view, Unary> calls{
      unary(kAuthenticate, &GrpcLink::auth, &api::Auth::Stub::AsyncAuthenticate),
      unary(kRange, &GrpcLink::kv, &api::KV::Stub::AsyncRange),
      unary(kDeleteRange, &GrpcLink::kv, &api::KV::Stub::AsyncDeleteRange),
      unary(kTxn, &GrpcLink::kv, &api::KV::Stub::AsyncTxn),
      unary(kLeaseGrant, &GrpcLink::lease, &api::Lease::Stub::AsyncLeaseGrant),
      unary(kLeaseRevoke, &GrpcLink::lease, &api::Lease::Stub::AsyncLeaseRevoke),
      unary(kLeaseTimeToLive, &GrpcLink::lease, &api::Lease::Stub::AsyncLeaseTimeToLive),
      unary(kStatus, &GrpcLink::maintenance, &api::Maintenance::Stub::AsyncStatus)};
  return calls;
}

}  // namespace

grpc::Status GrpcLink::call(std::string_view method, const Message& request, Message& response,
                            const std::string& token, const Limits& limits) {
  grpc::ClientContext context;
  prepare(context, limits.longest, token);
  const StopCallback on_stop(limits.stop, CancelOnStop{context});
  return unary_calls().at(method)(*this, &context, request, response);
}

std::unique_ptr<WatchStream> GrpcLink::make_watch(const std::string& token, Duration longest) {
  return std::make_unique<WatchStream>(*this, token, longest,
                                       [this](auto* context, auto* queue, void* tag) {
                                         return watch->AsyncWatch(context, queue, tag);
                                       });
}

std::unique_ptr<Stream> GrpcLink::make_stream(std::string_view method, const std::string& token,
                                              Duration longest) {
  if (method == kWatch.name) return make_watch(token, longest);
  using Renewals =
      GrpcStream<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse>;
  return std::make_unique<Renewals>(*this, token, longest,
                                    [this](auto* context, auto* queue, void* tag) {
                                      return lease->AsyncLeaseKeepAlive(context, queue, tag);
                                    });
}

void prepare(grpc::ClientContext& context, Duration timeout, const std::string& token) {
  if (timeout != Duration::max()) context.set_deadline(from_now(timeout));
  if (!token.empty()) context.AddMetadata("token", token);
}

}  // namespace lockbench::etcd
