#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/console/deploy.h"
#include "cli/console/facts.h"
#include "cli/console/publish.h"
#include "cli/options/text.h"
#include "loadgen/cluster/peers.h"
#include "strategies/registry.h"
#include "strategies/store.h"
#include "testbed/servers/machine.h"

namespace lockbench::cli {
namespace {

struct Finding {
  std::string what;
  bool good = true;
  std::string text{};
};

/// With a server given, no program is needed.
Finding check_program(const deployment::PrivateStoreKind& kind, bool needed) {
  const std::string name(kind.program);
  const auto program = kind.find_program();
  if (program) {
    return {name, true, fmt::format("version {} at {}", kind.version(*program), program->string())};
  }
  if (needed) return {name, false, program.error()};
  return {name, true, fmt::format("{} (not needed with --{})", program.error(), kind.name)};
}

std::vector<Finding> check_endpoint(std::string_view option, std::string_view store,
                                    const std::string& url, Duration timeout) {
  const std::string what = fmt::format("--{}", option);
  const auto server = deployment::ask_server(store, url, timeout);
  if (!server) return {{what, false, server.error()}};
  const std::string encryption = server->encryption ? ", " + *server->encryption : "";
  std::vector<Finding> findings = {
      {what, true,
       fmt::format("{}, version {}{}", server->endpoints.front(), server->version, encryption)}};
  for (const std::string& warning : server->warnings) {
    findings.push_back({what, true, "warning: " + warning});
  }
  return findings;
}

/// Names only: a value may be a secret.
std::vector<Finding> check_environment(const StoreKind& store, bool given) {
  const std::vector<std::string> names =
      store.take_environment == nullptr ? std::vector<std::string>() : store.take_environment();
  if (names.empty()) return {};
  return {{fmt::format("{} variables", store.name), true,
           fmt::format("{}: {} --{}", fmt::join(names, ", "),
                       given ? "in force for" : "in force only with", store.name)}};
}

/// It is no failure that this build leaves a store out.
std::vector<Finding> check_store(const StoreKind& store, const deployment::Request& request) {
  const auto* const kind = deployment::find_private_store_kind(store.name);
  if (kind == nullptr) return {{std::string(store.name), true, "left out of this build"}};
  const std::vector<std::string> given = request.given_for(store.name);
  std::vector<Finding> findings = {check_program(*kind, given.empty())};
  const auto add = [&](std::vector<Finding> more) {
    std::move(more.begin(), more.end(), std::back_inserter(findings));
  };
  add(check_environment(store, !given.empty()));
  for (const std::string& url : given) {
    add(check_endpoint(store.name, store.name, url, request.command_timeout));
  }
  return findings;
}

Finding check_open_files(const deployment::Request& request) {
  const auto needed = deployment::open_files_for(request, all_strategies());
  const std::uint64_t limit = testbed::hard_open_file_limit();
  return {"open files", limit >= needed,
          fmt::format("at most {}; {} clients need up to {}", limit, request.clients, needed)};
}

Finding check_account() {
  const auto account = testbed::server_account();
  if (!account) return {"private servers", false, account.error()};
  return {"private servers", true, "run as " + (account->name.empty() ? "you" : account->name)};
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

Finding check_mpi() {
  const std::string missing = loadgen::cluster::without_mpi();
  if (!missing.empty()) return {"MPI", true, "no runs over several hosts: " + missing};
  return {"MPI", true, loadgen::cluster::mpi_version()};
}

struct DoctorOptions : LoadOptions {
  static constexpr std::string_view kCommand = "doctor";

  void declare(OptionList& options) {
    OptionList::Names taken = {"clients", "resource", "counter-redis", "store-timeout"};
    for (const StoreKind* kind : store_kinds()) taken.push_back(kind->name);
    options.only(taken, [&] { LoadOptions::declare(options); });
  }
  static void complete(const OptionList& /*options*/) {}
};

int doctor(const DoctorOptions& options) {
  const deployment::Request request = request_of(options);
  std::vector<Finding> findings = {check_cores(), check_clock(), check_open_files(request),
                                   check_account(), check_mpi()};
  for (const StoreKind* store : store_kinds()) {
    for (Finding& finding : check_store(*store, request)) findings.push_back(std::move(finding));
  }
  if (request.given_counter) {
    for (Finding& finding : check_endpoint("counter-redis", "redis", *request.given_counter,
                                           request.command_timeout)) {
      findings.push_back(std::move(finding));
    }
  }
  bool good = true;
  for (const Finding& finding : findings) {
    // What a server says of itself is not ours.
    fmt::print("{:<18} {:<6} {}\n", finding.what, finding.good ? "ok" : "FAILED",
               presentable(finding.text));
    good = good && finding.good;
  }
  return good ? exit_code::kFine : exit_code::kErrors;
}

}  // namespace

Command doctor_command() {
  return make_command<DoctorOptions>(
      {.task = kDecide,
       .summary = "Check which servers, programs and endpoints can be used.",
       .example = "lockbench doctor --redis redis://host:6379"},
      doctor);
}

}  // namespace lockbench::cli
