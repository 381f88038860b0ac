#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "testbed/servers/server.h"

namespace lockbench::test {

/// A real Prometheus on a free loopback port. Throws std::runtime_error if it cannot be started.
class Prometheus {
 public:
  /// Scrapes that loopback port under these job names, and evaluates the rules in that folder.
  Prometheus(std::uint16_t scraped, const std::filesystem::path& rules,
             const std::vector<std::string>& jobs = {"lockbench", "lockbench-probe"});

  /// The "data" of an answer of its HTTP API; throws on an error.
  nlohmann::json get(const std::string& path) const;
  /// Number of samples of the expression, without NaN, over each second of the last minute.
  std::size_t samples_of(const std::string& expression) const;
  /// The present value, summed over its series; nothing if it has none.
  std::optional<double> value_of(const std::string& expression) const;
  /// The present values of its series.
  std::vector<double> values_of(const std::string& expression) const;

 private:
  std::unique_ptr<testbed::Testbed> testbed_;
  std::unique_ptr<testbed::Server> server_;
};

}  // namespace lockbench::test
