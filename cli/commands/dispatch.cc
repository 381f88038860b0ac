#include "cli/commands/dispatch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "cli/commands/commands.h"
#include "cli/console/exit_code.h"
#include "cli/console/facts.h"
#include "cli/console/text.h"
#include "cli/options/parse.h"
#include "hazards/client.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

constexpr std::string_view kMoreHelp = "lockbench COMMAND --help shows a command's options.";

void print_overview(const std::vector<Command>& commands) {
  fmt::print(
      "A benchmark and observability toolkit for distributed lock strategies.\n\n"
      "Usage: lockbench [COMMAND] [OPTIONS]\n\n");
  for (const Command& command : commands) {
    if (!command.hidden) fmt::print("  {:<8} {}\n", command.name, command.summary);
  }
  fmt::print("\nWithout a command: {}, over all strategies. {}\n", commands.front().name,
             kMoreHelp);
}

void print_version() {
  const results::Build build = build_facts();
  fmt::print("lockbench {} ({}, {})\n", build.version, build.commit, build.build_type);
}

bool asks_for(std::span<const std::string> args, std::string_view option) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::find(args.begin(), end, option) != end;
}

UsageError no_such_command(const std::string& name, const std::vector<Command>& commands) {
  if (name.find("://") != std::string::npos) {
    return {"a URL is not a command: servers are given with --redis URL"};
  }
  std::vector<std::string_view> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.name);
  if (find_strategy(name) != nullptr) {
    return {fmt::format("no such command \"{0}\": did you mean lockbench run {0}?", name)};
  }
  return {fmt::format("no such command \"{}\"{} (lockbench --help shows all)", name,
                      did_you_mean(name, names))};
}

/// "lockbench --redis URL run": without this, run would be a strategy that nobody knows.
tl::expected<void, UsageError> check_commands_first(const RunOptions& options) {
  const std::vector<Command> commands = all_commands();
  for (const std::string& name : options.strategies) {
    const bool is_command = std::any_of(commands.begin(), commands.end(),
                                        [&](const Command& one) { return one.name == name; });
    if (is_command && find_strategy(name) == nullptr) {
      return tl::unexpected(UsageError{
          fmt::format("\"{0}\" is a command, which comes first: lockbench {0} [OPTIONS]", name)});
    }
  }
  return {};
}

tl::expected<int, UsageError> execute(const Command& command, std::span<const std::string> args) {
  if (asks_for(args, "--help") || asks_for(args, "-h")) {
    fmt::print("{}", help(command));
    return exit_code::kFine;
  }
  const auto options = parse(command, args);
  if (!options) return tl::unexpected(options.error());
  if (auto placed = check_commands_first(*options); !placed) return tl::unexpected(placed.error());
  return command.execute(*options);
}

tl::expected<int, UsageError> choose_and_execute(std::span<const std::string> args) {
  const std::vector<Command> commands = all_commands();
  const std::string first = args.empty() ? "" : args.front();
  if (first == "--help" || first == "-h") {
    print_overview(commands);
    return exit_code::kFine;
  }
  if (first == "--version") {
    print_version();
    return exit_code::kFine;
  }
  // For the plays of `hazards` alone.
  if (first == "client" && args.size() == 1) {
    return hazards::serve_client(STDIN_FILENO, STDOUT_FILENO);
  }
  if (first.starts_with('-') || args.empty()) return execute(commands.front(), args);
  for (const Command& command : commands) {
    if (command.name == first) return execute(command, args.subspan(1));
  }
  return tl::unexpected(no_such_command(first, commands));
}

}  // namespace

std::vector<Command> all_commands() {
  return {run_command(),
          renewal_command(),
          quorum_command(),
          capacity_command(),
          hazards_command(),
          compare_command(),
          report_command(),
          choose_command(),
          probe_command(),
          list_command(),
          doctor_command(),
          condense_command(),
          reference_tables_command()};
}

int dispatch(std::span<const std::string> args) {
  try {
    const auto code = choose_and_execute(args);
    if (!code) {
      fmt::print(stderr, "lockbench: {}\n", presentable(code.error().message));
      return exit_code::kUsage;
    }
    // What ended otherwise has said why.
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (written || *code != exit_code::kFine) return *code;
    fmt::print(stderr, "lockbench: the output could not be written to stdout\n");
    return exit_code::kErrors;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lockbench: {}{}\n", std::ferror(stdout) != 0 ? "stdout: " : "",
               presentable(error.what()));
    return exit_code::kErrors;
  }
}

}  // namespace lockbench::cli
