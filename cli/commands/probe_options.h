#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/load_options.h"

namespace lockbench::cli {

/// The options of `lockbench probe`. Checked by complete().
struct ProbeOptions : LoadOptions {
  static constexpr std::string_view kCommand = "probe";
  std::optional<Duration> duration;
  std::optional<std::string> deployment;
  std::vector<std::string> args;  ///< all of this, as given

  ProbeOptions() {
    using namespace std::chrono_literals;
    workload.clients = 4;
    workload.acquire_timeout = 2s;
    workload.ttl = 3s;
  }

  void declare(OptionList& options) {
    using namespace std::chrono_literals;
    options.add("rate", "R", workload.rate, number(0.001, 1000),
                "sections per second of each strategy; required");
    options.add("clients", "N", workload.clients, whole_number(4, 64),
                "clients of each strategy, two for each lock");
    options.add("acquire-timeout", "D", workload.acquire_timeout, cli::duration(0s, 1h),
                "time after which a client gives up; 0s: after one attempt");
    options.add("duration", "D", duration, cli::duration(1ms, 8760h), "how long to probe",
                "until it is stopped");
    options.add("deployment", "NAME", deployment, printable_text(),
                "value of the label `deployment` of all metrics", "the servers' addresses");
    options.only({"strategies", "client", "clients-per-process", "threads", "hold", "ttl", "wait",
                  "renew", "node-timeout", "wait-replicas", "wait-timeout", "store-timeout"},
                 [&] { LoadOptions::declare(options); });
    declare_servers(options, servers);
    options.at("strategies").default_text = "all that promise exclusion, on the servers given";
    options.at("renew").default_text = "the strategy's own, or else auto";
    options.at("hold").help =
        "how long a lock is held now and then, while its second client waits; 0s: never";
    options.at("hold").default_text = "1.2 times the renewal interval";
    options.only({"metrics-listen"}, [&] { metrics.declare(options); });
    options.only({"quiet", "events", "config"}, [&] { output.declare(options); });
  }

  void complete(const OptionList& options) {
    LoadOptions::complete(options);
    if (!workload.rate) {
      throw UsageError(
          "probe requires --rate: sections per second of each strategy, such as --rate 1");
    }
    if (workload.clients % 2 != 0) {
      throw UsageError(
          "--clients {} leaves a client alone: two share each lock, so use an even number",
          workload.clients);
    }
    if (options.given("hold")) return;
    const auto& renew = workload.strategy.renew;
    const bool every = renew && renew->kind == RenewPolicy::Kind::every;
    const Duration interval = every ? renew->period : RenewalTiming{}.first(workload.ttl);
    workload.hold = loadgen::DurationDistribution::constant(interval + interval / 5);
  }
};

}  // namespace lockbench::cli
