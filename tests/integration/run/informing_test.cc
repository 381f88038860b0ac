#include <gtest/gtest.h>

#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"

namespace lockbench::test {
namespace {

Setting without_programs() { return {.environment = {{"PATH", "/nonexistent"}}}; }

/// Debian keeps its programs elsewhere, where they are looked for too.
bool is_found_without_path(const std::string& backend) { return backend == "postgres"; }

/// ZooKeeper is Java's to run.
std::string missing_of(const std::string& backend) {
  if (backend == "zookeeper") return "java not found: install the package default-jre-headless";
  const std::string program = backend == "redis" ? "redis-server" : backend;
  return program + " not found: install the package " +
         (backend == "etcd" ? "etcd-server" : program);
}

TEST(List, SaysWhatIsNotAvailableAndWhy) {
  const Scratch scratch;
  const Outcome outcome = lockbench(scratch, {"list", "--format", "json"}, without_programs());
  EXPECT_EQ(outcome.code, 0);
  for (const Json& strategy : Json::parse(outcome.out)) {
    const auto backend = strategy.at("backend").get<std::string>();
    if (is_found_without_path(backend)) continue;
    EXPECT_EQ(strategy.at("available"), backend == "local") << strategy;
    if (strategy.at("available")) continue;
    expect_in(strategy.at("unavailable_because"), missing_of(backend));
  }
  for (const Json& strategy : Json::parse(lockbench(scratch, {"list", "--format", "json"}).out)) {
    EXPECT_TRUE(strategy.at("available")) << strategy;
  }
}

TEST(Doctor, NamesWhatIsMissing) {
  const Scratch scratch;
  const Outcome program = lockbench(scratch, {"doctor"}, without_programs());
  EXPECT_EQ(program.code, 2);
  expect_in(program.out, "FAILED");
  expect_in(program.out, "redis-server not found: install the package redis-server");
}

}  // namespace
}  // namespace lockbench::test
