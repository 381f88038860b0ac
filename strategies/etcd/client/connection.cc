#include "strategies/etcd/client/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strategies/etcd/client/link.h"
#include "strategies/etcd/client/messages.h"

namespace lockbench::etcd {
namespace {

/// The second attempt is for an expired token.
constexpr int kAttempts = 2;

}  // namespace

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const UrlForm form{.what = "the address of an etcd server",
                     .allowed =
                         "etcd://[user:password@]host[:port][,host[:port]...], or http://, "
                         "or https:// with ?cacert=FILE&cert=FILE&key=FILE&server-name=NAME",
                     .schemes = {"", "etcd", "http", "https"},
                     .default_port = 2379,
                     .max_hosts = 32,
                     .login = UrlForm::Login::user_password,
                     .must_encode = "@,",
                     .tls = text.starts_with("https://")};
  auto url = parse_url(text, form);
  if (!url) return url;
  if (url->path == "/") url->path.clear();
  if (!url->path.empty()) return invalid_url("a path is not allowed", form);
  if (url->tls && url->tls->only_1_3) {
    return invalid_url("min-tls=1.3 cannot be kept: gRPC does not let its users choose", form);
  }
  return url;
}

Verdict verdict_of(const grpc::Status& status) {
  // Some cases have no code of their own, only the text of the server or of the library.
  const auto says = [&](std::string_view text) {
    return status.error_message().find(text) != std::string::npos;
  };
  if (says("revision in header is old")) return Verdict::logged_out;
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return Verdict::done;
    case grpc::StatusCode::NOT_FOUND:
      return Verdict::absent;
    case grpc::StatusCode::UNAUTHENTICATED:
      return Verdict::logged_out;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNIMPLEMENTED:
      return Verdict::refused;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      // The library itself uses this code for an answer that is too large to read.
      return says("larger than max") ? Verdict::unknown : Verdict::refused;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Verdict::late;
    default:
      // A cluster without a leader answers UNAVAILABLE, like a server that cannot be reached.
      return Verdict::unknown;
  }
}

Connection::Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env)
    : Connection(std::move(endpoint), timeouts, env, Links::real()) {}

Connection::Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env, Links& links)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeouts_(timeouts),
      env_(env),
      links_(links),
      address_(member().display()) {}

Connection::~Connection() = default;

void Connection::close() noexcept { link_.reset(); }

void Connection::leave_member() noexcept {
  close();
  ++next_;
}

tl::unexpected<StoreError> Connection::not_understood(std::string_view name,
                                                      std::string_view expected) {
  close();
  return fail(StoreError::Kind::unanswered,
              fmt::format("unexpected answer to {}: expected {}", name, expected));
}

StoreResult<void> Connection::open(Duration limit, const std::stop_token& stop) {
  address_ = member().display();
  const Limits limits{stop, limit};
  // No probe after a first success: the settings fit, so the server is just down.
  auto opened = links_.open({.member = member(),
                             .endpoint = endpoint_,
                             .limits = limits,
                             .probes = opened_ == 0,
                             .env = env_,
                             .completions = completions_});
  if (!opened) return fail(StoreError::Kind::not_sent, opened.error());
  link_ = *std::move(opened);
  // An old token may carry a revision that the new member has not applied yet; the member would
  // block instead of answering.
  token_.clear();
  ++opened_;
  return {};
}

StoreResult<void> Connection::connect(const std::stop_token& stop) {
  if (link_ && !link_->ready()) leave_member();
  if (!link_) {
    const bool late = stop.stop_requested();
    const std::size_t members = endpoint_.hosts.size();
    const Duration limit =
        (late ? last_moment() : timeouts_.answer) / static_cast<std::int64_t>(members);
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
  const auto done = exchange({kAuthenticate.name, {}, stop}, request, response);
  // Even if the login may have succeeded, the command itself was not sent.
  if (!done) return tl::unexpected(StoreError{StoreError::Kind::not_sent, done.error().message});
  if (!is_token(response.token())) {
    return fail(StoreError::Kind::not_sent, "Authenticate was answered without a token");
  }
  token_ = response.token();
  return {};
}

StoreResult<bool> Connection::send(const Call& call, const Message& request, Message& response) {
  StoreResult<bool> answer = false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (auto connected = connect(call.stop); !connected) return tl::unexpected(connected.error());
    answer = exchange(call, request, response);
    const bool token_expired = !answer && !endpoint_.user.empty() && token_.empty();
    if (!token_expired) break;
  }
  return answer;
}

