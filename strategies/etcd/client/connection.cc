#include "strategies/etcd/client/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/etcd/client/channel.h"

namespace lockbench::etcd {
namespace {

/// How often a wait for a connection looks whether it is to stop.
constexpr Duration kSlice = std::chrono::milliseconds(20);
/// A write that is proposed again and again would be answered some day: etcd gives up after that.
constexpr int kAttempts = 2;

/// What gRPC has to say goes into results; on its own it would write to stderr.
void silence_grpc() {
  static const bool done = [] {
    gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  (void)done;
}

std::shared_ptr<grpc::Channel> make_channel(const Address& member) {
  silence_grpc();
  grpc::ChannelArguments arguments;
  // Else all clients of the process would share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Retrying and going round by a proxy are not for the library to decide.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel(member.target(), grpc::InsecureChannelCredentials(), arguments);
}

/// Whether the server has answered at all. It tells of lost leaders as if it could not be reached.
bool is_answer(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNIMPLEMENTED:
      return true;
    default:
      return false;
  }
}

}  // namespace

Connection::Channel::Channel(const Address& member)
    : channel(make_channel(member)),
      kv(etcdserverpb::KV::NewStub(channel)),
      lease(etcdserverpb::Lease::NewStub(channel)),
      watch(etcdserverpb::Watch::NewStub(channel)) {}

gpr_timespec from_now(Duration time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(std::max<std::int64_t>(time.count(), 0), GPR_TIMESPAN));
}

bool wants_another_token(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         status.error_message().find("revision in header is old") != std::string::npos;
}

void prepare(grpc::ClientContext& context, Duration timeout, const std::string& token) {
  context.set_deadline(from_now(timeout));
  if (!token.empty()) context.AddMetadata("token", token);
}

Connection::Connection(Endpoint endpoint, Duration command_timeout, Env& env)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeout_(command_timeout),
      env_(env),
      address_(member().display()) {}

Connection::~Connection() = default;

void Connection::close() noexcept { channel_.reset(); }

tl::unexpected<StoreError> Connection::fail(StoreError::Kind kind, std::string_view why) const {
  return tl::unexpected(StoreError{kind, fmt::format("{}: {}", address_, why)});
}

CommandInfo Connection::told(const Call& call, bool blocks) const {
  return {
      .store = "etcd", .endpoint = address_, .name = call.name, .key = call.key, .blocks = blocks};
}

StoreResult<void> Connection::open(Duration limit, const std::stop_token& stop) {
  address_ = member().display();
  auto made = std::make_unique<Channel>(member());
  const TimePoint give_up_at = env_.now() + limit;
  grpc_connectivity_state state = made->channel->GetState(true);
  while (state != GRPC_CHANNEL_READY) {
    const TimePoint now = env_.now();
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      return fail(StoreError::Kind::not_sent, "no etcd answers there");
    }
    if (stop.stop_requested()) {
      return fail(StoreError::Kind::not_sent, "stopped while connecting");
    }
    if (now >= give_up_at) {
      return fail(StoreError::Kind::not_sent, "no connection within " + format_duration(limit));
    }
    made->channel->WaitForStateChange(state, from_now(std::min(kSlice, give_up_at - now)));
    state = made->channel->GetState(true);
  }
  channel_ = std::move(made);
  return {};
}

StoreResult<void> Connection::connect(const std::stop_token& stop) {
  if (channel_ && !channel_->ready()) {
    close();
    ++next_;
  }
  if (!channel_) {
    const bool late = stop.stop_requested();
    const std::size_t members = endpoint_.members.size();
    const Duration limit = (late ? kLastMoment : timeout_) / static_cast<std::int64_t>(members);
    StoreResult<void> opened;
    for (std::size_t tried = 0; tried < members; ++tried) {
      opened = open(limit, late ? std::stop_token() : stop);
      if (opened) break;
      ++next_;
    }
    if (!opened) return opened;
  }
  return token_.empty() && !endpoint_.user.empty() ? authenticate(stop) : StoreResult<void>();
}

StoreResult<void> Connection::authenticate(const std::stop_token& stop) {
  etcdserverpb::AuthenticateRequest request;
  request.set_name(endpoint_.user);
  request.set_password(endpoint_.password);
  etcdserverpb::AuthenticateResponse response;
  const auto stub = etcdserverpb::Auth::NewStub(channel_->channel);
  const auto done = exchange({"Authenticate", {}, stop}, [&](grpc::ClientContext* context) {
    return stub->Authenticate(context, request, &response);
  });
  // Whether it was heard or not: what it was for was not sent.
  if (!done) return tl::unexpected(StoreError{StoreError::Kind::not_sent, done.error().message});
  token_ = response.token();
  return {};
}

StoreResult<bool> Connection::call(const Call& call, const Send& send) {
  StoreResult<bool> answer = false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (auto connected = connect(call.stop); !connected) return tl::unexpected(connected.error());
    answer = exchange(call, send);
    const bool token_is_over = !answer && !endpoint_.user.empty() && token_.empty();
    if (!token_is_over) break;
  }
  return answer;
}

StoreResult<bool> Connection::exchange(const Call& call, const Send& send) {
  const CommandInfo info = told(call);
  if (env_.before_command(info) == CommandFate::drop) {
    env_.after_command(info, CommandEnd::lost);
    close();
    return fail(StoreError::Kind::not_sent, "the connection was cut");
  }
  grpc::ClientContext context;
  const bool late = call.stop.stop_requested();
  prepare(context, late ? kLastMoment : timeout_, token_);
  grpc::Status status;
  {
    const StopCallback on_stop(late ? std::stop_token() : call.stop, CancelOnStop{context});
    status = send(&context);
  }
  const bool heard = is_answer(status.error_code());
  const auto end = heard ? CommandEnd::answered : CommandEnd::lost;
  if (env_.after_command(info, end) == CommandFate::drop) {
    close();
    return fail(StoreError::Kind::unanswered, "the answer was lost");
  }
  if (status.ok()) return true;
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return false;
  if (wants_another_token(status)) token_.clear();
  if (heard) return fail(StoreError::Kind::rejected, status.error_message());
  close();
  if (call.stop.stop_requested()) {
    return fail(StoreError::Kind::unanswered, "stopped while waiting for the answer");
  }
  ++next_;
  return fail(StoreError::Kind::unanswered,
              status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
                  ? "no answer within " + format_duration(timeout_)
                  : status.error_message());
}

}  // namespace lockbench::etcd
