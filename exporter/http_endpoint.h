#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "exporter/listen_address.h"

struct MHD_Daemon;

namespace lockbench::exporter {

struct Page {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
};

/// Serves pages for GET and HEAD on its own thread. Connections use neither further threads nor
/// more than a fixed amount of memory, whatever they send; idle ones are closed after a few
/// seconds.
class HttpEndpoint {
 public:
  /// Called on the endpoint's thread, with the path alone; must not throw.
  using Answer = std::function<Page(std::string_view path)>;

  /// `connections`: how many at most. The error names the address.
  static tl::expected<std::unique_ptr<HttpEndpoint>, std::string> start(ListenAddress address,
                                                                        Answer answer,
                                                                        unsigned connections);
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;
  /// Closes every connection.
  ~HttpEndpoint();

  const ListenAddress& address() const { return address_; }
  Page answer(std::string_view path) const { return answer_(path); }

 private:
  HttpEndpoint(ListenAddress address, Answer answer)
      : address_(std::move(address)), answer_(std::move(answer)) {}

  ListenAddress address_;
  Answer answer_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace lockbench::exporter
