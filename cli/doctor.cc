#include <fmt/format.h>

#include <thread>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/facts.h"
#include "cli/servers.h"
#include "cli/text.h"
#include "testbed/open_files.h"
#include "testbed/programs.h"

namespace lockbench {
namespace {

struct Finding {
  std::string what;
  bool good = true;
  std::string text;
};

/// "Redis server v=7.0.15 sha=..." → "7.0.15"
std::string program_version(const std::string& path) {
  std::string output(256, '\0');
  std::FILE* pipe = popen(fmt::format("'{}' --version", path).c_str(), "re");
  if (pipe == nullptr) return "unknown";
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  pclose(pipe);
  const std::size_t start = output.find("v=");
  if (start == std::string::npos) return "unknown";
  return output.substr(start + 2, output.find(' ', start) - start - 2);
}

Finding check_redis_program() {
  const auto program = testbed::find_program(testbed::kRedisServer);
  if (!program) return {"redis-server", false, program.error()};
  return {"redis-server", true,
          fmt::format("version {} at {}", program_version(program->string()), program->string())};
}

Finding check_endpoint(std::string_view what, const std::string& url, Duration timeout) {
  const auto server = ask_redis(url, timeout);
  if (!server) return {std::string(what), false, presentable(server.error())};
  return {std::string(what), true,
          fmt::format("{}, version {}", server->endpoints.front(), server->version)};
}

Finding check_open_files(const RunOptions& options) {
  const auto needed = open_files_for(options.workload);
  const std::uint64_t limit = testbed::hard_open_file_limit();
  return {"open files", limit >= needed,
          fmt::format("at most {}; {} clients need {}", limit, options.workload.clients, needed)};
}

Finding check_cores() {
  const unsigned cores = std::thread::hardware_concurrency();
  return {"cores", true,
          cores > 1
              ? fmt::format("{}", cores)
              : std::string("1: clients and servers will share it, which shows in every figure")};
}

Finding check_clock() {
  const std::string source = clock_source();
  const bool slow = source == "hpet" || source == "acpi_pm" || source == "jiffies";
  return {"clock source", true,
          slow ? source + ": slow to read, which shows in short times" : source};
}

tl::expected<int, UsageError> doctor(const RunOptions& options) {
  const Duration timeout = options.workload.strategy.command_timeout;
  std::vector<Finding> findings = {check_cores(), check_clock(), check_open_files(options)};
  // With a Redis given, no program is needed.
  Finding program = check_redis_program();
  if (!options.redis.empty() && !program.good) {
    program = {program.what, true, program.text + " (not needed with --redis)"};
  }
  findings.push_back(program);
  for (const std::string& url : options.redis) {
    findings.push_back(check_endpoint("--redis", url, timeout));
  }
  if (options.counter_redis) {
    findings.push_back(check_endpoint("--counter-redis", *options.counter_redis, timeout));
  }
  bool good = true;
  for (const Finding& finding : findings) {
    fmt::print("{:<16} {:<6} {}\n", finding.what, finding.good ? "ok" : "FAILED", finding.text);
    good = good && finding.good;
  }
  return good ? exit_code::kFine : exit_code::kErrors;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "Which servers, programs and endpoints can be used.",
          .options =
              some_run_options({"redis", "counter-redis", "store-timeout", "clients", "resource"}),
          .execute = doctor};
}

}  // namespace lockbench
