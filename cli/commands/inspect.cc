#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/console/session.h"
#include "strategies/redis/client/rights.h"
#include "strategies/registry.h"
#include "strategies/store.h"

// The commands that only read the catalogue, or remove keys: list, clean.

namespace lockbench::cli {
namespace {

using Json = nlohmann::ordered_json;

/// 1/3 is "ttl/3", 0.8 is "0.8 ttl".
std::string share_text(double share) {
  const double parts = 1 / share;
  const bool whole = std::abs(parts - std::round(parts)) < 1e-6;
  return whole ? fmt::format("ttl/{:.0f}", parts) : fmt::format("{:.2g} ttl", share);
}

std::string renewal_text(const RenewalTiming& timing) {
  if (timing.every) return fmt::format("every {}", format_duration(*timing.every));
  if (timing.first_share == timing.share) return "every " + share_text(timing.share);
  return fmt::format("first after {}, then every {}", share_text(timing.first_share),
                     share_text(timing.share));
}

Json traits_json(const Traits& traits) {
  Json json = {{"expiry", to_string(traits.expiry)},
               {"release_check", to_string(traits.release_check)},
               {"renew_check", nullptr},
               {"promises_exclusion", traits.promises_exclusion},
               {"updates", traits.updates},
               {"one_process", traits.one_process},
               {"ttl_in_seconds", traits.ttl_in_seconds},
               {"observed", traits.observed},
               {"semaphore", traits.permits},
               {"reentrant", traits.reentrant},
               {"fencing", traits.fencing},
               {"renews", traits.renews.has_value()},
               {"renewal", traits.renews ? Json(renewal_text(*traits.renews)) : Json(nullptr)},
               {"renewable", traits.renewable},
               {"fair", traits.fair},
               {"shared", traits.shared},
               {"nodes", traits.nodes},
               {"needs_replicas", traits.needs_replicas},
               {"waiting", to_string(traits.waiting)},
               {"waiting_choices", Json::array()}};
  if (traits.renew_check) json["renew_check"] = to_string(*traits.renew_check);
  for (const WaitKind kind : traits.waiting_choices) {
    json["waiting_choices"].push_back(to_string(kind));
  }
  return json;
}

std::string_view reentry_text(Reentry reentry) {
  if (reentry == Reentry::counted) return "reentrant";
  return reentry == Reentry::uncounted ? "reentrant, uncounted" : "not reentrant";
}

Json libraries_json(const std::vector<Library>& libraries) {
  Json json = Json::array();
  for (const Library& one : libraries) {
    json.push_back({{"language", one.language},
                    {"name", one.name},
                    {"settings", one.settings},
                    {"reentry", reentry_text(one.reentry)},
                    {"similar", one.similar}});
  }
  return json;
}

/// All that `list` shows of a strategy; both formats are made from it.
Json strategy_json(const Descriptor& strategy) {
  Json hazards = Json::array();
  for (const KnownHazard& hazard : strategy.hazards) {
    hazards.push_back({{"scenario", hazard.scenario}, {"outcome", to_string(hazard.outcome)}});
  }
  const auto served = strategy.not_built.empty() ? deployment::can_serve(strategy.backend)
                                                 : tl::unexpected(std::string(strategy.not_built));
  return {{"name", strategy.name},
          {"backend", strategy.backend},
          {"summary", strategy.summary},
          {"acquire", strategy.acquire_commands},
          {"release", strategy.release_commands},
          {"renew", strategy.renew_commands},
          {"source", strategy.source},
          {"libraries", libraries_json(strategy.libraries)},
          {"traits", traits_json(strategy.traits)},
          {"hazards", std::move(hazards)},
          {"available", served.has_value()},
          {"unavailable_because", served ? Json(nullptr) : Json(served.error())}};
}

/// Of an object, the members that are true, and the values of the others.
std::string text_of(const Json& value, bool named = true) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> texts;
  for (const auto& [name, member] : value.items()) {
    if (member.is_null() || member == false || (member.is_structured() && member.empty())) continue;
    const std::string text = member == true ? name : text_of(member, false);
    const bool with_name = named && value.is_object() && member != true;
    texts.push_back(with_name ? fmt::format("{} {}", name, text) : text);
  }
  return fmt::format("{}", fmt::join(texts, value.is_array() ? "; " : ", "));
}

void print_strategy(const Json& strategy) {
  fmt::print("{}\n", strategy["name"].get<std::string>());
  // Left out of this build: nothing else is known of it.
  const bool absent = strategy["summary"] == "";
  for (const auto& [name, value] : strategy.items()) {
    if (name == "name" || (absent && name != "unavailable_because") || value.is_null()) continue;
    const std::string text = text_of(value);
    if (!text.empty()) fmt::print("  {:<9} {}\n", name, text);
  }
  fmt::print("\n");
}

struct ListOptions {
  static constexpr std::string_view kCommand = "list";
  Format format = Format::table;
  bool redis_acl = false;

  void declare(OptionList& options) {
    options.add("format", "NAME", format,
                one_of<Format>({{"table", Format::table}, {"json", Format::json}}),
                "format on stdout");
    options.add_flag("redis-acl", redis_acl,
                     "show instead the Redis command that creates a user with only the rights that "
                     "the Redis strategies need");
  }
};

int list(const ListOptions& options) {
  if (options.redis_acl) {
    fmt::print("{}\n", redis::acl_command(all_strategies()));
    return 0;
  }
  Json strategies = Json::array();
  for (const Descriptor* strategy : with_absent()) strategies.push_back(strategy_json(*strategy));
  if (options.format == Format::json) {
    fmt::print("{}\n", strategies.dump(1));
  } else {
    for (const Json& strategy : strategies) print_strategy(strategy);
  }
  return 0;
}

/// Strict, because the id becomes part of patterns and names of what is deleted.
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
                "id of the run: the second part of its keys and the name of its result file; "
                "required");
    options.heading("Stores");
    declare_servers(options, servers);
    options.add("store-timeout", "D", command_timeout,
                duration(std::chrono::milliseconds(1), std::chrono::hours(1)),
                "time to wait for one answer from a store");
    options.only({"config"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& /*options*/) const {
    if (!run) throw UsageError("clean requires --run ID");
    if (std::ranges::any_of(servers, [](const auto& urls) { return !urls.second.empty(); })) return;
    throw UsageError("nothing to clean: give servers, such as --redis URL");
  }
};

/// False if something may be left.
bool clean_server(const StoreKind& kind, const std::string& url, const CleanOptions& options,
                  Session& session) {
  const std::string server =
      fmt::format("{} {}", kind.name, presentable(kind.display(url).value_or("?")));
  if (kind.listing == Listing::none) {
    fmt::print("{}: cannot list keys; those of the run expire with their TTL\n", server);
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

Command list_command() {
  return make_command<ListOptions>(
      {.task = kDecide,
       .summary = "List every strategy: protocol, traits, known hazards, availability.",
       .example = "lockbench list --format json"},
      list);
}

Command clean_command() {
  return make_command<CleanOptions>(
      {.task = kDecide,
       .summary = "Remove what a killed run left in a store.",
       .example = "lockbench clean --run 20261121T012530Z-4f3a9c --redis redis://host:6379"},
      clean);
}

}  // namespace lockbench::cli
