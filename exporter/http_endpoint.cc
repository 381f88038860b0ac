#include "exporter/http_endpoint.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace lockbench::exporter {
namespace {

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

}  // namespace

struct Daemon {
  static MHD_Result on_request(void* endpoint, MHD_Connection* connection, const char* path,
                               const char* method, const char* /*version*/, const char* /*body*/,
                               std::size_t* /*body_size*/, void** /*state*/) {
    const std::string_view verb = method;
    if (verb != MHD_HTTP_METHOD_GET && verb != MHD_HTTP_METHOD_HEAD) {
      return send(connection, {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "GET or HEAD\n"});
    }
    auto& self = *static_cast<HttpEndpoint*>(endpoint);
    if (const auto one = find(self, connection); one != self.open_.end()) {
      one->since = HttpEndpoint::Clock::now();
      self.open_.splice(self.open_.end(), self.open_, one);
    }
    // An exception must not pass through the C library that calls this.
    try {
      return send(connection, self.answer_(path));
    } catch (const std::exception&) {
      return send(connection,
                  {.status = MHD_HTTP_INTERNAL_SERVER_ERROR, .body = "no memory for an answer\n"});
    }
  }

  static void on_connection(void* endpoint, MHD_Connection* connection, void** /*state*/,
                            MHD_ConnectionNotificationCode what) {
    auto& self = *static_cast<HttpEndpoint*>(endpoint);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      if (const auto one = find(self, connection); one != self.open_.end()) self.open_.erase(one);
      return;
    }
    const MHD_ConnectionInfo* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == nullptr) return;
    auto& open = self.open_;
    open.push_back({connection, info->connect_fd, HttpEndpoint::Clock::now()});
    // Shuts the oldest one if there are too many, and all whose request takes longer, so that slow
    // clients cannot exhaust the limit. One place stays free: at the limit no connection would be
    // let in, and so none be shut.
    while (open.size() > 1 && (open.size() >= self.most_ ||
                               open.back().since - open.front().since > self.longest_request_)) {
      // The daemon, on whose thread this is, sees the end of the stream and closes it.
      ::shutdown(open.front().socket, SHUT_RDWR);
      open.pop_front();
    }
  }

 private:
  static std::list<HttpEndpoint::Open>::iterator find(HttpEndpoint& self, MHD_Connection* wanted) {
    return std::ranges::find(self.open_, wanted, &HttpEndpoint::Open::connection);
  }
};

tl::expected<std::unique_ptr<HttpEndpoint>, std::string> HttpEndpoint::start(
    ListenAddress address, Answer answer, unsigned connections,
    std::chrono::milliseconds longest_request) {
  const auto listener = listen_on(address);
  if (!listener) return tl::unexpected(listener.error());
  std::unique_ptr<HttpEndpoint> endpoint(
      new HttpEndpoint(std::move(address), std::move(answer), connections, longest_request));
  // Without MHD_USE_ERROR_LOG: malformed requests need not concern the user. The daemon owns the
  // listening socket from here on.
  endpoint->daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, Daemon::on_request, endpoint.get(),
      MHD_OPTION_LISTEN_SOCKET, *listener, MHD_OPTION_CONNECTION_LIMIT, connections,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kRequestBytes, MHD_OPTION_NOTIFY_CONNECTION, &Daemon::on_connection, endpoint.get(),
      MHD_OPTION_END);
  if (endpoint->daemon_ == nullptr) {
    return tl::unexpected(fmt::format("cannot serve on {}: no thread could be started",
                                      endpoint->address_.to_string()));
  }
  return endpoint;
}

HttpEndpoint::~HttpEndpoint() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

}  // namespace lockbench::exporter
