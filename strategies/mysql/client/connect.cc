#include <errmsg.h>
#include <fcntl.h>
#include <mysql.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "strategies/mysql/client/session.h"
#include "strategies/transport/library_tls.h"
#include "strategies/transport/socket.h"
#include "strategies/transport/tls_transport.h"

namespace lockbench::mysql {
namespace {

void set_up_library() {
  [[maybe_unused]] static const int done = mysql_library_init(0, nullptr, nullptr);
  watch_library_tls();
}

/// Without these, a router that forgets idle connections leaves a lock that is held for long to the
/// server's, which may take hours: Linux sends the first after two.
void send_keepalives(int descriptor) {
  for (const auto& [option, value] :
       {std::pair(TCP_KEEPIDLE, 60), std::pair(TCP_KEEPINTVL, 10), std::pair(TCP_KEEPCNT, 3)}) {
    setsockopt(descriptor, IPPROTO_TCP, option, &value, sizeof value);
  }
}

/// The library reads and writes TLS with calls that block unless the socket does not, and makes it
/// blocking again while it connects: then a call lasts a moment at most.
void limit_blocking(int descriptor, bool connected) {
  const timeval moment{.tv_sec = 0, .tv_usec = 1000};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof moment);
  if (connected) fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

}  // namespace

void Session::Close::operator()(st_mysql* connection) const noexcept {
  // Says goodbye to the server, but does not wait for it.
  const int descriptor = mysql_get_socket(connection);
  if (mysql_close_start(connection) == 0) return;
  shutdown(descriptor, SHUT_RDWR);
  constexpr int kSteps = 10;
  for (int step = 0; step < kSteps; ++step) {
    if (mysql_close_cont(connection, MYSQL_WAIT_TIMEOUT) == 0) return;
  }
}

Session::Connection Session::make_connection() const {
  set_up_library();
  Connection made(mysql_init(nullptr));
  if (!made) throw std::bad_alloc();
  st_mysql* const library = made.get();
  mysql_options(library, MYSQL_OPT_NONBLOCK, nullptr);
  // A server must not decide how much memory a client uses.
  const std::size_t longest = std::size_t{1} << 20;
  mysql_options(library, MYSQL_OPT_MAX_ALLOWED_PACKET, &longest);
  const unsigned no = 0;
  mysql_options(library, MYSQL_OPT_LOCAL_INFILE, &no);
  // Also refuses a server without TLS; Connector/C 3.4 and newer do so by default.
  const my_bool verify = endpoint_.tls ? 1 : 0;
  mysql_options(library, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
  if (!endpoint_.tls) return made;
  const auto file = [](const std::string& path) { return path.empty() ? nullptr : path.c_str(); };
  const TlsSettings& tls = *endpoint_.tls;
  const my_bool yes = 1;
  mysql_ssl_set(library, file(tls.key_file), file(tls.certificate_file), file(tls.ca_file), nullptr,
                nullptr);
  mysql_options(library, MYSQL_OPT_SSL_ENFORCE, &yes);
  mysql_options(library, MARIADB_OPT_TLS_VERSION, tls.only_1_3 ? "TLSv1.3" : "TLSv1.2,TLSv1.3");
  return made;
}

StoreResult<void> Session::finish(int events, const Continue& go_on, const Await& await) {
  // Bounded by `await`.
  while (events != 0) {
    const short wanted = static_cast<short>(((events & MYSQL_WAIT_READ) != 0 ? POLLIN : 0) |
                                            ((events & MYSQL_WAIT_WRITE) != 0 ? POLLOUT : 0));
    pollfd ready{.fd = mysql_get_socket(connection_.get()), .events = wanted, .revents = 0};
    if (auto waited = await(ready.fd, wanted); !waited) {
      // The library frees what the call uses only if the call returns.
      constexpr int kSteps = 10;
      for (int step = 0; step < kSteps && events != 0; ++step) events = go_on(MYSQL_WAIT_TIMEOUT);
      return waited;
    }
    // The library takes an event for granted.
    if (poll(&ready, 1, 0) <= 0) continue;
    const bool ended = (ready.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    const int in = ended || (ready.revents & POLLIN) != 0 ? MYSQL_WAIT_READ : 0;
    const int out = ended || (ready.revents & POLLOUT) != 0 ? MYSQL_WAIT_WRITE : 0;
    events = go_on((in | out) & events);
  }
  return {};
}

std::string Session::why_not_connected() const {
  const std::string said = mysql_error(connection_.get());
  if (mysql_errno(connection_.get()) == CR_SSL_CONNECTION_ERROR && endpoint_.tls) {
    if (said.find("does not support") != std::string::npos) return "the server does not speak TLS";
    if (said.find("Validation of SSL server certificate") != std::string::npos) {
      return untrusted(X509_V_ERR_HOSTNAME_MISMATCH, server_name_);
    }
    if (last_tls_verdict != X509_V_OK) return untrusted(last_tls_verdict, server_name_);
  }
  return said.empty() ? "the connection was closed" : said;
}

StoreResult<void> Session::connect_to(const std::string& address, TimePoint give_up_at,
                                      const std::stop_token& stop) {
  connection_ = make_connection();
  st_mysql* const library = connection_.get();
  received_ = 0;
  last_tls_verdict = X509_V_OK;
  // The library connects to the address, as looking up a name would block, and would check that the
  // certificate is for it.
  const std::function<void()> name_the_server = [&] {
    std::free(library->host);
    library->host = strdup(server_name_.c_str());
  };
  const auto watched = [&](const auto& call) {
    on_tls_session = &name_the_server;
    const int events = call();
    on_tls_session = nullptr;
    return events;
  };
  st_mysql* done = nullptr;
  const int first = watched([&] {
    return mysql_real_connect_start(&done, library, address.c_str(), endpoint_.user.c_str(),
                                    endpoint_.password.c_str(), nullptr,
                                    endpoint_.hosts.front().port, nullptr, CLIENT_MULTI_STATEMENTS);
  });
  if (first != 0) limit_blocking(mysql_get_socket(library), false);
  auto finished = finish(
      first,
      [&](int occurred) {
        return watched([&] { return mysql_real_connect_cont(&done, library, occurred); });
      },
      [&](int descriptor, short events) -> StoreResult<void> {
        if (stop.stop_requested()) {
          return fail(StoreError::Kind::not_sent, "stopped while connecting");
        }
        if (!wait_for_socket(descriptor, events, give_up_at, stop)) {
          return fail(StoreError::Kind::not_sent,
                      "no connection within " + format_duration(timeouts_));
        }
        if (takes_more(descriptor)) return {};
        return fail(StoreError::Kind::not_sent, "the answer is too long");
      });
  if (!finished) return finished;
  if (done == nullptr) return fail(StoreError::Kind::not_sent, why_not_connected());
  if (version().find("MariaDB") == std::string::npos) {
    return fail(StoreError::Kind::not_sent,
                "it is not MariaDB: fencing numbers need its sequences");
  }
  limit_blocking(mysql_get_socket(library), true);
  send_keepalives(mysql_get_socket(library));
  return {};
}

StoreResult<void> Session::override_defaults(const std::stop_token& stop) {
  // An sql_mode may change what an assignment in an UPDATE sees, and what BEGIN means.
  static const Statement own{.name = "SET SESSION",
                             .sql =
                                 "SET SESSION sql_mode = "
                                 "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1, "
                                 "completion_type = 0",
                             .how = Statement::How::once};
  const auto set = before_request(exchange(own, {}, {}, {.wait_until = {}, .stop = stop}));
  if (!set) return tl::unexpected(set.error());
  if (!set->done()) return fail(StoreError::Kind::not_sent, "SET SESSION was not carried out");
  return {};
}

StoreResult<void> Session::connect(const std::stop_token& caller_stop) {
  if (connection_) return {};
  // Cleaning up after a stop takes a connection too.
  const bool late = caller_stop.stop_requested();
  const Duration longest = late ? time_to_connect_after_stop(timeouts_) : timeouts_.answer;
  const std::stop_token stop = late ? std::stop_token() : caller_stop;
  const TimePoint give_up_at = env_.now() + longest;
  const HostPort& host = endpoint_.hosts.front();
  const auto found = find_addresses(host.host, host.port, longest, stop);
  if (!found) return tl::unexpected(found.error());
  StoreResult<void> connected = fail(StoreError::Kind::not_sent, "its name has no address");
  const std::vector<PeerAddress>& addresses = *found;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto left = static_cast<Duration::rep>(addresses.size() - i);
    const TimePoint now = env_.now();
    connected = connect_to(addresses[i].display(), now + (give_up_at - now) / left, stop);
    if (connected) connected = override_defaults(caller_stop);
    if (connected) return {};
    const unsigned code = mysql_errno(connection_.get());
    connection_.reset();
    const bool answered = code != 0 && code < CR_MIN_ERROR;
    if (answered || stop.stop_requested()) break;
  }
  return connected;
}

}  // namespace lockbench::mysql
