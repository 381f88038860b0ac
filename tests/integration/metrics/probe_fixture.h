#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <sstream>
#include <stdexcept>

#include "testbed/servers/ports.h"
#include "tests/folders.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"
#include "tests/support/tcp_client.h"

namespace lockbench::test {

/// The probe's arguments in the systemd unit, without files and addresses.
inline std::vector<std::string> arguments_of_the_unit() {
  for (const std::string& line :
       lines_of(read_file(LOCKBENCH_SOURCE_DIR "/exporter/lockbench-probe.service"))) {
    if (!line.starts_with("ExecStart=")) continue;
    std::vector<std::string> words;
    std::istringstream text(line);
    for (std::string word; text >> word;) words.push_back(word);
    std::vector<std::string> kept;
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i] == "--config" || words[i] == "--metrics-listen") {
        ++i;
      } else {
        kept.push_back(words[i]);
      }
    }
    return kept;
  }
  throw std::runtime_error("the unit has no ExecStart");
}

/// A probe with its own Redis, which tests may break.
class ProbeTest : public testing::Test {
 protected:
  ProbeTest() {
    testbed::RedisOptions options;
    options.durable = false;
    redis_ = own_redis(options);
  }

  std::unique_ptr<Program> probe(std::vector<std::string> arguments, const Setting& setting = {}) {
    arguments.insert(arguments.begin(), "probe");
    arguments.insert(arguments.end(), {"--redis", redis_->url(), "--store-timeout", "10s",
                                       "--metrics-listen", std::to_string(port_)});
    return std::make_unique<Program>(scratch_, arguments, setting);
  }

  HttpReply page(const std::string& path) const { return http_get(port_, path); }

  /// The value of the first series that begins like this; -1 if there is none.
  double metric(const std::string& series) const {
    return metric_on(page("/metrics").body, series);
  }
  /// Number of sections with that outcome.
  double sections(const std::string& outcome) const {
    return metric(fmt::format(
        "lockbench_sections_total{{strategy=\"redis-set-nx-lua\",backend=\"redis\",outcome=\"{}\"",
        outcome));
  }
  double troubles() const { return sections("failed") + sections("unknown"); }
  bool works_on() const {
    const double before = sections("acquired");
    return eventually([&] { return sections("acquired") > before; });
  }

  Scratch scratch_;
  std::unique_ptr<testbed::Server> redis_;
  const std::uint16_t port_ = testbed::free_loopback_port().value();
};

}  // namespace lockbench::test
