#include <algorithm>
#include <array>
#include <set>

#include "cli/commands/commands.h"
#include "cli/commands/promises.h"
#include "cli/console/session.h"
#include "strategies/programs/client/process.h"
#include "strategies/programs/program.h"
#include "strategies/store.h"
#include "strategies/url.h"

// Whether a client program keeps the protocol of docs/your-lock.md.

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;
using Message = program::Json;

struct CheckClientOptions {
  static constexpr std::string_view kCommand = "check-client";
  std::vector<std::string> commands;
  ServerUrls servers;
  OutputOptions output;

  void declare(OptionList& options) {
    Option& command = options.add("command", "COMMAND", commands, any_text(),
                                  "the client program, such as 'node my_lock.mjs'", "");
    command.positional = true;
    command.comma_separated = command.in_file = false;
    declare_servers(options, servers);
    options.add("format", "NAME", output.format,
                one_of<Format>({{"table", Format::table}, {"json", Format::json}}),
                "format on stdout");
    options.only({"quiet"}, [&] { output.declare(options); });
  }
};

constexpr std::string_view word_of(Promise::State state) {
  return state == Promise::State::kept ? "kept" : state == Promise::State::broken ? "BROKEN" : "–";
}

std::string to_text(const std::vector<Promise>& promises, const program::Client& client) {
  std::string text;
  const auto of = [&](Promise::State state) {
    return std::ranges::count(promises, state, &Promise::state);
  };
  for (const Promise& one : promises) {
    text += fmt::format("{:<7} {:<22} {}{}{}\n", word_of(one.state), one.name, one.text,
                        one.why.empty() ? "" : ": ", one.why);
    if (one.state != Promise::State::broken) continue;
    // A burst has hundreds of lines; the last ones tell.
    constexpr std::size_t kShown = 12;
    const std::size_t first = one.exchange.size() > kShown ? one.exchange.size() - kShown : 0;
    for (std::size_t i = first; i < one.exchange.size(); ++i) {
      text += fmt::format("          {}\n", one.exchange[i]);
    }
  }
  text += fmt::format("\n{} {}: {} promises kept, {} broken, {} not asked\n", client.library,
                      client.version, of(Promise::State::kept), of(Promise::State::broken),
                      of(Promise::State::not_asked));
  if (of(Promise::State::broken) > 0) return text;
  return text + fmt::format(
                    "Next: lockbench hazards --quick --client '{0}'\n"
                    "      lockbench run --client '{0}' --clients 8 --hold 1ms\n",
                    client.command);
}

std::string to_json(const std::vector<Promise>& promises, const program::Client& client) {
  constexpr std::array<std::string_view, 3> kStates{"kept", "broken", "not_asked"};
  nlohmann::ordered_json json = {{"client", client.name},
                                 {"about", Message::parse(client.about)},
                                 {"promises", nlohmann::ordered_json::array()}};
  for (const Promise& one : promises) {
    json["promises"].push_back({{"name", one.name},
                                {"promise", one.text},
                                {"state", kStates.at(static_cast<std::size_t>(one.state))},
                                {"why", one.why},
                                {"exchange", one.exchange}});
  }
  return json.dump(1, ' ', false, Message::error_handler_t::replace) + "\n";
}

/// Removes what is left on the user's servers. False if something may be left.
bool remove_keys(const std::set<std::string>& keys, const std::vector<std::string>& urls,
                 const Descriptor& strategy, Console& console) {
  const std::vector<std::string> all(keys.begin(), keys.end());
  bool complete = true;
  for (const std::string& url : urls) {
    const auto removed = find_store_kind(strategy.backend)->make(url, 3s)->remove_keys(all, {});
    if (removed) continue;
    complete = false;
    console.warn("locks may be left: " + presentable(removed.error().message));
  }
  return complete;
}

int check_client(const CheckClientOptions& options) {
  if (options.commands.size() != 1) {
    throw UsageError("check-client takes one program: lockbench check-client 'node my_lock.mjs'");
  }
  std::vector<std::string> names;
  take_clients(options.commands, options.servers, names);
  const Descriptor& strategy = *find_strategy(names.front());
  const program::Client& client = *program::client_of(strategy);
  Session session(options.output, false, "stopping");
  const auto drop = [](const auto& /*concerns*/,
                       std::string_view reason) -> tl::expected<void, std::string> {
    return tl::unexpected(std::string(reason));
  };
  auto deployed = deployment::deploy({.given = options.servers, .clients = 32}, {&strategy}, drop,
                                     session.stop());
  if (session.stopped()) return exit_code::kInterrupted;
  const auto servers = must(std::move(deployed));
  const auto urls = urls_of(strategy, servers.endpoints);
  const Message stores = {{std::string(strategy.backend),
                           strategy.traits.nodes > 1 ? Message(urls) : Message(urls.front())}};
  const std::string prefix = fmt::format("lockbench:{}:", begin_result(options.output).id);
  std::set<std::string> keys;
  const auto promises = ask_promises(client, strategy, stores, prefix, keys, session.stop());
  const auto given = options.servers.find(strategy.backend);
  const bool cleaned = given == options.servers.end() ||
                       remove_keys(keys, given->second, strategy, session.console());
  const bool broken = std::ranges::any_of(
      promises, [](const Promise& one) { return one.state == Promise::State::broken; });
  const bool printed =
      print_text(options.output.format == Format::json ? to_json(promises, client)
                                                       : to_text(promises, client));
  return exit_code_of({.interrupted = session.stopped(),
                       .exclusion_broken = broken,
                       .errors = !printed || !cleaned});
}

}  // namespace

Command check_client_command() {
  return make_command<CheckClientOptions>(
      {.task = kDecide,
       .summary = "Check that a client program keeps the protocol of docs/your-lock.md.",
       .example = "lockbench check-client 'node my_lock.mjs'"},
      check_client);
}

}  // namespace lockbench::cli
