#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "testbed/servers/ports.h"
#include "tests/support/eventually.h"

namespace lockbench::test {

/// A client of etcd's JSON gateway on a loopback port, logged in as one user. Throws
/// std::runtime_error if that user cannot log in.
class EtcdGateway {
 public:
  EtcdGateway(std::uint16_t port, std::string_view user, std::string_view password) : port_(port) {
    const std::string answer = ask(
        "/v3/auth/authenticate", fmt::format(R"({{"name":"{}","password":"{}"}})", user, password));
    constexpr std::string_view kToken = R"("token":")";
    const std::size_t begin = answer.find(kToken);
    if (begin == std::string::npos) throw std::runtime_error(answer);
    const std::size_t token = begin + kToken.size();
    token_ = answer.substr(token, answer.find('"', token) - token);
  }

  /// The whole answer, or the reason why there is none.
  std::string ask(std::string_view path, std::string_view body) const {
    const std::string authorization = token_.empty() ? "" : "Authorization: " + token_ + "\r\n";
    const auto answer = testbed::ask_until(
        port_,
        fmt::format("POST {} HTTP/1.0\r\nContent-Type: application/json\r\n{}Content-Length: "
                    "{}\r\n\r\n{}",
                    path, authorization, body.size(), body),
        kPatience, [](std::string_view) { return false; });
    return answer ? *answer : answer.error();
  }
  /// Throws std::runtime_error if the request fails.
  void must(const std::string& path, std::string_view body) const {
    const std::string answer = ask(path, body);
    if (answer.find(" 200 ") == std::string::npos) throw std::runtime_error(path + ": " + answer);
  }

 private:
  const std::uint16_t port_;
  std::string token_;
};

}  // namespace lockbench::test
