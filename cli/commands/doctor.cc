#include <fmt/format.h>

#include <thread>

#include "cli/commands/commands.h"
#include "cli/console/exit_code.h"
#include "cli/console/facts.h"
#include "cli/console/text.h"
#include "deployment/backends.h"
#include "deployment/servers.h"
#include "strategies/store.h"
#include "testbed/servers/open_files.h"

namespace lockbench::cli {
namespace {

struct Finding {
  std::string what;
  bool good = true;
  std::string text;
};

/// "Redis server v=7.0.15 sha=...", "memcached 1.6.18", "postgres (PostgreSQL) 15.18 (Debian...)",
/// "etcd Version: 3.4.23"
std::string program_version(const std::string& path) {
  std::string output(256, '\0');
  std::FILE* pipe = popen(fmt::format("'{}' --version", path).c_str(), "re");
  if (pipe == nullptr) return "unknown";
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  pclose(pipe);
  const std::size_t start = output.find_first_of("0123456789");
  if (start == std::string::npos) return "unknown";
  return output.substr(start, output.find_first_of(" \n", start) - start);
}

/// With a server given, no program is needed.
Finding check_program(const Backend& backend, bool needed) {
  const std::string name(backend.program);
  const auto program = backend.find_program();
  if (program) {
    return {name, true,
            fmt::format("version {} at {}",
                        backend.program_version != nullptr ? backend.program_version(*program)
                                                           : program_version(program->string()),
                        program->string())};
  }
  if (needed) return {name, false, program.error()};
  return {name, true, fmt::format("{} (not needed with {})", program.error(), backend.option)};
}

Finding check_endpoint(std::string_view option, std::string_view backend, const std::string& url,
                       Duration timeout) {
  const auto server = ask_server(backend, url, timeout);
  if (!server) return {std::string(option), false, presentable(server.error())};
  return {std::string(option), true,
          fmt::format("{}, version {}", server->endpoints.front(), server->version)};
}

/// A backend that this build leaves out is no fault.
std::vector<Finding> check_backend(const Backend& backend, const RunOptions& options) {
  const std::string name(backend.name);
  if (find_store_kind(name) == nullptr) return {{name, true, "left out of this build"}};
  const std::vector<std::string> given = options.servers_of(backend.name);
  std::vector<Finding> findings = {check_program(backend, given.empty())};
  for (const std::string& url : given) {
    findings.push_back(
        check_endpoint(backend.option, name, url, options.workload.strategy.command_timeout));
  }
  return findings;
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
  std::vector<Finding> findings = {check_cores(), check_clock(), check_open_files(options)};
  for (const Backend& backend : backends()) {
    for (Finding& finding : check_backend(backend, options)) {
      findings.push_back(std::move(finding));
    }
  }
  if (options.counter_redis) {
    findings.push_back(check_endpoint("--counter-redis", "redis", *options.counter_redis,
                                      options.workload.strategy.command_timeout));
  }
  bool good = true;
  for (const Finding& finding : findings) {
    fmt::print("{:<16} {:<6} {}\n", finding.what, finding.good ? "ok" : "FAILED", finding.text);
    good = good && finding.good;
  }
  return good ? exit_code::kFine : exit_code::kErrors;
}

std::vector<Option> doctor_options() {
  std::vector<Option> options = server_options();
  auto shared = some_run_options({"counter-redis", "store-timeout", "clients", "resource"});
  std::move(shared.begin(), shared.end(), std::back_inserter(options));
  return options;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "Which servers, programs and endpoints can be used.",
          .options = doctor_options(),
          .execute = doctor};
}

}  // namespace lockbench::cli
