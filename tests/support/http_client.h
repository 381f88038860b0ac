#pragma once

#include <cstdint>
#include <string>

namespace lockbench::test {

struct HttpReply {
  int status = 0;  ///< 0: no answer
  std::string head, body;
};

/// GETs a path from the loopback; no answer within kPatience is none.
HttpReply http_get(std::uint16_t port, const std::string& path);

/// Of the first series on a page of metrics that begins like this; -1 if there is none.
double metric_on(const std::string& page, const std::string& series);

}  // namespace lockbench::test
