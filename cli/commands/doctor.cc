#include <algorithm>
#include <thread>

#include "cli/commands/commands.h"
#include "cli/console/facts.h"
#include "cli/console/session.h"
#include "cli/options/text.h"
#include "loadgen/cluster/peers.h"
#include "strategies/store.h"
#include "testbed/servers/machine.h"

// The commands that put no load on servers: doctor, clean.

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

/// It is no failure that this build leaves a store out.
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
  }
}

/// Of this machine and build.
std::vector<Finding> check_machine(const deployment::Request& request) {
  const unsigned cores = std::thread::hardware_concurrency();
  const std::string clock = clock_source();
  const bool slow = clock == "hpet" || clock == "acpi_pm" || clock == "jiffies";
  const auto needed = deployment::open_files_for(request, all_strategies());
  const std::uint64_t limit = testbed::hard_open_file_limit();
  const auto account = testbed::server_account();
  const std::string no_mpi = loadgen::cluster::without_mpi();
  return {
      {"cores", true,
       cores > 1 ? fmt::format("{}", cores)
                 : "1: clients and servers will share it, which shows in every figure"},
      {"clock source", true, clock + (slow ? ": slow to read, which shows in short times" : "")},
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
    options.only({"clients", "resource", "counter-redis", "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    declare_servers(options, servers);
  }
  static void complete(const OptionList& /*options*/) {}
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
    // What a server says of itself is not ours.
    fmt::print("{:<18} {:<6} {}\n", finding.what, finding.good ? "ok" : "FAILED",
               presentable(finding.text));
    good = good && finding.good;
  }
  return good ? exit_code::kFine : exit_code::kErrors;
}

/// Strictly, as the id becomes a part of patterns and of names that are dropped.
tl::expected<std::string, std::string> parse_run_id(const std::string& text) {
  if (is_run_id(text)) return text;
  return tl::unexpected(fmt::format(
      "\"{}\" is not the id of a run, such as 20261121T012530Z-4f3a9c", presentable(text)));
}

struct CleanOptions {
  static constexpr std::string_view kCommand = "clean";
  std::optional<std::string> run;
  ServerUrls servers;
  Duration command_timeout = std::chrono::seconds(3);
  OutputOptions output;

  void declare(OptionList& options) {
    options.add("run", "ID", run, parsed(parse_run_id),
                "the run: the second part of its keys, and the name of its result file; required");
    options.heading("Stores");
    declare_servers(options, servers);
    options.add("store-timeout", "D", command_timeout,
                duration(std::chrono::milliseconds(1), std::chrono::hours(1)),
                "time to wait for one answer of a store");
    options.only({"config"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& /*options*/) const {
    if (!run) throw UsageError("clean requires --run ID");
    if (std::ranges::any_of(servers, [](const auto& urls) { return !urls.second.empty(); })) return;
    throw UsageError("nothing to clean: give servers, such as --redis URL");
  }
};

/// False: something may be left.
bool clean_server(const StoreKind& kind, const std::string& url, const CleanOptions& options,
                  Session& session) {
  const std::string server =
      fmt::format("{} {}", kind.name, presentable(kind.display(url).value_or("?")));
  if (kind.listing == Listing::none) {
    fmt::print("{}: it cannot list keys; those of the run end with their TTL\n", server);
    return true;
  }
  const auto removed =
      kind.make(url, options.command_timeout)->remove_run(*options.run, session.stop());
  if (removed) {
    fmt::print("{}: {} removed\n", server, *removed);
    return true;
  }
  session.console().warn(
      fmt::format("{}: not cleaned: {}", server, presentable(removed.error().message)));
  return false;
}

int clean(const CleanOptions& options) {
  Session session(OutputOptions{}, false, "stopping");
  bool complete = true;
  for (const StoreKind* kind : store_kinds()) {
    const auto urls = options.servers.find(kind->name);
    if (urls == options.servers.end()) continue;
    for (const std::string& url : urls->second) {
      if (!session.stopped()) complete = clean_server(*kind, url, options, session) && complete;
    }
  }
  if (session.stopped()) return exit_code::kInterrupted;
  return complete ? exit_code::kFine : exit_code::kErrors;
}

}  // namespace

Command doctor_command() {
  return make_command<DoctorOptions>(
      {.task = kDecide,
       .summary = "Check which servers, programs and endpoints can be used.",
       .example = "lockbench doctor --redis redis://host:6379"},
      doctor);
}

Command clean_command() {
  return make_command<CleanOptions>(
      {.task = kDecide,
       .summary = "Remove what a killed run left in a store.",
       .example = "lockbench clean --run 20261121T012530Z-4f3a9c --redis redis://host:6379"},
      clean);
}

}  // namespace lockbench::cli
