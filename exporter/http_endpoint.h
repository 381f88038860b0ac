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

/// The connections of an endpoint, in the order in which they last asked for something. For one
/// thread.
class OpenConnections {
 public:
  OpenConnections(std::size_t most, std::chrono::milliseconds longest)
      : most_(most), longest_(longest) {}

  /// Makes room: shuts the oldest one if there are too many, and all whose request takes longer. So
  /// clients that drip bytes keep nobody out, however many they are.
  void add(MHD_Connection* connection, int socket);
  /// It has sent a whole request.
  void asked(MHD_Connection* connection);
  void remove(MHD_Connection* connection);

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    MHD_Connection* connection = nullptr;
    int socket = -1;
    Clock::time_point since;
  };

  std::list<Open>::iterator find(MHD_Connection* connection);
  void shut_oldest();

  const std::size_t most_;
  const std::chrono::milliseconds longest_;
  std::list<Open> open_;  ///< the oldest first
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
  Page answer(std::string_view path) const;
  OpenConnections& open() { return open_; }

 private:
  HttpEndpoint(ListenAddress address, Answer answer, OpenConnections open)
      : address_(std::move(address)), answer_(std::move(answer)), open_(std::move(open)) {}

  ListenAddress address_;
  Answer answer_;
  OpenConnections open_;  ///< used on the endpoint's thread only
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace lockbench::exporter
