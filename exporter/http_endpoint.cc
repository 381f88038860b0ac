#include "exporter/http_endpoint.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <exception>
#include <list>
#include <utility>

namespace lockbench::exporter {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kIdleSeconds = 3;
// For a request line and headers; Prometheus sends about 300 bytes.
constexpr std::size_t kRequestBytes = 8192;

MHD_Result send(MHD_Connection* connection, const Page& page) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      page.body.size(), const_cast<char*>(page.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type.c_str());
  if (page.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(page.status), response);
  MHD_destroy_response(response);
  return queued;
}

class Daemon final : public HttpEndpoint {
 public:
  Daemon(ListenAddress address, Answer answer, std::size_t most, Clock::duration longest)
      : address_(std::move(address)),
        answer_(std::move(answer)),
        most_(most),
        longest_request_(longest) {}
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  const ListenAddress& address() const override { return address_; }

  /// Takes over the listening socket. False if no thread can be started.
  bool serve(int listener) {
    // Without MHD_USE_ERROR_LOG, as malformed requests do not concern the user.
    daemon_ = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, on_request, this,
                               MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
                               static_cast<unsigned>(most_), MHD_OPTION_CONNECTION_TIMEOUT,
                               kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestBytes,
                               MHD_OPTION_NOTIFY_CONNECTION, &on_connection, this, MHD_OPTION_END);
    return daemon_ != nullptr;
  }

 private:
  struct Open {
    MHD_Connection* connection = nullptr;
    int socket = -1;
    Clock::time_point since;  ///< of its start, or of its latest complete request
  };

  static MHD_Result on_request(void* daemon, MHD_Connection* connection, const char* path,
                               const char* method, const char* /*version*/, const char* /*body*/,
                               std::size_t* /*body_size*/, void** /*state*/) {
    const std::string_view verb = method;
    if (verb != MHD_HTTP_METHOD_GET && verb != MHD_HTTP_METHOD_HEAD) {
      return send(connection, {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "GET or HEAD\n"});
    }
    auto& self = *static_cast<Daemon*>(daemon);
    auto& open = self.open_;
    if (const auto one = std::ranges::find(open, connection, &Open::connection);
        one != open.end()) {
      one->since = Clock::now();
      open.splice(open.end(), open, one);
    }
    // An exception must not pass through the C library that calls this.
    try {
      return send(connection, self.answer_(path));
    } catch (const std::exception&) {
      return send(connection,
                  {.status = MHD_HTTP_INTERNAL_SERVER_ERROR, .body = "no memory for an answer\n"});
    }
  }

  static void on_connection(void* daemon, MHD_Connection* connection, void** /*state*/,
                            MHD_ConnectionNotificationCode what) {
    auto& self = *static_cast<Daemon*>(daemon);
    auto& open = self.open_;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      open.remove_if([&](const Open& one) { return one.connection == connection; });
      return;
    }
    const MHD_ConnectionInfo* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == nullptr) return;
    open.push_back({connection, info->connect_fd, Clock::now()});
    // Shuts the oldest connection if there are too many, and all with overdue requests, so that
    // slow clients cannot exhaust the limit. One place stays free: at the limit, the daemon would
    // accept no connection and not call this function.
    while (open.size() > 1 && (open.size() >= self.most_ ||
                               open.back().since - open.front().since > self.longest_request_)) {
      // The daemon, whose thread runs this, sees the end of the stream and closes it.
      ::shutdown(open.front().socket, SHUT_RDWR);
      open.pop_front();
    }
  }

  const ListenAddress address_;
  const Answer answer_;
  const std::size_t most_;  ///< most connections
  const Clock::duration longest_request_;
  std::list<Open> open_;  ///< the oldest first; used on the daemon's thread only
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace

tl::expected<std::unique_ptr<HttpEndpoint>, std::string> HttpEndpoint::start(
    ListenAddress address, Answer answer, unsigned connections,
    std::chrono::milliseconds longest_request) {
  const auto listener = listen_on(address);
  if (!listener) return tl::unexpected(listener.error());
  auto daemon =
      std::make_unique<Daemon>(std::move(address), std::move(answer), connections, longest_request);
  if (daemon->serve(*listener)) return daemon;
  return tl::unexpected(
      fmt::format("cannot serve on {}: no thread could be started", daemon->address().to_string()));
}

}  // namespace lockbench::exporter
