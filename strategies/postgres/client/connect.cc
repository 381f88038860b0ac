#include <libpq-fe.h>
#include <openssl/x509_vfy.h>
#include <poll.h>

#include <array>
#include <new>

#include "strategies/postgres/client/session.h"
#include "strategies/transport/library_tls.h"
#include "strategies/transport/tls_transport.h"

namespace lockbench::postgres {
namespace {

/// A host is looked up for its addresses only.
constexpr int kAnyPort = 1;

void ignore_notice(void* /*nothing*/, const char* /*message*/) {}

/// The first line of libpq's message.
std::string first_line(const char* message) {
  std::string_view line = message == nullptr ? "" : message;
  line = line.substr(0, line.find('\n'));
  // Cuts "connection to server at "127.0.0.1", port 5432 failed: ": our message names the server.
  constexpr std::string_view kFailed = " failed: ";
  const std::size_t failed = line.find(kFailed);
  if (line.starts_with("connection to server ") && failed != std::string_view::npos) {
    line.remove_prefix(failed + kFailed.size());
  }
  return line.empty() ? "the connection was closed" : std::string(line);
}

}  // namespace

tl::unexpected<StoreError> Session::broken(StoreError::Kind kind) const {
  return fail(kind, first_line(PQerrorMessage(connection_.get())));
}

StoreResult<void> Session::dial(Duration longest, const std::stop_token& stop) {
  watch_library_tls();
  // Replace the URL's host unless empty. Each address needs a name beside it.
  std::string hosts, addresses;
  if (!endpoint_.name.empty()) {
    const auto found = find_addresses(endpoint_.name, kAnyPort, longest, stop);
    if (!found) return tl::unexpected(found.error());
    for (const PeerAddress& address : *found) {
      const char* const comma = hosts.empty() ? "" : ",";
      hosts += comma + endpoint_.name;
      addresses += comma + address.display();
    }
  }
  // Those before the DSN are defaults. Without keepalives, a router that forgets idle connections
  // leaves a lock that is held for long to the server's, which may take hours: Linux sends the
  // first after two.
  const std::array names{"keepalives_idle",
                         "keepalives_interval",
                         "keepalives_count",
                         "dbname",
                         "host",
                         "hostaddr",
                         "fallback_application_name",
                         static_cast<const char*>(nullptr)};
  const std::array values{"60",          "10",
                          "3",           endpoint_.dsn.c_str(),
                          hosts.c_str(), addresses.c_str(),
                          "lockbench",   static_cast<const char*>(nullptr)};
  connection_.reset(PQconnectStartParams(names.data(), values.data(), 1));
  if (!connection_) throw std::bad_alloc();
  PQsetNoticeProcessor(connection_.get(), ignore_notice, nullptr);
  received_ = 0;
  return {};
}

StoreResult<void> Session::connect(const std::stop_token& caller_stop) {
  if (connection_) return {};
  // Cleaning up after a stop takes a connection too.
  const bool late = caller_stop.stop_requested();
  const Duration longest = late ? time_to_connect_after_stop(timeouts_) : timeouts_.answer;
  const std::stop_token stop = late ? std::stop_token() : caller_stop;
  const auto failed = [&](std::string_view why) -> StoreResult<void> {
    auto error = fail(StoreError::Kind::not_sent, why);
    connection_.reset();
    return error;
  };
  const TimePoint give_up_at = env_.now() + longest;
  if (auto dialled = dial(longest, stop); !dialled) return dialled;
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  long verdict = X509_V_OK;
  while (PQstatus(connection_.get()) != CONNECTION_BAD && status != PGRES_POLLING_OK &&
         status != PGRES_POLLING_FAILED) {
    if (stop.stop_requested()) return failed("stopped while connecting");
    const short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    pollfd ready{.fd = PQsocket(connection_.get()), .events = events, .revents = 0};
    if (!wait_for_socket(ready.fd, events, give_up_at, stop)) {
      return failed("no connection within " + format_duration(longest));
    }
    if (!takes_more(ready.fd)) return failed("the answer is too long");
    // PQconnectPoll blocks if the socket is not ready.
    if (poll(&ready, 1, 0) <= 0) continue;
    last_tls_verdict = X509_V_OK;
    status = PQconnectPoll(connection_.get());
    if (last_tls_verdict != X509_V_OK) verdict = last_tls_verdict;
  }
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    const std::string said = first_line(PQerrorMessage(connection_.get()));
    const bool refused = said.find("certificate verify failed") != std::string::npos;
    // libpq checks the name itself, and says so.
    return failed(refused && verdict != X509_V_OK ? untrusted(verdict, "this server", "sslrootcert")
                                                  : said);
  }
  PQsetnonblocking(connection_.get(), 1);
  return {};
}

}  // namespace lockbench::postgres
