#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/console/session.h"
#include "cli/options/text.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

/// Strictly, as the id becomes a part of patterns and of names that are dropped.
ValueType<std::string> run_id_text() {
  const auto parse = [](const std::string& text) -> tl::expected<std::string, std::string> {
    if (is_run_id(text)) return text;
    return tl::unexpected(fmt::format(
        "\"{}\" is not the id of a run, such as 20261121T012530Z-4f3a9c", presentable(text)));
  };
  return parsed(parse);
}

struct CleanOptions {
  static constexpr std::string_view kCommand = "clean";
  std::optional<std::string> run;
  ServerUrls servers;
  Duration command_timeout = std::chrono::seconds(3);
  OutputOptions output;

  void declare(OptionList& options) {
    options.add("run", "ID", run, run_id_text(),
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
    const bool any = std::any_of(servers.begin(), servers.end(),
                                 [](const auto& urls) { return !urls.second.empty(); });
    if (!any) throw UsageError("nothing to clean: give servers, such as --redis URL");
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

Command clean_command() {
  return make_command<CleanOptions>(
      {.task = kDecide,
       .summary = "Remove what a killed run left in a store.",
       .example = "lockbench clean --run 20261121T012530Z-4f3a9c --redis redis://host:6379"},
      clean);
}

}  // namespace lockbench::cli
