#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/console/session.h"
#include "cli/console/watch_view.h"
#include "exporter/exporter.h"
#include "results/file/save.h"
#include "strategies/carrier.h"
#include "strategies/store.h"
#include "strategies/thread.h"
#include "watch/workload.h"

namespace lockbench::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kBetweenPictures = 1s, kBetweenKeeps = 10s;
/// If it wakes this late, its process was stopped or its machine suspended.
constexpr Duration kStoodStill = 2s;

/// An empty name, as after a trailing comma, would match all keys of the store.
ValueType<std::string> lock_name() {
  return parsed([](const std::string& text) -> tl::expected<std::string, std::string> {
    if (!text.empty()) return text;
    return tl::unexpected<std::string>(
        "\"\" is not the name of a lock: names are separated by commas");
  });
}

ValueType<std::string> family_expression() {
  return parsed([](const std::string& text) {
    return watch::Families::parse(text).map([&](const auto&) { return text; });
  });
}

/// The stores' help is written for commands that can start private servers.
void say_that_it_is_watched(Option& option) {
  using Words = std::pair<std::string_view, std::string_view>;
  for (const auto& [from, to] : {Words{"use ", "watch "}, Words{" instead of a private one", ""},
                                 Words{"the nodes of Redlock, other strategies use the first",
                                       "each server is watched by itself"}}) {
    const std::size_t at = option.help.find(from);
    if (at != std::string::npos) option.help.replace(at, from.size(), to);
  }
}

/// Shows the watch as it goes on: on a terminal the tables, redrawn every second; elsewhere lines.
class Display {
 public:
  Display(const WatchOptions& options, Console& console)
      : console_(console),
        draws_(!options.output.quiet && !options.once && !options.no_screen &&
               options.output.events != kStdout && is_terminal(stderr)),
        // A watch with an end reports what it could not see then.
        lines_(!options.duration) {}
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;
  /// Moves the cursor below the tables.
  ~Display() {
    if (drawn_) static_cast<void>(write_to(STDERR_FILENO, "\r\n"));
  }

  /// False if the terminal is gone.
  bool show(const watch::Picture& picture) {
    if (draws_) {
      const ScreenSize size = screen_size(STDERR_FILENO);
      const results::TextStyle style{
          .color = may_color(stderr), .ascii = !is_utf8_locale(), .width = size.columns};
      drawn_ = true;
      return write_to(STDERR_FILENO,
                      frame(watch_view(picture, size.lines, style, console_.latest())));
    }
    for (const std::string& line : lines_.lines(picture)) {
      console_.note(rfc3339(std::chrono::system_clock::now()) + " " + line);
    }
    return true;
  }

 private:
  Console& console_;
  const bool draws_;
  bool drawn_ = false;
  WatchLines lines_;
};

/// Serves /metrics; null if they are not asked for.
std::unique_ptr<exporter::HttpEndpoint> serve_metrics(
    const WatchOptions& options, std::shared_ptr<const exporter::WatchMetrics> metrics,
    Console& console) {
  if (!options.metrics.listen) return nullptr;
  exporter::Facts facts{.run = {}, .build = build_facts()};
  if (options.deployment) {
    for (const auto& [store, urls] : options.servers)
      facts.deployments[store] = *options.deployment;
  }
  auto serving =
      must(exporter::serve(std::move(metrics), facts, *options.metrics.listen), "--metrics-listen");
  console.note(fmt::format("metrics on http://{}/metrics", serving->address().to_string()));
  return serving;
}

/// The given servers, without their versions: asking for those requires more permissions.
std::map<std::string, results::Server> server_facts(const WatchOptions& options) {
  std::map<std::string, results::Server> facts;
  for (const auto& [store, urls] : options.servers) {
    const StoreKind* const kind = find_store_kind(store);
    if (urls.empty() || kind == nullptr) continue;
    results::Server& server = facts[store];
    for (const std::string& url : urls) {
      server.endpoints.push_back(kind->display(url).value_or("?"));
    }
  }
  return facts;
}

