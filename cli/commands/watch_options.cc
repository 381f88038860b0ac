#include "cli/commands/watch_options.h"

#include <algorithm>

#include "cli/options/text.h"
#include "strategies/store.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

/// An empty name, as behind a last comma, would stand for all keys of the store.
ValueType<std::string> lock_name() {
  return parsed([](const std::string& text) -> tl::expected<std::string, std::string> {
    if (!text.empty()) return text;
    return tl::unexpected<std::string>("\"\" is no name of a lock: names are separated by commas");
  });
}

ValueType<std::string> family_expression() {
  return parsed([](const std::string& text) {
    return watch::Families::parse(text).map([&](const auto&) { return text; });
  });
}

/// The stores' help is written for commands that have servers of their own.
void say_that_it_is_watched(Option& option) {
  using Words = std::pair<std::string_view, std::string_view>;
  for (const auto& [from, to] : {Words{"use ", "watch "}, Words{" instead of a private one", ""},
                                 Words{"the nodes of Redlock, other strategies use the first",
                                       "each server is watched by itself"}}) {
    const std::size_t at = option.help.find(from);
    if (at != std::string::npos) option.help.replace(at, from.size(), to);
  }
}

}  // namespace

void WatchOptions::declare(OptionList& options) {
  options.heading("What to watch");
  // memcached can neither list nor watch its keys.
  options.without({"memcached"}, [&] { declare_servers(options, servers); });
  for (Option& option : options.all()) say_that_it_is_watched(option);
  options.add("locks", "PATTERN,...", request.locks, lock_name(),
              "names of the locks, with * and ?; several servers are all searched for them; etcd: "
              "a prefix; ZooKeeper: paths",
              "keys that look like locks are proposed");
  options
      .add("lock-table", "TABLE", request.lock_tables, any_text(),
           "a table of locks in PostgreSQL: \"schema.table\" with ShedLock's columns, or "
           "\"table(name,lock_until,locked_by)\"",
           "tables with ShedLock's columns")
      .comma_separated = false;
  options.add("name", "REGEX", name, family_expression(),
              "groups locks into families: an expression that matches whole names and has a group "
              "(?<family>...), such as 'lock:(?<family>[a-z]+):.*'",
              "by --locks, or by what the names begin with");
  options.heading("How");
  options.add("budget", "R", request.budget, number(1, 100'000),
              "commands per second to each server, at most");
  options.add("most-locks", "N", request.most_locks, whole_number(1, 100'000'000),
              "distinct locks to follow; more are counted, and said");
  options.add("held-longer", "D", held_longer, cli::duration(1ms, 8760h),
              "report locks that are held for longer", "ten times their family's p99");
  options.add("store-timeout", "D", request.command_timeout, cli::duration(1ms, 1h),
              "time to wait for one answer of a store");
  options.add("duration", "D", duration, cli::duration(1ms, 8760h), "how long to watch",
              "until it is stopped");
  options.add_flag("once", once,
                   fmt::format("watch for {} or --duration, show what was seen, and end",
                               format_duration(kOnce)));
  options.add_flag("no-screen", no_screen, "lines of text, also on a terminal");
  options.only({"metrics-listen"}, [&] { metrics.declare(options); });
  options.only({"report", "format", "columns", "quiet", "events", "config"},
               [&] { output.declare(options); });
  options.add("record", "FILE", output.out, path(),
              "also write a result file; -: stdout, which then shows nothing else", "none");
  options.add("workload", "FILE", workload, path(),
              "also write what was seen as a workload, for --config of run, capacity and choose",
              "none");
}

void WatchOptions::complete(const OptionList& options) {
  if (std::ranges::none_of(servers, [](const auto& urls) { return !urls.second.empty(); })) {
    throw UsageError("nothing to watch: give servers, such as --redis URL");
  }
  if (options.given("lock-table") && !options.given("postgres")) {
    throw UsageError("--lock-table requires --postgres");
  }
  if (once && !duration) duration = kOnce;
}

watch::LedgerOptions WatchOptions::ledger_options() const {
  watch::LedgerOptions options;
  options.most_locks = request.most_locks;
  options.held_longer = held_longer;
  return options;
}

watch::Families WatchOptions::grouping() const {
  if (name) return watch::Families::parse(*name).value();
  return request.locks.empty() ? watch::Families() : watch::Families(request.locks);
}

}  // namespace lockbench::cli
