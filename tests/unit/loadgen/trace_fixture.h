#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {

/// Runs that replay a trace, in a file of the test's own.
class TraceRunTest : public LiveRunTest {
 protected:
  ~TraceRunTest() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  void replay(const std::string& text) {
    write(text);
    plan_.workload.trace = Trace::read(path_).value();
    plan_.workload.keys = plan_.workload.trace->keys;
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / fmt::format("trace-{}.csv", ::getpid())).string();
};

}  // namespace lockbench::loadgen