/// The servers that could not be reached at the start, and why.
using Unreached = std::vector<std::pair<watch::SourceFacts, std::string>>;

/// `stores`: of each source. A watch without an end may begin with some of its servers away; else
/// the first one that cannot be reached is refused. A stop ends it early.
Unreached reach(const std::vector<std::unique_ptr<watch::Source>>& sources,
                const std::vector<std::string>& stores, bool has_end, const std::stop_token& stop) {
  Unreached unreached;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto reached = sources[i]->reach(stop);
    if (stop.stop_requested()) break;
    if (reached) continue;
    const bool none_is_left = unreached.size() + 1 == sources.size();
    if (has_end || none_is_left) must(reached);
    unreached.push_back(
        {{.store = stores[i], .endpoint = sources[i]->endpoint()}, reached.error()});
  }
  return unreached;
}

/// One watch from start to end: its sources, each on its own thread, and the ledger that they fill.
class WatchCommand {
 public:
  /// `metrics`: null without --metrics-listen.
  WatchCommand(const WatchOptions& options, results::Result result,
               std::vector<std::unique_ptr<watch::Source>> sources, Unreached unreached,
               Session& session, exporter::WatchMetrics* metrics)
      : options_(options),
        result_(std::move(result)),
        session_(session),
        metrics_(metrics),
        file_(options.output.out, session.console()),
        ledger_(options.ledger, options.grouping()),
        sources_(std::move(sources)),
        unreached_(std::move(unreached)) {}
  WatchCommand(const WatchCommand&) = delete;
  WatchCommand& operator=(const WatchCommand&) = delete;

  int carry_out() {
    begin();
    watch_on();
    threads_.clear();
    const TimePoint now = TimePoint::clock::now();
    const watch::Picture picture = read(now);
    result_.interrupted = session_.stopped() && options_.duration.has_value();
    watch::add_to(result_, picture);
    Ending ending{.interrupted = result_.interrupted};
    // Exit 2 if a server could not be seen at the end.
    ending.errors = std::ranges::any_of(picture.sources, [](const auto& one) { return !one.sees; });
    if (!options_.workload.empty()) ending.errors |= !save_workload(now);
    return end(ending);
  }

 private:
  void begin() {
    const TimePoint now = BootClock::now();
    ledger_.begin(now);
    for (const auto& [facts, why] : unreached_) {
      ledger_.facts(facts);
      ledger_.blind(facts.endpoint, now, why);
    }
    start_sources();
  }

  void start_sources() {
    for (const auto& source : sources_) {
      const auto failed = [this, &source](const std::string& why) {
        session_.console().warn("a watch ended: " + why);
        ledger_.blind(source->endpoint(), TimePoint::clock::now(), why);
      };
      auto started = Thread::start(
          [this, &source](const std::stop_token& stop) { source->run(ledger_, stop); }, failed);
      if (started) {
        threads_.push_back(*std::move(started));
      } else {
        failed(started.error());
      }
    }
  }

  /// What came while the process stood still has no times: sources begin anew, as after an outage.
  void stood_still(TimePoint since) {
    threads_.clear();
    for (const auto& source : sources_) {
      ledger_.blind(source->endpoint(), since, "the watch itself stood still");
    }
    start_sources();
  }

