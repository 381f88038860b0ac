#include "exporter/http_endpoint.h"

#include <fmt/format.h>
#include <microhttpd.h>

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

MHD_Result on_request(void* endpoint, MHD_Connection* connection, const char* path,
                      const char* method, const char* /*version*/, const char* /*body*/,
                      std::size_t* /*body_size*/, void** /*state*/) {
  const std::string_view verb = method;
  if (verb != MHD_HTTP_METHOD_GET && verb != MHD_HTTP_METHOD_HEAD) {
    return send(connection, {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "GET or HEAD\n"});
  }
  return send(connection, static_cast<HttpEndpoint*>(endpoint)->answer(path));
}

}  // namespace

tl::expected<std::unique_ptr<HttpEndpoint>, std::string> HttpEndpoint::start(ListenAddress address,
                                                                             Answer answer,
                                                                             unsigned connections) {
  const auto listener = listen_on(address);
  if (!listener) return tl::unexpected(listener.error());
  std::unique_ptr<HttpEndpoint> endpoint(new HttpEndpoint(std::move(address), std::move(answer)));
  // Without MHD_USE_ERROR_LOG: malformed requests need not concern the user. The daemon owns the
  // listening socket from here on.
  endpoint->daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, on_request, endpoint.get(),
      MHD_OPTION_LISTEN_SOCKET, *listener, MHD_OPTION_CONNECTION_LIMIT, connections,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kRequestBytes, MHD_OPTION_END);
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
