#include "strategies/nats/client/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "strategies/carrier.h"
#include "strategies/transport/tls_transport.h"

namespace lockbench::nats {
namespace {

using Kind = StoreError::Kind;

/// A server closes a connection that has left two PINGs unanswered, by default after 4 minutes. A
/// client reads none between its requests.
constexpr std::chrono::seconds kLongestIdle{60};

/// Messages that may come before the expected one: PING, +OK, a cluster's new INFO.
constexpr int kMostBefore = 100;
/// Messages of consumers that may come before an answer.
constexpr std::size_t kMostHeard = 1'000'000;

Duration left_until(TimePoint end) {
  return std::max(end - Carrier::current().now(), Duration::zero());
}

std::string login_of(const Endpoint& endpoint) {
  nlohmann::json login{
      {"verbose", false},       {"pedantic", false},   {"headers", true},
      {"no_responders", true},  {"name", "lockbench"}, {"lang", "cpp"},
      {"version", "lockbench"}, {"protocol", 0},       {"tls_required", endpoint.tls != nullptr}};
  if (!endpoint.password.empty()) {
    login["user"] = endpoint.user;
    login["pass"] = endpoint.password;
  }
  return login.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Without the server's words, which may repeat the password.
std::string_view refusal_of(std::string_view error) {
  if (error.find("Authorization") != std::string_view::npos) return "authentication was refused";
  if (error.find("Permissions Violation") != std::string_view::npos) {
    return "no permission to subscribe to _INBOX.>";
  }
  constexpr std::string_view kFull = "maximum connections exceeded";
  if (error.find(kFull) != std::string_view::npos) return kFull;
  return "the login was refused";
}

}  // namespace

tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text) {
  const UrlForm form{.what = "the address of a NATS server",
                     .allowed =
                         "[nats://][user:password@]HOST[:PORT], or tls:// for TLS, with "
                         "?cacert=FILE and other settings",
                     .schemes = {"", "nats", "tls"},
                     .default_port = 4222,
                     .login = UrlForm::Login::user_password,
                     .tls = text.starts_with("tls://")};
  auto url = parse_url(text, form);
  if (!url) return url;
  if (url->path == "/") url->path.clear();
  if (!url->path.empty()) return invalid_url("a path is not allowed", form);
  return url;
}

Connection::Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeouts_(timeouts),
      env_(env) {}

StoreResult<void> Connection::connect(const std::stop_token& stop) {
  const TimePoint now = Carrier::current().now();
  if (transport_ && now - used_at_ > kLongestIdle) close();
  if (transport_) return {};
  if (env_.before_command(info("CONNECT", {})) == CommandFate::drop) {
    env_.after_command(info("CONNECT", {}), CommandEnd::lost);
    return fail(Kind::not_sent, "the connection was cut");
  }
  const TimePoint end = now + timeouts_.answer;
  auto connected = before_request(open(stop, end).and_then([&] { return log_in(stop, end); }));
  env_.after_command(info("CONNECT", {}), connected ? CommandEnd::answered : CommandEnd::lost);
  if (!connected) close();
  return connected;
}

/// The server speaks first, and without TLS.
StoreResult<void> Connection::open(const std::stop_token& stop, TimePoint end) {
  const HostPort& host = endpoint_.hosts.front();
  auto transport = connect_socket({.host = host.host, .port = host.port}, timeouts_, stop);
  if (!transport) return fail(Kind::not_sent, transport.error());
  transport_ = *std::move(transport);
  received_.clear();
  heard_.clear();
  const auto first = next(Message::Kind::info, stop, end);
  if (!first) return tl::unexpected(first.error());
  const auto server =
      first->kind == Message::Kind::info ? parse_info(first->text) : std::optional<ServerInfo>();
  if (!server) return fail(Kind::not_sent, "it does not begin with the INFO of a NATS server");
  server_ = *server;
  if (endpoint_.tls) return secure(stop, end);
  if (server_.requires_tls) return fail(Kind::not_sent, "the server requires TLS: use tls://");
  return {};
}

StoreResult<void> Connection::secure(const std::stop_token& stop, TimePoint end) {
  if (!server_.tls) return fail(Kind::not_sent, "the server does not speak TLS");
  // Somebody else may have sent them: TLS has not begun.
  if (!received_.empty()) return fail(Kind::not_sent, "it sent more than its INFO before TLS");
  auto context = TlsContext::share(*endpoint_.tls);
  if (!context) return fail(Kind::not_sent, context.error());
  auto tls =
      TlsTransport::make(std::move(transport_), *std::move(context), endpoint_.hosts.front().host);
  if (!tls) return fail(Kind::not_sent, tls.error());
  const auto done = (*tls)->shake_hands(left_until(end), stop);
  if (!done) return fail(Kind::not_sent, done.error());
  if (!*done) {
    return fail(Kind::not_sent, stop.stop_requested() ? "stopped while connecting"
                                                      : "no answer to the TLS handshake");
  }
  transport_ = *std::move(tls);
  return {};
}

/// Also subscribes to the answers of this connection's requests.
StoreResult<void> Connection::log_in(const std::stop_token& stop, TimePoint end) {
  inbox_ = fmt::format("_INBOX.lockbench-{}.", random_token(env_));
  hears_ = false;
  auto sent =
      send(fmt::format("CONNECT {}\r\nSUB {}* 1\r\nPING\r\n", login_of(endpoint_), inbox_), end);
  if (!sent) return sent;
  const auto answer = next(Message::Kind::pong, stop, end);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->kind == Message::Kind::error) return fail(Kind::rejected, refusal_of(answer->text));
  if (answer->kind != Message::Kind::pong) {
    return fail(Kind::unanswered, "unexpected answer to the login");
  }
  used_at_ = Carrier::current().now();
  return {};
}

