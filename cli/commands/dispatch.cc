#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "cli/commands/commands.h"
#include "cli/console/ranks.h"
#include "cli/console/session.h"
#include "hazards/messages.h"
#include "strategies/store.h"

namespace lockbench::cli {

std::vector<Command> all_commands() {
  return {tour_command(),    run_command(),    overview_command(),     capacity_command(),
          renewal_command(), quorum_command(), hazards_command(),      simulate_command(),
          compare_command(), report_command(), show_command(),         merge_command(),
          check_command(),   choose_command(), list_command(),         doctor_command(),
          probe_command(),   watch_command(),  check_client_command(), clean_command()};
  // The analyzer takes the memory that the functions own for leaked:
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)

std::string questions(std::string_view without) {
  std::string text;
  for (const Command& command : all_commands()) {
    if (command.asks.empty() || command.name == without) continue;
    text += fmt::format("{}\n    {}\n", command.asks, command.example);
  }
  return text;
}

namespace {

void print_questions() {
  fmt::print(
      "lockbench measures distributed locks on real servers and shows what breaks them.\n\n"
      "{}\n"
      "lockbench --help lists all commands, lockbench COMMAND --help the options of one.\n",
      questions());
}

void print_overview(const std::vector<Command>& commands) {
  fmt::print(
      "A benchmark and observability toolkit for distributed locks.\n\n"
      "Usage: lockbench [COMMAND] [OPTIONS]\n");
  for (const std::string_view task : {kMeasure, kCompareResults, kDecide}) {
    fmt::print("\n{}:\n", task);
    for (const Command& command : commands) {
      if (command.task == task) fmt::print("  {:<12} {}\n", command.name, command.summary);
    }
  }
  fmt::print(
      "\n`lockbench COMMAND --help` shows an example and the options of a command. Options "
      "without\n"
      "a command are those of `{}`; `lockbench` alone shows what to begin with.\n"
      "`lockbench --version` shows the version. Documentation: README.md and docs/.\n",
      kDefaultCommand);
}

UsageError no_such_command(const std::string& name, const std::vector<Command>& commands) {
  if (name.find("://") != std::string::npos || holds_password(name)) {
    return UsageError("a URL is not a command: servers are given with --redis URL");
  }
  if (find_strategy(name) != nullptr) {
    return UsageError("no such command \"{0}\": did you mean lockbench run {0}?", name);
  }
  return UsageError("no such command \"{}\"{} (lockbench --help shows all)", name,
                    did_you_mean(name, results::each_of(commands, &Command::name)));
}

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h" || word == "--help=all";
}

/// Under MPI: only rank 0 prints.
int execute_as_rank(const Command& command, std::span<const std::string> args,
                    const loadgen::cluster::Launched& launched) {
  const bool all = command.over_ranks && std::ranges::none_of(args, is_help);
  if (launched.rank > 0) return all ? serve_rank() : exit_code::kFine;
  if (!all) return command.execute(args);
  prepare_signals();
  // Dismisses the other ranks however the command ends; else they would wait forever.
  const std::unique_ptr<Ranks> ranks = Ranks::join();
  return command.execute(args);
}

/// If one of fd 0-2 is closed, the next file opened, such as a socket, would take its number and
/// get its output. /dev/null takes it instead, opened so that using it fails like the closed fd.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

int choose_and_execute(std::span<const std::string> args) {
  const std::vector<Command> commands = all_commands();
  if (args.empty()) {
    print_questions();
    return exit_code::kFine;
  }
  const std::string& first = args.front();
  if (is_help(first)) {
    print_overview(commands);
    return exit_code::kFine;
  }
  if (first == "--version") {
    fmt::print("lockbench {}\n", build_line(build_facts()));
    return exit_code::kFine;
  }
  // Started by `hazards`: one client in its own process, which a fault can kill.
  if (first == "client" && args.size() == 1) {
    return hazards::serve_client(STDIN_FILENO);
  }
  // By the build, and by cli/completions/.
  if (first == "manual" && args.size() == 2) {
    write_manual(commands, args[1]);
    return exit_code::kFine;
  }
  if (first == "complete") {
    print_completions(commands, args.subspan(1));
    return exit_code::kFine;
  }
  const bool named = !first.starts_with('-');
  const auto command = std::ranges::find(commands, named ? first : kDefaultCommand, &Command::name);
  const auto ranks = rank_count() > 1 ? loadgen::cluster::launched() : std::nullopt;
  if (command == commands.end()) {
    if (ranks && ranks->rank > 0) return exit_code::kFine;
    throw no_such_command(first, commands);
  }
  const auto rest = args.subspan(named ? 1 : 0);
  return ranks ? execute_as_rank(*command, rest, *ranks) : command->execute(rest);
}

}  // namespace

int dispatch(std::span<const std::string> args) {
  occupy_standard_streams();
  try {
    for (const StoreKind* kind : store_kinds()) {
      if (kind->take_environment != nullptr) (void)kind->take_environment();
    }
    const int code = choose_and_execute(args);
    // A command that failed has already said why.
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (written || code != exit_code::kFine) return code;
    fmt::print(stderr, "lockbench: the output could not be written to stdout\n");
    return exit_code::kErrors;
  } catch (const UsageError& error) {
    fmt::print(stderr, "lockbench: {}\n", presentable(error.message()));
    return exit_code::kUsage;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "lockbench: not enough memory\n");
    return exit_code::kErrors;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lockbench: {}{}\n", std::ferror(stdout) != 0 ? "stdout: " : "",
               presentable(error.what()));
    return exit_code::kErrors;
  }
}

}  // namespace lockbench::cli
