#include "testbed/servers/etcd_auth.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <thread>

#include "testbed/servers/ports.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using Answer = tl::expected<std::string, std::string>;

/// What etcd's gateway from HTTP to its API answers.
Answer post(const fs::path& socket, std::string_view method, std::string_view body) {
  const std::string request = fmt::format(
      "POST /v3/auth/{} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      method, body.size(), body);
  const auto until_it_closes = [](std::string_view) { return false; };
  return ask_until(socket, request, std::chrono::seconds(3), until_it_closes);
}

/// A cluster may just be electing another leader, and what was not answered may have been done.
bool done(const Answer& answer) {
  return answer && (answer->find(" 200 ") < answer->find('\n') ||
                    answer->find("already exists") != std::string::npos);
}

}  // namespace

tl::expected<void, std::string> enable_etcd_auth(const fs::path& socket,
                                                 const std::string& secret) {
  constexpr std::chrono::seconds kPatience{10};
  constexpr std::chrono::milliseconds kPause{50};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const std::array<std::array<std::string, 2>, 3> steps{
      {{"user/add", fmt::format(R"({{"name":"{}","password":"{}"}})", kEtcdRoot, secret)},
       {"user/grant", fmt::format(R"({{"user":"{0}","role":"{0}"}})", kEtcdRoot)},
       {"enable", "{}"}}};
  for (const auto& [method, body] : steps) {
    Answer answer = post(socket, method, body);
    while (!done(answer)) {
      if (std::chrono::steady_clock::now() > deadline) {
        return tl::unexpected(fmt::format("etcd: authentication cannot be enabled: {}: {}", method,
                                          answer ? *answer : answer.error()));
      }
      std::this_thread::sleep_for(kPause);
      answer = post(socket, method, body);
    }
  }
  return {};
}

}  // namespace lockbench::testbed
