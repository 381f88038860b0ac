#pragma once

#include <cstdint>
#include <string>

namespace lockbench::test {

struct HttpReply {
  int status = 0;  ///< 0: no answer
  std::string head, body;
};

/// GETs a path from the loopback.
HttpReply http_get(std::uint16_t port, const std::string& path);

/// Of the first series on a page of metrics that begins like this; -1 if there is none.
double metric_on(const std::string& page, const std::string& series);

/// One connection to the loopback, over which anything can be sent.
class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port);
  RawConnection(RawConnection&& other) noexcept : socket_(other.socket_) { other.socket_ = -1; }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection();

  bool connected() const { return socket_ >= 0; }
  void send(const std::string& bytes) const;
  /// All that comes until the other side closes.
  std::string receive_all() const;

 private:
  int socket_ = -1;
};

}  // namespace lockbench::test