StoreResult<bool> Connection::exchange(const Call& call, const Message& request,
                                       Message& response) {
  const CommandInfo info = info_of(call);
  if (env_.before_command(info) == CommandFate::drop) {
    env_.after_command(info, CommandEnd::lost);
    close();
    return fail(StoreError::Kind::not_sent, "the connection was cut");
  }
  const bool late = call.stop.stop_requested();
  const Limits limits{.stop = late ? std::stop_token() : call.stop,
                      .longest = late ? last_moment() : timeouts_.answer};
  const grpc::Status status = link_->call(call.name, request, response, token_, limits);
  const Verdict verdict = verdict_of(status);
  const bool answered = verdict != Verdict::late && verdict != Verdict::unknown;
  const auto end = answered ? CommandEnd::answered : CommandEnd::lost;
  if (env_.after_command(info, end) == CommandFate::drop) {
    close();
    return fail(StoreError::Kind::unanswered, "the answer was lost");
  }
  if (verdict == Verdict::done) return true;
  if (verdict == Verdict::absent) return false;
  if (verdict == Verdict::logged_out) token_.clear();
  if (answered) return fail(StoreError::Kind::rejected, status.error_message());
  close();
  if (call.stop.stop_requested()) {
    return fail(StoreError::Kind::unanswered, "stopped while waiting for the answer");
  }
  ++next_;
  return fail(StoreError::Kind::unanswered, verdict == Verdict::late
                                                ? "no answer within " + format_duration(timeouts_)
                                                : status.error_message());
}

StoreResult<GrantedLease> Connection::grant_lease(std::int64_t seconds, std::string_view lock,
                                                  const std::stop_token& stop) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(seconds);
  etcdserverpb::LeaseGrantResponse response;
  const auto done = call(kLeaseGrant, lock, stop, request, response);
  if (!done) return tl::unexpected(done.error());
  const auto granted = *done ? read_grant(response) : std::nullopt;
  if (!granted) return not_understood("LeaseGrant", "a lease and its TTL");
  return *granted;
}

StoreResult<void> Connection::revoke_lease(LeaseId lease, std::string_view lock,
                                           const std::stop_token& stop) {
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease);
  etcdserverpb::LeaseRevokeResponse response;
  return call(kLeaseRevoke, lock, stop, request, response).map([](bool) {});
}

StoreResult<std::optional<TxnResult>> Connection::transact(std::string_view lock, const Txn& txn,
                                                           const std::stop_token& stop) {
  const etcdserverpb::TxnRequest request = to_request(txn);
  etcdserverpb::TxnResponse response;
  const auto done = call(kTxn, lock, stop, request, response);
  if (!done) return tl::unexpected(done.error());
  if (!*done) return std::nullopt;
  auto result = read_txn(txn, response);
  if (!result) return not_understood("Txn", "an answer for each operation");
  return result;
}

StoreResult<std::int64_t> Connection::remove_range(std::string_view lock, const std::string& key,
                                                   const std::string& end,
                                                   const std::stop_token& stop) {
  etcdserverpb::DeleteRangeRequest request;
  request.set_key(key);
  request.set_range_end(end);
  etcdserverpb::DeleteRangeResponse response;
  const auto done = call(kDeleteRange, lock, stop, request, response);
  if (!done) return tl::unexpected(done.error());
  if (response.deleted() < 0) return not_understood("DeleteRange", "a count");
  return response.deleted();
}

StoreResult<std::int64_t> Connection::remove_prefix(std::string_view lock,
                                                    const std::string& prefix,
                                                    const std::stop_token& stop) {
  return remove_range(lock, prefix, end_of_prefix(prefix), stop);
}

