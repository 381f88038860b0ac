#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/support/eventually.h"

namespace lockbench::test {

/// A plain TCP connection to a loopback port. For one thread.
class TcpClient {
 public:
  enum class End { open, closed, reset };

  /// Throws std::runtime_error if the connection is not accepted.
  explicit TcpClient(std::uint16_t port);
  TcpClient(const TcpClient&) = delete;
  TcpClient& operator=(const TcpClient&) = delete;
  ~TcpClient();

  /// Bytes sent before the receiver stalled for that long, or was gone.
  std::size_t send(std::string_view text, std::chrono::milliseconds within = kPatience);
  /// Sends no more; the other direction stays open.
  void finish_sending();
  /// That many lines, or as much of them as came in time.
  std::string lines(std::size_t count, std::chrono::milliseconds within = kPatience);
  /// Everything until the other side ends the connection, or time is up.
  std::string rest(std::chrono::milliseconds within = kPatience);
  /// Discards everything until the other side ends the connection, or time is up.
  End end(std::chrono::milliseconds within = kPatience);
  /// The first line of the answer to a one-line command; empty if none comes in time.
  std::string ask(const std::string& command, std::chrono::milliseconds within = kPatience);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// False if nothing came: the connection has ended, or time is up.
  bool read_some(TimePoint deadline);

  int fd_;
  std::string read_;
  End end_ = End::open;
};

struct HttpReply {
  int status = 0;  ///< 0: no answer
  std::string head, body;
};

/// GETs a path from the loopback. Status 0 if there is no answer within kPatience.
HttpReply http_get(std::uint16_t port, const std::string& path);

/// The value of the first series on a metrics page that begins like this; -1 if there is none.
double metric_on(const std::string& page, const std::string& series);

}  // namespace lockbench::test
