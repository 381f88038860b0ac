#include <thread>

#include "choose/answer.h"
#include "cli/commands/commands.h"
#include "loadgen/cluster/link.h"
#include "strategies/number.h"
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

/// The program is not needed if a server is given.
Finding check_program(const deployment::PrivateStoreKind& kind, bool needed) {
  const std::string name(kind.program);
  const auto program = kind.find_program();
  if (program) {
    return {name, true, fmt::format("version {} at {}", kind.version(*program), program->string())};
  }
  if (needed) return {name, false, program.error()};
  return {name, true, fmt::format("{} (not needed with --{})", program.error(), kind.name)};
}

void check_endpoint(std::vector<Finding>& findings, std::string_view option, std::string_view store,
                    const std::string& url, Duration timeout) {
  const std::string what = fmt::format("--{}", option);
  const auto server = deployment::ask_server(store, url, timeout);
  if (!server) return findings.push_back({what, false, server.error()});
  const std::string encryption = server->encryption ? ", " + *server->encryption : "";
  findings.push_back(
      {what, true,
       fmt::format("{}, version {}{}", server->endpoints.front(), server->version, encryption)});
  for (const std::string& warning : server->warnings) {
    findings.push_back({what, true, "warning: " + warning});
  }
}

/// If the server tells how many connections it allows: whether all clients can have theirs.
void check_connections(std::vector<Finding>& findings, const StoreKind& store,
                       const std::string& url, const deployment::Request& request) {
  const auto settings = store.make(url, request.command_timeout)->settings();
  if (!settings || !settings->contains("max_connections")) return;
  const int needed = choose::connections_needed(*settings, request.clients);
  const std::string& most = settings->at("max_connections");
  findings.push_back({fmt::format("--{}", store.name),
                      parse_number<int>(most).value_or(needed) >= needed,
                      fmt::format("max_connections is {}; {} clients need at least {}", most,
                                  request.clients, needed)});
}

/// A store that this build leaves out is not a failure.
void check_store(std::vector<Finding>& findings, const StoreKind& store,
                 const deployment::Request& request) {
  const auto* const kind = deployment::find_private_store_kind(store.name);
  if (kind == nullptr) {
    return findings.push_back({std::string(store.name), true, "left out of this build"});
  }
  const std::vector<std::string> given = request.given_for(store.name);
  findings.push_back(check_program(*kind, given.empty()));
  // Names only: a value may be a secret.
  std::vector<std::string> variables;
  if (store.take_environment != nullptr) variables = store.take_environment();
  if (!variables.empty()) {
    findings.push_back(
        {fmt::format("{} variables", store.name), true,
         fmt::format("{}: {} --{}", fmt::join(variables, ", "),
                     given.empty() ? "in force only with" : "in force for", store.name)});
  }
  for (const std::string& url : given) {
    check_endpoint(findings, store.name, store.name, url, request.command_timeout);
    if (findings.back().good) check_connections(findings, store, url, request);
  }
}

/// Checks this machine and build.
std::vector<Finding> check_machine(const deployment::Request& request) {
  const unsigned cores = std::thread::hardware_concurrency();
  const auto needed = deployment::open_files_for(request, all_strategies());
  const std::uint64_t limit = testbed::hard_open_file_limit();
  const auto account = testbed::server_account();
  const std::string no_mpi = loadgen::cluster::without_mpi();
  return {
      {"cores", true,
       cores > 1 ? fmt::format("{}", cores)
                 : "1: clients and servers will share it, which distorts every figure"},
      {"open files", limit >= needed,
       fmt::format("at most {}; {} clients need up to {}", limit, request.clients, needed)},
      {"private servers", account.has_value(),
       account ? "run as " + (account->name.empty() ? "you" : account->name) : account.error()},
      {"MPI", true,
       no_mpi.empty() ? loadgen::cluster::mpi_version() : "no runs over several hosts: " + no_mpi}};
}

struct DoctorOptions : LoadOptions {
  static constexpr std::string_view kCommand = "doctor";

  void declare(OptionList& options) {
    options.only({"clients", "counter-redis", "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    declare_servers(options, servers);
    options.only({"config"}, [&] { output.declare(options); });
  }
  void complete(const OptionList& /*options*/) {
    if (counter_redis) workload.resource = loadgen::Resource::redis;
  }
};

int doctor(const DoctorOptions& options) {
  const deployment::Request request = request_of(options);
  std::vector<Finding> findings = check_machine(request);
  for (const StoreKind* store : store_kinds()) check_store(findings, *store, request);
  if (request.given_counter) {
    check_endpoint(findings, "counter-redis", "redis", *request.given_counter,
                   request.command_timeout);
  }
  bool good = true;
  for (const Finding& finding : findings) {
    // The text may quote a server.
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
       .summary = "Check which programs and servers can be used.",
       .example = "lockbench doctor --redis @/etc/lockbench/redis --clients 200"},
      doctor);
}

}  // namespace lockbench::cli
