#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "choose/answer.h"
#include "cli/commands/commands.h"
#include "cli/console/session.h"
#include "loadgen/cluster/link.h"
#include "strategies/number.h"
#include "strategies/registry.h"
#include "strategies/store.h"
#include "testbed/servers/machine.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

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

/// Which strategies the server can run, by the commands that it has.
void check_commands(std::vector<Finding>& findings, const StoreKind& store, const std::string& url,
                    Duration timeout) {
  if (store.commands_of == nullptr) return;
  const std::string what = fmt::format("--{}", store.name);
  const bool sharded = store.is_sharded != nullptr && store.is_sharded(url);
  std::vector<const Descriptor*> strategies = all_strategies();
  std::erase_if(strategies, [&](const Descriptor* one) {
    const bool whole = one->traits.nodes > 1 || one->traits.needs_replicas;
    return one->backend != store.name || !one->program.empty() || (sharded && whole);
  });
  std::set<std::string> wanted;
  for (const Descriptor* strategy : strategies) {
    for (std::string& command : store.commands_of(*strategy)) wanted.insert(std::move(command));
  }
  const std::vector<std::string> commands(wanted.begin(), wanted.end());
  const auto missing = store.make(url, timeout)->missing(commands);
  if (!missing) {
    return findings.push_back(
        {what, true,
         "warning: which strategies it can run is unknown: " + missing.error().message});
  }
  std::size_t fit = 0;
  for (const Descriptor* strategy : strategies) {
    std::string lacks;
    for (const std::string& command : store.commands_of(*strategy)) {
      const auto found = missing->find(command);
      if (found == missing->end()) continue;
      lacks += fmt::format(" {}{}", command,
                           found->second.empty() ? "" : fmt::format(" ({})", found->second));
    }
    fit += lacks.empty() ? 1 : 0;
    if (lacks.empty()) continue;
    findings.push_back(
        {what, true, fmt::format("warning: it cannot run {}: it lacks{}", strategy->name, lacks)});
  }
  findings.push_back(
      {what, true, fmt::format("has the commands of {} of {} strategies", fit, strategies.size())});
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
    if (!findings.back().good) continue;
    check_connections(findings, store, url, request);
    check_commands(findings, store, url, request.command_timeout);
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
  std::optional<Duration> probe_duration;
  std::optional<std::string> deployment;

  void declare(OptionList& options) {
    options.only({"clients", "counter-redis", "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    declare_servers(options, servers);
    options.only({"strategies"}, [&] { LoadOptions::declare(options); });
    Option& names = options.at("strategies");
    names.positional = false;
    names.help = "strategies whose locks are tried on the servers given";
    names.default_text = "the simplest of each server's";
    options.only({"config"}, [&] { output.declare(options); });
    options.at("config").help =
        "TOML file with these options as keys, or the file of a probe or a run: it is tried with "
        "its servers, users and strategies";
    declare_keys_of_files(options);
  }
  void complete(const OptionList& /*options*/) {
    if (counter_redis) workload.resource = loadgen::Resource::redis;
    if (wait_replicas > 0) workload.strategy.wait_replicas = wait_replicas;
  }

 private:
  /// What else such a file may have. Help does not show it.
  void declare_keys_of_files(OptionList& options) {
    const std::size_t shown = options.all().size();
    options.add("duration", "D", probe_duration, duration(1ms, 8760h), "as of a probe");
    options.add("deployment", "NAME", deployment, printable_text(), "as of a probe");
    LoadOptions::declare(options);
    metrics.declare(options);
    output.declare(options);
    for (std::size_t i = shown; i < options.all().size(); ++i) options.all()[i].group.clear();
  }
};

/// The strategies whose locks are tried: the named ones, or one for each store with servers.
std::vector<Selected> tried_strategies(const DoctorOptions& options) {
  std::vector<Selected> selected = select_strategies(options.strategies, all_strategies());
  std::erase_if(selected, [&](const Selected& one) {
    return options.servers_of(one.strategy->backend).empty();
  });
  std::erase_if(selected, [](const Selected& one) {
    if (one.strategy->traits.updates && one.named) {
      throw UsageError("--strategies: {} takes no lock that could be tried", one.strategy->name);
    }
    return one.strategy->traits.updates;
  });
  if (!options.strategies.empty()) return selected;
  std::erase_if(selected, [](const Selected& one) {
    const Traits& traits = one.strategy->traits;
    return !one.strategy->typical || traits.nodes > 1 || traits.needs_replicas;
  });
  const auto features = [](const Selected& one) {
    const Traits& traits = one.strategy->traits;
    return int{traits.fencing} + int{traits.fair} + int{traits.reentrant};
  };
  std::ranges::stable_sort(selected, {}, [&](const Selected& one) {
    return std::pair(one.strategy->backend, features(one));
  });
  const auto same = [](const Selected& one, const Selected& other) {
    return one.strategy->backend == other.strategy->backend;
  };
  selected.erase(std::unique(selected.begin(), selected.end(), same), selected.end());
  return selected;
}

/// The least that shows whether clients may lock: two take turns, and renew while they hold.
loadgen::Workload trial_of(const DoctorOptions& options, const Descriptor& strategy) {
  const Duration timeout = options.workload.strategy.command_timeout;
  loadgen::Workload workload;
  workload.clients = 2;
  workload.hold = loadgen::DurationDistribution::constant(50ms);
  workload.warmup = Duration::zero();
  workload.iterations = 6;
  workload.duration = 2 * timeout + 5s;
  workload.acquire_timeout = timeout + 5s;
  workload.ttl = options.workload.ttl;
  workload.strategy = options.workload.strategy;
  workload.strategy.wait.reset();
  workload.strategy.renew.reset();
  if (strategy.traits.renewable) {
    workload.strategy.renew = {.kind = RenewPolicy::Kind::every, .period = 20ms};
  }
  return workload;
}

/// Keeps the latest message of each reason for a failure.
class TrialObserver : public loadgen::ProgressObserver {
 public:
  explicit TrialObserver(Console& console) : console_(console) {}
  void on_progress(const loadgen::Progress& progress) override { messages_ = progress.messages; }
  void on_warning(const std::string& line) override { console_.warn("warning: " + line); }

  /// Why locks failed or were refused; empty if it is not known.
  std::string why() const {
    std::string text;
    for (const std::string& message : messages_.values) {
      if (!message.empty()) text += (text.empty() ? "" : "; ") + message;
    }
    return text;
  }

 private:
  Console& console_;
  loadgen::ByKind<loadgen::FailureReason, std::string> messages_;
};

/// Takes, renews and releases a lock on the user's servers.
Finding try_lock(const Selected& one, const DoctorOptions& options, const std::string& run_id,
                 Console& console, const std::stop_token& stop) {
  const Descriptor& strategy = *one.strategy;
  const std::string what(strategy.name);
  std::vector<Selected> selected = {{&strategy, true}};
  std::vector<results::Skipped> skipped;
  const auto servers = deploy(options, selected, skipped, stop);
  if (!servers) return {what, false, servers.error()};
  loadgen::RunPlan plan = plan_on(*servers, run_id);
  plan.strategies = {&strategy};
  plan.workload = trial_of(options, strategy);
  TrialObserver observer(console);
  const loadgen::RunReport report = loadgen::run_plans({&plan, 1}, observer, stop);
  if (report.interrupted) return {what, false, "stopped"};
  if (!report.not_started.empty()) return {what, false, report.not_started.front().reason};
  const results::Run& run = report.runs.front();
  const results::Outcomes& outcomes = run.outcomes;
  const std::uint64_t renewals = run.renewal ? run.renewal->renewals : 0;
  const std::uint64_t failed = outcomes.failed + outcomes.unknown + outcomes.refused +
                               run.releases_failed + (run.renewal ? run.renewal->failures : 0);
  if (failed > 0 || outcomes.acquired == 0) {
    const std::string why = observer.why();
    return {what, false, why.empty() ? "no lock was granted" : why};
  }
  return {what, true,
          fmt::format("a lock was taken and released {} times, and renewed {} times",
                      outcomes.acquired, renewals)};
}

int doctor(const DoctorOptions& options) {
  const deployment::Request request = request_of(options);
  std::vector<Finding> findings = check_machine(request);
  for (const StoreKind* store : store_kinds()) check_store(findings, *store, request);
  if (request.given_counter) {
    check_endpoint(findings, "counter-redis", "redis", *request.given_counter,
                   request.command_timeout);
  }
  const std::vector<Selected> tried = tried_strategies(options);
  bool interrupted = false;
  if (!tried.empty()) {
    Session session(options.output, false, "stopping: removing the keys");
    const std::string id = run_id(std::chrono::system_clock::now(), std::random_device()());
    for (const Selected& one : tried) {
      const auto unusable = [&](const Finding& finding) {
        return !finding.good && finding.what == fmt::format("--{}", one.strategy->backend);
      };
      // Its failure has been told.
      if (one.strategy->traits.nodes == 1 && std::ranges::any_of(findings, unusable)) continue;
      Finding finding = try_lock(one, options, id, session.console(), session.stop());
      // The lock is not to blame.
      interrupted = session.stopped();
      if (interrupted) break;
      findings.push_back(std::move(finding));
    }
  }
  bool good = true;
  for (const Finding& finding : findings) {
    // The text may quote a server.
    fmt::print("{:<18} {:<6} {}\n", finding.what, finding.good ? "ok" : "FAILED",
               presentable(finding.text));
    good = good && finding.good;
  }
  return exit_code_of({.interrupted = interrupted, .errors = !good});
}

}  // namespace

Command doctor_command() {
  return make_command<DoctorOptions>(
      {.task = kDecide,
       .summary = "Check which programs and servers can be used; takes a lock on yours.",
       .example = "lockbench doctor --config /etc/lockbench/probe.toml"},
      doctor);
}

}  // namespace lockbench::cli
