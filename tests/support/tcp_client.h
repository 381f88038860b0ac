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

  /// Throws std::runtime_error if nobody accepts it.
  explicit TcpClient(std::uint16_t port);
  TcpClient(const TcpClient&) = delete;
  TcpClient& operator=(const TcpClient&) = delete;
  ~TcpClient();

  /// How much of it went out before the receiver kept us waiting for that long, or was gone.
  std::size_t send(std::string_view text, std::chrono::milliseconds within = kPatience);
  /// Sends no more; the other direction stays open.
  void finish_sending();
  /// That many lines, or what has come of them in time.
  std::string lines(std::size_t count, std::chrono::milliseconds within = kPatience);
  /// All that comes until the other side ends the connection, or time is up.
  std::string rest(std::chrono::milliseconds within = kPatience);
  /// Reads and forgets until the other side ends the connection, or time is up.
  End end(std::chrono::milliseconds within = kPatience);
  /// The answer's first line to a command of one line; empty if there is none in time.
  std::string ask(const std::string& command, std::chrono::milliseconds within = kPatience);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// False when nothing came: the connection has ended, or time is up.
  bool read_some(TimePoint deadline);

  int fd_;
  std::string read_;
  End end_ = End::open;
};

struct HttpReply {
  int status = 0;  ///< 0: no answer
  std::string head, body;
};

/// GETs a path from the loopback; no answer within kPatience is none.
HttpReply http_get(std::uint16_t port, const std::string& path);

/// Of the first series on a page of metrics that begins like this; -1 if there is none.
double metric_on(const std::string& page, const std::string& series);

}  // namespace lockbench::test