  void watch_on() {
    Display display(options_, session_.console());
    const std::stop_token stop = session_.stop();
    std::optional<TimePoint> until;
    TimePoint next = TimePoint::clock::now();
    if (options_.duration) until = next + *options_.duration;
    TimePoint keep_at = next + kBetweenKeeps;
    for (bool stay = true; stay && !stop.stop_requested();) {
      next += kBetweenPictures;
      const TimePoint rests_at = TimePoint::clock::now();
      const TimePoint wake_at = until ? std::min(next, *until) : next;
      Carrier::current().wait(nullptr, wake_at, stop);
      const Duration late = TimePoint::clock::now() - std::max(wake_at, rests_at);
      if (late > kStoodStill) stood_still(rests_at);
      const TimePoint now = TimePoint::clock::now();
      if (until && now >= *until) break;
      const watch::Picture picture = read(now);
      stay = display.show(picture);
      if (now >= keep_at) {
        keep_at = now + kBetweenKeeps;
        keep(picture);
      }
      next = std::max(next, now - kBetweenPictures);  // after a suspension, no catching up
    }
  }

  watch::Picture read(TimePoint now) {
    watch::Picture picture = ledger_.read(now);
    picture.deployment = options_.deployment.value_or("");
    for (watch::SourcePicture& shown : picture.sources) {
      for (const auto& source : sources_) {
        if (source->endpoint() == shown.facts.endpoint) shown.commands = source->commands();
      }
    }
    if (metrics_ != nullptr) metrics_->show(picture);
    return picture;
  }

  /// Saves what was seen so far, in case the watch is killed.
  void keep(const watch::Picture& picture) {
    if (options_.output.out.empty() || !file_.has_time()) return;
    results::Result so_far = result_;
    so_far.interrupted = true;
    watch::add_to(so_far, picture);
    file_.keep(so_far);
  }

  bool save_workload(TimePoint now) {
    Console& console = session_.console();
    const auto workload = watch::workload_of(ledger_.usage(now));
    const auto written = workload.and_then(
        [&](const auto& seen) { return watch::write_workload(seen, options_.workload); });
    if (!written) {
      console.warn("--workload: " + written.error());
      return false;
    }
    for (const std::string& remark : workload->remarks) console.note("workload: " + remark);
    console.note("workload in " + options_.workload);
    return true;
  }

  int end(Ending ending) {
    if (!options_.output.out.empty()) return finish(result_, options_.output, file_, ending);
    ending.errors |= !save_report(result_, options_.output.report, "", session_.console());
    if (options_.output.events != kStdout) {
      ending.errors |= !print_text(render(result_, options_.output));
    }
    return exit_code_of(ending);
  }

  const WatchOptions& options_;
  results::Result result_;
  Session& session_;
  exporter::WatchMetrics* const metrics_;
  ResultFile file_;
  watch::Ledger ledger_;
  std::vector<std::unique_ptr<watch::Source>> sources_;
  const Unreached unreached_;
  std::vector<Thread> threads_;  ///< last: they use the others
};

int watch_locks(const WatchOptions& options) {
  results::Result result = begin_result(options.output);
  watch::add_to(result, {});
  if (options.output.out.empty()) {
    check_output(options.output, result);
  } else {
    out_path(options.output, result);
  }
  if (!options.workload.empty()) must(results::check_writable(options.workload), "--workload");
  std::vector<std::unique_ptr<watch::Source>> sources;
  std::vector<std::string> stores;
  std::set<std::string> endpoints;
  for (const auto& [store, urls] : options.servers) {
    for (const std::string& url : urls) {
      sources.push_back(must(watch::make_source(store, url, options.request)));
      stores.push_back(store);
      const std::string& endpoint = sources.back()->endpoint();
      if (!endpoints.insert(endpoint).second) {
        throw UsageError("--{}: {} is given twice", store, endpoint);
      }
    }
  }

  Session session(options.output, false, "stopping");
  const auto metrics = std::make_shared<exporter::WatchMetrics>();
  const auto exported = serve_metrics(options, metrics, session.console());
  Unreached unreached = reach(sources, stores, options.duration.has_value(), session.stop());
  if (session.stopped()) return exit_code::kInterrupted;

  result.environment.servers = server_facts(options);
  WatchOptions used = options;
  result.workload = options_of(used).record();
  WatchCommand command(options, std::move(result), std::move(sources), std::move(unreached),
                       session, exported == nullptr ? nullptr : metrics.get());
  return command.carry_out();
}

}  // namespace

