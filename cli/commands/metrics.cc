#include "cli/commands/metrics.h"

#include <fmt/format.h>

#include <array>

#include "cli/console/deploy.h"
#include "cli/console/facts.h"
#include "cli/console/ranks.h"
#include "results/file/loads.h"
#include "strategies/carrier.h"
#include "testbed/servers/machine.h"

namespace lockbench::cli {
namespace {

/// The options that are labels of lockbench_run_info.
constexpr std::array kRunFacts = {"clients", "keys", "hold",  "think",    "rate", "arrival",
                                  "ttl",     "wait", "renew", "resource", "rtt"};

exporter::Facts facts_of(const LoadOptions& options, const std::string& run_id) {
  exporter::Facts facts;
  facts.run.emplace_back("run", run_id);
  auto record = run_record(options);
  leave_to_the_loads(options, record);
  for (const char* name : kRunFacts) {
    facts.run.emplace_back(name, results::value_text(record.at(name)));
  }
  facts.build = build_facts();
  facts.deployments = options.metrics.deployments;
  if (Ranks::joined() != nullptr) facts.rank = "0";
  return facts;
}

/// How many connections to /metrics may be open at once: what the limit on open files leaves over.
unsigned scrape_connections(const LoadOptions& options,
                            const std::vector<const Descriptor*>& strategies) {
  constexpr unsigned kReserve = 64, kMin = 16;
  const std::uint64_t load = deployment::open_files_for(request_of(options), strategies) + kReserve;
  if (testbed::raise_open_file_limit(load + exporter::kMostConnections)) {
    return exporter::kMostConnections;
  }
  const std::uint64_t limit = testbed::hard_open_file_limit();
  return limit > load + kMin ? static_cast<unsigned>(limit - load) : kMin;
}

}  // namespace

void leave_to_the_loads(const LoadOptions& options, OptionRecord& record) {
  if (options.points().size() <= 1) return;
  const loadgen::Decided& decided = options.decided;
  if (!decided.clients) record["clients"] = nullptr;
  if (!decided.hold) record["hold"] = nullptr;
  if (!decided.rate) record["rate"] = nullptr;
  if (!decided.rtt) record["rtt"] = nullptr;
}

Metrics Metrics::start(const LoadOptions& options, const std::vector<Selected>& selected,
                       const std::string& run_id, Console& console) {
  Metrics metrics;
  const MetricsOptions& asked = options.metrics;
  if (!asked.listen && !asked.push) return metrics;
  must(exporter::available(), asked.listen ? "--metrics-listen" : "--push");
  metrics.linger_ = asked.linger;
  if (asked.push) metrics.push_ = must(exporter::parse_push_target(*asked.push), "--push");
  std::vector<const Descriptor*> strategies;
  for (const Selected& one : selected) {
    if (one.strategy->not_built.empty()) strategies.push_back(one.strategy);
  }
  const auto redis = options.servers_of("redis");
  const int nodes = redis.empty() ? options.workload.nodes : static_cast<int>(redis.size());
  metrics.metrics_ = std::make_shared<exporter::RunMetrics>(strategies, nodes);
  metrics.exporter_ = exporter::Exporter::make(metrics.metrics_, facts_of(options, run_id));
  if (!asked.ready_at_once) {
    for (const Descriptor* strategy : strategies) {
      metrics.metrics_->set_failing(*strategy, "it has not worked yet");
    }
  }
  if (!asked.listen) return metrics;
  const exporter::ListenAddress serving =
      must(metrics.exporter_->serve(*asked.listen, scrape_connections(options, strategies)),
           "--metrics-listen");
  console.note(fmt::format("metrics on http://{}/metrics", serving.to_string()));
  return metrics;
}

bool Metrics::push(Console& console) {
  if (!push_) return true;
  if (const auto pushed = exporter_->push(*push_); !pushed) {
    console.warn("--push: " + pushed.error());
    return false;
  }
  console.note("metrics pushed to " + push_->display());
  return true;
}

void Metrics::linger(Console& console, const std::stop_token& stop) {
  if (linger_ <= Duration::zero() || stop.stop_requested()) return;
  console.note(
      fmt::format("metrics are served for another {}; Ctrl-C ends it", format_duration(linger_)));
  Carrier::current().wait(nullptr, BootClock::now() + linger_, stop);
}

}  // namespace lockbench::cli
