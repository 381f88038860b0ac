#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "exporter/addresses.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace lockbench::exporter {

struct Page {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body{};
};

/// Serves pages for GET and HEAD on its own thread. Connections use neither further threads nor
/// more than a fixed amount of memory, whatever they send. Those that are idle for a few seconds
/// are closed, as are those that take longer for a request when others come.
class HttpEndpoint {
 public:
  /// Called on the endpoint's thread, with the path alone. If it throws, the answer is status 500.
  using Answer = std::function<Page(std::string_view path)>;

  /// `connections`: how many at most; for one more the oldest is closed. The error names the
  /// address.
  static tl::expected<std::unique_ptr<HttpEndpoint>, std::string> start(
      ListenAddress address, Answer answer, unsigned connections,
      std::chrono::milliseconds longest_request = std::chrono::seconds(5));
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;
  /// Closes every connection.
  ~HttpEndpoint();

  const ListenAddress& address() const { return address_; }

 private:
  friend struct Daemon;  ///< what the library calls, on the endpoint's thread
  using Clock = std::chrono::steady_clock;
  struct Open {
    MHD_Connection* connection = nullptr;
    int socket = -1;
    Clock::time_point since;  ///< it came, or has last sent a whole request
  };

  HttpEndpoint(ListenAddress address, Answer answer, std::size_t most, Clock::duration longest)
      : address_(std::move(address)),
        answer_(std::move(answer)),
        most_(most),
        longest_request_(longest) {}

  ListenAddress address_;
  const Answer answer_;
  const std::size_t most_;  ///< connections
  const Clock::duration longest_request_;
  std::list<Open> open_;  ///< the oldest first; used on the endpoint's thread only
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace lockbench::exporter