void WatchOptions::declare(OptionList& options) {
  options.heading("What to watch");
  // memcached can neither list nor watch its keys.
  options.without({"memcached"}, [&] { declare_servers(options, servers); });
  for (Option& option : options.all()) say_that_it_is_watched(option);
  options.add("locks", "PATTERN,...", request.locks, lock_name(),
              "names of the locks, with * and ?, on all servers; etcd: a prefix; ZooKeeper: paths; "
              "NATS: BUCKET/KEY",
              "keys that look like locks are proposed");
  options.add("exclude", "PATTERN,...", request.exclude, lock_name(),
              "names that match --locks but are no locks to watch", "none");
  options.add(
      "never-released", "PATTERN,...", ledger.never_released, lock_name(),
      "locks that end by expiry by design, such as schedules: their expiries are no findings",
      "families whose locks were only seen to expire");
  options.add("name", "REGEX", name, family_expression(),
              "regular expression that sorts locks into families: it matches whole names and has a "
              "group (?<family>...), such as 'lock:(?<family>[a-z]+):.*'",
              "by --locks, or by the beginning of the names");
  options.heading("How");
  options.add("budget", "R", request.budget, number(1, 100'000),
              "maximum commands per second to each server");
  options.add("most-locks", "N", request.most_locks, whole_number(1, 100'000'000),
              "maximum number of locks to follow; the others are counted and reported");
  options.add("held-longer", "D", ledger.held_longer, cli::duration(1ms, 8760h),
              "report locks that are held for longer than D",
              "ten times their family's p99; an hour for silent holders if it has no ended holds");
  options.add("store-timeout", "D", request.command_timeout, cli::duration(1ms, 1h),
              "time to wait for one answer from a store");
  options.add("duration", "D", duration, cli::duration(1ms, 8760h), "how long to watch",
              "until it is stopped");
  options.add_flag("once", once,
                   fmt::format("watch for {} or --duration, show what was seen, and end",
                               format_duration(kOnce)));
  options.add_flag("no-screen", no_screen, "print lines of text, even on a terminal");
  options.add_flag("show-owners", ledger.shows_owners,
                   "show process, application and address of holders, or the beginning of their "
                   "tokens, instead of hashes; metrics never have them");
  options.add("deployment", "NAME", deployment, printable_text(),
              "name of what is watched: the label `deployment` of all metrics, and in texts",
              "none");
  options.only({"metrics-listen"}, [&] { metrics.declare(options); });
  options.only({"report", "format", "columns", "quiet", "events", "config"},
               [&] { output.declare(options); });
  options
      .add("record", "FILE", output.out, path(),
           "also write a result file; -: write the result to stdout and print nothing else", "none")
      .effect = Effect::output;
  options
      .add("workload", "FILE", workload, path(),
           "also write the observed workload, for --config of run, capacity and choose", "none")
      .effect = Effect::output;
}

void WatchOptions::complete(const OptionList& /*options*/) {
  if (std::ranges::none_of(servers, [](const auto& urls) { return !urls.second.empty(); })) {
    throw UsageError("nothing to watch: give servers, such as --redis URL");
  }
  if (once && !duration) duration = kOnce;
  ledger.most_locks = request.most_locks;
}

watch::Families WatchOptions::grouping() const {
  if (name) return watch::Families::parse(*name).value();
  return watch::Families(request.locks);
}

Command watch_command() {
  return make_command<WatchOptions>(
      {.task = kDecide,
       .summary = "Watch the locks that applications hold on a live store; read-only.",
       .example = "lockbench watch --redis redis://host:6379 --locks 'lock:*'",
       .asks = "What happens to the locks that my applications hold right now?"},
      watch_locks);
}

}  // namespace lockbench::cli