StoreResult<Answer> Connection::ask(const Request& request, const std::stop_token& stop) {
  const CommandInfo command = info(request.name, request.key);
  StoreResult<Answer> answer = fail(Kind::not_sent, "the connection was cut");
  if (env_.before_command(command) != CommandFate::drop) {
    answer = connect(stop).and_then([&] { return exchange(request, stop); });
  }
  const bool answered = answer || answer.error().kind == Kind::rejected;
  const bool dropped =
      env_.after_command(command, answered ? CommandEnd::answered : CommandEnd::lost) ==
      CommandFate::drop;
  if (!answer || dropped) close();
  if (answered && dropped) return fail(Kind::unanswered, "the answer was lost");
  return answer;
}

StoreResult<std::string> Connection::heard_subject() {
  // A consumer sends nothing while only a wildcard fits its subject, so that of answers must not.
  const std::string subject = inbox_ + "heard.all";
  if (!std::exchange(hears_, true)) {
    const auto sent =
        send(fmt::format("SUB {} 2\r\n", subject), Carrier::current().now() + timeouts_.answer);
    if (!sent) return tl::unexpected(sent.error());
  }
  return subject;
}

StoreResult<Answer> Connection::exchange(const Request& request, const std::stop_token& stop) {
  const TimePoint end = Carrier::current().now() + timeouts_.answer;
  const std::string inbox = inbox_ + std::to_string(++asked_);
  const std::string headers = fmt::format("NATS/1.0\r\n{}\r\n", request.headers);
  const auto sent =
      send(fmt::format("HPUB {} {} {} {}\r\n{}{}\r\n", request.subject, inbox, headers.size(),
                       headers.size() + request.payload.size(), headers, request.payload),
           end);
  if (!sent) return tl::unexpected(sent.error());
  auto answer = next(Message::Kind::payload, stop, end);
  for (; hears_ && answer && parse_delivery(answer->reply);
       answer = next(Message::Kind::payload, stop, end)) {
    if (heard_.size() == kMostHeard) return fail(Kind::unanswered, "too many messages before it");
    heard_.push_back(*std::move(answer));
  }
  if (!answer) return tl::unexpected(answer.error());
  if (answer->kind == Message::Kind::error) {
    // All other errors end the connection, and it is not known what went before.
    const bool denied = answer->text.find("Permissions Violation for Publish") != std::string::npos;
    return fail(denied ? Kind::rejected : Kind::unanswered, answer->text);
  }
  if (answer->subject != inbox) return fail(Kind::unanswered, "an answer that nobody asked for");
  used_at_ = Carrier::current().now();
  if (answer->headers.starts_with("NATS/1.0 503")) {
    auto unserved = fail(
        Kind::rejected,
        fmt::format("nobody serves {}: is JetStream enabled for this account?", request.subject));
    unserved.value().code = StoreError::Code::try_again;  // perhaps it is being made
    return unserved;
  }
  auto parsed = parse_answer(answer->text);
  if (!parsed) return fail(Kind::unanswered, parsed.error());
  return *std::move(parsed);
}

StoreResult<void> Connection::send(std::string_view bytes, TimePoint end) {
  const Transport::Status sent = transport_->send(bytes, left_until(end));
  if (sent == Transport::Status::ok) return {};
  return fail(Kind::unanswered, describe(sent, timeouts_, transport_.get()));
}

StoreResult<std::optional<Message>> Connection::hear(Duration longest,
                                                     const std::stop_token& stop) {
  if (!heard_.empty()) {
    auto first = std::optional(std::move(heard_.front()));
    heard_.pop_front();
    return first;
  }
  if (!transport_) return fail(Kind::not_sent, "the connection was lost");
  auto heard = await(Message::Kind::payload, stop, Carrier::current().now() + longest);
  if (!heard) close();
  return heard;
}

StoreResult<Message> Connection::next(Message::Kind wanted, const std::stop_token& stop,
                                      TimePoint end) {
  auto message = await(wanted, stop, end);
  if (!message) return tl::unexpected(message.error());
  if (*message) return **std::move(message);
  const bool stopped = stop.stop_requested();
  const auto status = stopped ? Transport::Status::stopped : Transport::Status::timed_out;
  return fail(Kind::unanswered, describe(status, timeouts_));
}

StoreResult<std::optional<Message>> Connection::await(Message::Kind wanted,
                                                      const std::stop_token& stop, TimePoint end) {
  using Form = Message::Kind;
  std::array<char, 1024> buffer;  // on the stack of each fiber that waits
  for (int before = 0; before < kMostBefore;) {
    auto parsed = parse_message(received_);
    if (!parsed) return fail(Kind::unanswered, parsed.error());
    if (*parsed) {
      Message message = **std::move(parsed);
      received_.erase(0, message.size);
      const bool counts = message.kind == Form::error || message.kind == Form::payload;
      if (counts || message.kind == wanted) return message;
      ++before;
      if (message.kind != Form::ping) continue;
      if (const auto sent = send("PONG\r\n", end); !sent) return tl::unexpected(sent.error());
      continue;
    }
    const auto got = transport_->receive(buffer, left_until(end), stop);
    if (got.status == Transport::Status::closed) {
      return fail(Kind::unanswered, describe(got.status, timeouts_, transport_.get()));
    }
    if (got.status != Transport::Status::ok) return std::nullopt;
    received_.append(buffer.data(), got.bytes);
  }
  return fail(Kind::unanswered, "too many other messages before the expected one");
}

}  // namespace lockbench::nats
