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

/// A real Prometheus of the test's own, on a free loopback port. Throws std::runtime_error if there
/// is none to be had.
class Prometheus {
 public:
  /// Scrapes that port of the loopback, as these jobs, and evaluates the rules in that folder.
  Prometheus(std::uint16_t scraped, const std::filesystem::path& rules,
             const std::vector<std::string>& jobs = {"lockbench", "lockbench-probe"});

  /// The answer of its HTTP interface, "data" alone; throws if it is an error.
  nlohmann::json get(const std::string& path) const;
  /// How many samples the expression had, not counting NaN, at each second of the last minute.
  std::size_t samples_of(const std::string& expression) const;
  /// Its value now, the sum over its series; nothing if it has none.
  std::optional<double> value_of(const std::string& expression) const;
  /// The values of its series now.
  std::vector<double> values_of(const std::string& expression) const;

 private:
  std::unique_ptr<testbed::Testbed> testbed_;
  std::unique_ptr<testbed::Server> server_;
};

}  // namespace lockbench::test
