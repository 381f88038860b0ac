#include "strategies/etcd/client/channel.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
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
  std::string nobody = "no etcd server answers";
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

Connection::Channel::Channel(const HostPort& member, const Endpoint& endpoint,
                             const Credentials& credentials,
                             std::shared_ptr<Completions> its_completions)
    : completions(std::move(its_completions)),
      channel(make_channel(member, endpoint, credentials)),
      auth(etcdserverpb::Auth::NewStub(channel)),
      kv(etcdserverpb::KV::NewStub(channel)),
      lease(etcdserverpb::Lease::NewStub(channel)),
      maintenance(etcdserverpb::Maintenance::NewStub(channel)),
      watch(etcdserverpb::Watch::NewStub(channel)) {}

void Connection::Channel::await_change(grpc_connectivity_state state, Duration longest) {
  Completion operation;
  channel->NotifyOnStateChange(state, from_now(longest), completions->queue(), operation.tag());
  operation.succeeds();
}

void prepare(grpc::ClientContext& context, Duration timeout, const std::string& token) {
  if (timeout != Duration::max()) context.set_deadline(from_now(timeout));
  if (!token.empty()) context.AddMetadata("token", token);
}

}  // namespace lockbench::etcd
