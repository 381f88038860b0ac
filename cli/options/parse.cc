#include "cli/options/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/console/text.h"
#include "cli/options/config_file.h"
#include "strategies/duration.h"

namespace lockbench::cli {
namespace {

std::string dashed(std::string_view name) { return fmt::format("--{}", name); }

const Option* positional_of(const Command& command) {
  for (const Option& option : command.options) {
    if (option.positional) return &option;
  }
  return nullptr;
}

void define(CLI::App& app, const std::vector<Option>& options) {
  app.set_help_flag("-h,--help", "this text");
  app.allow_extras();
  for (const Option& option : options) {
    if (option.positional) continue;
    const std::string name = dashed(option.name);
    if (option.type == Option::Type::flag) {
      app.add_flag(name)->description(option.help)->group(std::string(option.group));
      continue;
    }
    CLI::Option* defined = app.add_option(name)->description(option.help);
    defined->type_name(std::string(option.value_name))->take_all();
    defined->group(std::string(option.group));
    // One value after each mention, however often it is mentioned.
    defined->expected(1, option.repeatable ? CLI::detail::expected_max_vector_size : 1);
    defined->allow_extra_args(false);
  }
}

// A leftover that looks like an option may carry a secret behind its '='.
UsageError unknown_option(const Command& command, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> known;
  for (const Option& option : command.options) {
    if (!option.positional) known.push_back(dashed(option.name));
  }
  const std::vector<std::string_view> names(known.begin(), known.end());
  return {fmt::format("unknown option {}{} (lockbench {} --help shows all)", name,
                      did_you_mean(name, names), command.name)};
}

tl::expected<void, UsageError> take_leftovers(const Command& command,
                                              const std::vector<std::string>& leftovers,
                                              GivenValues& given) {
  const Option* positional = positional_of(command);
  for (const std::string& argument : leftovers) {
    if (argument == "--") continue;
    if (argument.starts_with('-')) return tl::unexpected(unknown_option(command, argument));
    if (positional == nullptr) {
      return tl::unexpected(UsageError{
          fmt::format("lockbench {} takes no \"{}\": only options", command.name, argument)});
    }
    given[std::string(positional->name)].push_back(argument);
  }
  return {};
}

const Option* option_named(const Command& command, std::string_view argument) {
  for (const Option& option : command.options) {
    if (!option.positional && argument == dashed(option.name)) return &option;
  }
  return nullptr;
}

/// What the option would say of an empty value names what is allowed.
UsageError value_missing(const Option& option) {
  RunOptions unused;
  const auto refused = option.set(unused, "");
  return {fmt::format("--{} needs a value: {}", option.name,
                      refused ? std::string(option.help) : refused.error())};
}

// CLI11 does not know what is allowed, and takes what stands behind "--name=" for its value.
tl::expected<void, UsageError> check_values_there(const Command& command,
                                                  std::span<const std::string> args) {
  const auto ends_option = [&](const std::string& argument) {
    const std::string name = argument.substr(0, argument.find('='));
    return argument == "--" || option_named(command, name) != nullptr;
  };
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    const std::size_t equals = args[i].find('=');
    const Option* option = option_named(command, args[i].substr(0, equals));
    if (option == nullptr) continue;
    const bool flag = option->type == Option::Type::flag;
    const bool followed = i + 1 < args.size() && !args[i + 1].empty() && !ends_option(args[i + 1]);
    const bool there = equals == std::string::npos ? flag || followed : equals + 1 < args[i].size();
    if (!there) return tl::unexpected(value_missing(*option));
    // A value may look like an option's name.
    if (equals == std::string::npos && !flag) ++i;
  }
  return {};
}

tl::expected<GivenValues, UsageError> read_arguments(const Command& command,
                                                     std::span<const std::string> args) {
  if (auto there = check_values_there(command, args); !there) return tl::unexpected(there.error());
  CLI::App app;
  define(app, command.options);
  try {
    app.parse(
        std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 wants the last one first
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(UsageError{error.what()});
  }
  GivenValues given;
  for (const Option& option : command.options) {
    if (option.positional) continue;
    const auto& values = app.get_option(dashed(option.name))->results();
    if (values.size() > 1 && !option.repeatable && option.type != Option::Type::flag) {
      return tl::unexpected(UsageError{
          fmt::format("--{} is given {} times: once is allowed", option.name, values.size())});
    }
    if (!values.empty()) given.emplace(option.name, values);
  }
  if (auto taken = take_leftovers(command, app.remaining(), given); !taken) {
    return tl::unexpected(taken.error());
  }
  return given;
}

/// `prefix` says in messages where the values come from.
tl::expected<void, UsageError> apply(const std::vector<Option>& options, const GivenValues& given,
                                     const std::string& prefix, RunOptions& result) {
  for (const Option& option : options) {
    const auto values = given.find(option.name);
    if (values == given.end()) continue;
    for (const std::string& value : values->second) {
      if (auto done = option.set(result, value); !done) {
        return tl::unexpected(
            UsageError{fmt::format("{}{}: {}", prefix, option.name, done.error())});
      }
    }
  }
  return {};
}

/// Options that mean nothing without, or beside, another one.
tl::expected<void, UsageError> check_together(const RunOptions& options, const GivenValues& given) {
  const loadgen::Workload& load = options.workload;
  if (given.contains("arrival") && !load.rate) {
    return tl::unexpected(UsageError{"--arrival spaces an open loop: it needs --rate"});
  }
  if (options.counter_redis && load.resource == loadgen::Resource::memory) {
    return tl::unexpected(UsageError{"--counter-redis needs --resource redis or redis-fenced"});
  }
  if (load.key_skew > 0 && load.key_per_client) {
    return tl::unexpected(
        UsageError{"--key-skew needs --keys N: with per-client no key is chosen"});
  }
  if (load.rtt > Duration::zero() && !options.servers_of("redis").empty()) {
    return tl::unexpected(
        UsageError{"--rtt is added to private local servers: it does not go with --redis"});
  }
  if (options.metrics.linger > Duration::zero() && !options.metrics.listen) {
    return tl::unexpected(UsageError{"--linger keeps up --metrics-listen: it needs that"});
  }
  if (load.rtt >= load.strategy.command_timeout) {
    return tl::unexpected(UsageError{fmt::format("--rtt must be shorter than --store-timeout ({})",
                                                 format_duration(load.strategy.command_timeout))});
  }
  return {};
}

}  // namespace

tl::expected<RunOptions, UsageError> parse(const Command& command,
                                           std::span<const std::string> args) {
  auto given = read_arguments(command, args);
  if (!given) return tl::unexpected(given.error());

  RunOptions options;
  GivenValues from_file;
  std::string file;
  if (const auto config = given->find("config"); config != given->end()) {
    file = config->second.front();
    auto read = read_config_file(file, command.options);
    if (!read) return tl::unexpected(read.error());
    from_file = std::move(*read);
    std::erase_if(from_file, [&](const auto& entry) { return given->contains(entry.first); });
  }
  if (auto done = apply(command.options, from_file, file + ": ", options); !done) {
    return tl::unexpected(done.error());
  }
  if (auto done = apply(command.options, *given, "--", options); !done) {
    return tl::unexpected(done.error());
  }
  given->merge(from_file);
  if (command.loads) {
    if (auto fits = check_together(options, *given); !fits) return tl::unexpected(fits.error());
  }
  if (options.workload.iterations && !given->contains("duration")) {
    options.workload.duration = kLongestCountedRun;
  }
  auto faults = loadgen::timetable(std::move(options.faults), options.workload.duration);
  if (!faults) return tl::unexpected(UsageError{"--fault: " + faults.error()});
  options.faults = *std::move(faults);
  return options;
}

std::string help(const Command& command) {
  CLI::App app(std::string(command.summary));
  define(app, command.options);
  std::string usage = fmt::format("lockbench {}", command.name);
  if (const Option* positional = positional_of(command)) {
    usage += fmt::format(" [{}...]", positional->value_name);
    app.footer(fmt::format("{}: {}", positional->value_name, positional->help));
  }
  return app.help(usage);
}

}  // namespace lockbench::cli