StoreResult<std::vector<Key>> Connection::list(std::string_view lock, const std::string& prefix,
                                               std::int64_t limit, const std::stop_token& stop) {
  etcdserverpb::RangeRequest request;
  request.set_key(prefix);
  request.set_range_end(end_of_prefix(prefix));
  request.set_limit(limit);
  request.set_sort_target(etcdserverpb::RangeRequest::CREATE);
  request.set_sort_order(etcdserverpb::RangeRequest::ASCEND);
  request.set_keys_only(true);
  etcdserverpb::RangeResponse response;
  const auto done = call(kRange, lock, stop, request, response);
  if (!done) return tl::unexpected(done.error());
  auto found = read_keys(request, response);
  if (!found) return not_understood("Range", "keys of the prefix");
  return *std::move(found);
}

StoreResult<std::optional<Key>> Connection::read(std::string_view lock, const std::string& key,
                                                 const std::stop_token& stop, bool here) {
  etcdserverpb::RangeRequest request;
  request.set_key(key);
  request.set_serializable(here);
  etcdserverpb::RangeResponse response;
  const auto done = call(kRange, lock, stop, request, response);
  if (!done) return tl::unexpected(done.error());
  auto found = read_keys(request, response);
  if (!found) return not_understood("Range", "the key");
  if (found->empty()) return std::nullopt;
  return std::move(found->front());
}

StoreResult<StoreFacts> Connection::facts() {
  const etcdserverpb::StatusRequest request;
  etcdserverpb::StatusResponse response;
  return call(kStatus, {}, {}, request, response).map([&](bool) {
    // A restart of the server ends the leader's term.
    return StoreFacts{.version = printable(response.version()),
                      .instance = fmt::format("term {}", response.raftterm())};
  });
}

grpc::Status Connection::watch(const Call& call, const std::string& watched, Duration longest,
                               bool& gone) {
  // Begins now: etcd delays the events of a watch that begins in the past by up to 100 ms.
  etcdserverpb::WatchRequest request;
  etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
  create.set_key(watched);
  create.add_filters(etcdserverpb::WatchCreateRequest::NOPUT);
  const Limits limits{call.stop};
  const std::unique_ptr<Stream> stream = link_->make_stream(kWatch.name, token_, longest);
  const auto answer = [&]() -> const etcdserverpb::WatchResponse& {
    return static_cast<const etcdserverpb::WatchResponse&>(stream->response());
  };
  bool open = stream->begin(limits) && stream->write(request, limits) && stream->read(limits) &&
              !answer().canceled();
  if (open) {
    // The key may have been deleted before the watch began. Read from the watched member, so the
    // state is not newer than the watch's first report. Looking may close the link.
    const auto there = read(call.lock, watched, call.stop, true);
    open = there.has_value();
    gone = there && !*there;
  }
  // Bounded by the deadline of the stream.
  while (open && !gone && (open = stream->read(limits))) {
    gone = answer().events_size() > 0 || answer().canceled();
  }
  return stream->finish();
}

StoreResult<bool> Connection::await_deletion(std::string_view lock, const std::string& watched,
                                             TimePoint until, const std::stop_token& stop) {
  if (auto connected = connect(stop); !connected) return tl::unexpected(connected.error());
  const Call call{"Watch", lock, stop};
  const CommandInfo info = info_of(call, true);
  if (env_.before_command(info) == CommandFate::drop) {
    env_.after_command(info, CommandEnd::lost);
    close();
    return fail(StoreError::Kind::not_sent, "the connection was cut");
  }
  bool gone = false;
  const grpc::Status status = watch(call, watched, until - env_.now(), gone);
  const Verdict verdict = verdict_of(status);
  const bool over = env_.now() >= until || stop.stop_requested() || verdict == Verdict::late;
  const CommandEnd end = gone   ? CommandEnd::answered
                         : over ? CommandEnd::in_vain
                                : CommandEnd::lost;
  const CommandFate fate = env_.after_command(info, end);
  if (gone && fate == CommandFate::proceed) return true;
  if (over && fate == CommandFate::proceed) return false;
  close();
  if (verdict == Verdict::logged_out) token_.clear();
  return fail(StoreError::Kind::unanswered, "a watch ended: " + status.error_message());
}

}  // namespace lockbench::etcd
