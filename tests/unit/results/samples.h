#pragma once

#include <gtest/gtest.h>

#include "results/file/json.h"
#include "results/file/model.h"

namespace lockbench::results {

/// A small valid run.
inline Run simple_run(const std::string& strategy) {
  Run run;
  run.strategy = strategy;
  run.backend = "redis";
  return run;
}

/// The smallest valid result.
inline Result minimal_result() {
  Result result;
  result.id = "20250101-120000-abcd";
  result.started_at = "2025-01-01T12:00:00Z";
  result.lockbench.version = "0.1.0";
  return result;
}

inline Distribution sample_distribution() {
  return {.count = 1000,
          .mean = 0.0002,
          .stddev = 1.5e-5,
          .min = 1e-7,
          .p50 = 8.3e-5,
          .p90 = 0.0004,
          .p95 = 0.0007,
          .p99 = 0.00142,
          .p999 = 0.003,
          .max = 12.3,
          .relative_error = 0.0078125,
          .buckets = {{8.3e-5, 900}, {0.00142, 99}, {12.3, 1}},
          .overflow = 0,
          .censored = {2, {{0.003, 1}, {12.3, 1}}, 0},
          .at_least = {"p999", "max"}};
}

/// A run with its load but without figures.
inline Run run_with_its_load() {
  Run run = simple_run("redis-set-nx");
  run.repetition = 2;
  run.load = Load{.name = "demand",
                  .clients = 32,
                  .hold_seconds = 0.002,
                  .rate = 350,
                  .rtt_seconds = 0.001,
                  .hot_set = "share=50%,keys=2500,move=10s",
                  .trace = "tpcc.csv"};
  run.interrupted = true;
  run.warmup_seconds = 0.5;
  run.duration_seconds = 3.01;
  run.generator = {.cpu_seconds = 2.5,
                   .cpu_share = 0.4,
                   .valid = false,
                   .reasons = {"the generator used 95 % of the processor"},
                   .machine_cpu_share = 0.85,
                   .other_cpu_share = 0.02,
                   .steal_share = 0.01,
                   .pressure_share = 0.3,
                   .clients_on = "fibers",
                   .threads = 3,
                   .busiest_thread_share = 0.91};
  return run;
}

inline std::vector<Rank> sample_ranks() {
  return {{.rank = 0, .host = "a", .clients = 4, .sections = 100, .share = 0.5},
          {.rank = 1,
           .host = "b",
           .clients = 4,
           .sections = 100,
           .share = 0.5,
           .acquire_p50 = 0.001,
           .acquire_p99 = 0.004,
           .cpu_seconds = 1,
           .cpu_share = 0.2,
           .lag_p99_seconds = 0.0001,
           .late_seconds = 0.01,
           .outlier = true,
           .lost = true,
           .notes = {"it was lost"}}};
}

/// Every field holds something other than its default.
inline Run full_run() {
  Run run = run_with_its_load();
  run.sections = 124000;
  run.sections_per_second = 41234.5;
  run.lock_taken = 0.97;
  run.outcomes = {124000, 12, 3, 4, 5, 6};
  for (const auto& field : kRunDistributions) run.*field.member = sample_distribution();
  std::uint64_t count = 1;
  for (const auto& field : kRunCounts) run.*field.member = ++count;
  run.releases_not_owner = 8;
  run.releases_failed = 9;
  run.commands = {{"SET", sample_distribution()}};
  run.wait = {1e-4, 0.1, 0.002};
  run.attempts_per_grant = 1.25;
  run.commands_per_section = 2.25;
  run.herd_factor = 1.5;
  run.server_cpu_seconds_per_section = 1.3e-5;
  run.bytes_per_section = 312.5;
  run.server_commands_per_section = 20;
  run.fairness = {
      .jain = 0.987,
      .longest_streak = 17,
      .longest_wait_seconds = 12.3,
      .longest_wait_at_least = true,
      .per_client = {15500, 15501},
      .by_client = ByClient{
          .p50 = 9e-5, .p99 = 0.002, .p999 = 12.3, .worst_p99 = 0.003, .at_least = {"p999"}}};
  run.acquire_by_mode = {.exclusive = sample_distribution(), .shared = sample_distribution()};
  run.transactions = {.locks_per_second = 16100.25,
                      .aborts = 14,
                      .retries = 13,
                      .deadlocks = 6,
                      .acquire = sample_distribution(),
                      .acquire_service = sample_distribution()};
  run.renewal = {.renewals = 30,
                 .failures = 2,
                 .lost = 1,
                 .commands_per_second = 10.5,
                 .duration = sample_distribution(),
                 .slip = sample_distribution(),
                 .margin = sample_distribution()};
  run.quorum = {.nodes = 3,
                .votes = {{"127.0.0.1:7001", 50, 6, 1}, {"127.0.0.1:7002", 51, 5, 2}},
                .split_votes = 4,
                .rounds_per_grant = 1.5,
                .node_seconds = {sample_distribution(), Distribution()},
                .validity = sample_distribution()};
  run.program = {
      .name = "redis-py", .version = "4.3", .processes = 2, .echo = sample_distribution()};
  run.application = {.unprotected = 1, .pool_timeouts = 2, .pool_wait = sample_distribution()};
  run.replication = {.replicas = 2, .refusals = 3, .wait = sample_distribution()};
  run.audit = {.increments = 124000,
               .counter = 123988,
               .lost_updates = 12,
               .lost_updates_max = 15,
               .overlaps = 3,
               .overlap_seconds = 0.001,
               .fence_regressions = 1,
               .stale_writes_rejected = 2,
               .resource_failures = 5,
               .contended_grants = 120000,
               .violations_per_million = 162.5,
               .verdict = Verdict::violated};
  run.series = {{1, true, 40000, 8e-5, 0.001, 1, 7, 1}, {2, false, 41000, 8e-5, 0.002, 2, 6, 1}};
  run.ranks = sample_ranks();
  run.faults = {{"store-kill", 2.5, 3.5, 0.12, 0.01},
                {"delay:5ms", 4.5, std::nullopt, std::nullopt, 0.2}};
  run.errors = {"connection refused: 127.0.0.1:6379"};
  return run;
}

inline std::vector<Hazard> sample_hazards() {
  return {{.scenario = "late-release",
           .strategy = "redis-set-nx",
           .expected = "foreign-release",
           .observed = "safe",
           .agrees = false,
           .evidence = {{"reason", std::string("the \"second\" still held its lock afterwards")},
                        {"belief_gap_seconds", -0.25}},
           .timeline = {{0.001, "holder", "asks for the lock"}}}};
}

inline std::vector<Capacity> sample_capacity() {
  return {{.strategy = "redis-queue",
           .objective = "acquire.p99<20ms",
           .clients = 32,
           .keys = 2,
           .lowest = 400,
           .highest = 420,
           .ceiling = 500,
           .limit = "lock",
           .limit_reason = "hold 2 ms and handoff 0.2 ms leave 455 sections/s",
           .confirmed = true,
           .violated = false,
           .planned_rate = 200,
           .utilisation = 0.5,
           .headroom = 1,
           .keys_needed = 3,
           .rates = {{.rate = 400,
                      .decision = "kept",
                      .samples = 4'800,
                      .steps = 4,
                      .figure_low = 0.012,
                      .figure_high = 0.018,
                      .rho = 0.88,
                      .acquire = sample_distribution(),
                      .reason = "acquire.p99 is 12 ms to 18 ms"},
                     {.rate = 420,
                      .decision = "missed",
                      .samples = 15'120,
                      .steps = 12,
                      .missed_steps = 5,
                      .invalid_steps = 1,
                      .figure_low = 0.021,
                      .figure_high = 0.04,
                      .rho = 0.9,
                      .acquire = sample_distribution(),
                      .reason = "acquire.p99 is 21 ms to 40 ms"}}}};
}

inline std::vector<Simulation> sample_simulation() {
  return {{.strategy = "redis-set-nx-lua",
           .swept = SweptValue{.option = "ttl", .value = "3s", .seconds = 3, .number = 3},
           .clients = 10,
           .keys = 2,
           .seeds = 3,
           .first_seed = 1,
           .sections = 2'000'000,
           .simulated_seconds = 86'400,
           .violations = 12,
           .per_million = {6, 3.1, 10.5},
           .per_year = {4'383, 2'265, 7'656},
           .causes = {{"client-pause", 11}, {"failover", 1}},
           .lost_updates = 9,
           .lost_updates_fenced = 1,
           .availability = 0.9995,
           .longest_outage_seconds = 12.5,
           .acquire = sample_distribution(),
           .regions = {{"eu", sample_distribution()}},
           .errors = {"redis-0:6379: no answer in time"}}};
}

/// Adds a watch's members to a result.
inline void add_sample_watch(Result& result) {
  Observed family;
  family.store = "redis";
  family.family = "order";
  family.source = "CLIENT TRACKING";
  family.accuracy = "at_least";
  family.locks = 3;
  family.acquisitions = 12;
  family.acquisitions_per_second = 1.5;
  family.releases = 9;
  family.renewals = 4;
  family.expired_while_held = 1;
  family.undecided = 1;
  family.taken_over = 1;
  family.no_ttl = family.without_ttl_now = 1;
  family.held_now = 1;
  family.waiting_now = 2;
  family.most_waiting = 3;
  family.oldest_hold = 1.5;
  family.hold = family.wait.emplace() = sample_distribution();
  family.margin_min = 0.25;
  family.largest_share = 0.5;
  family.owner_share = 0.9;
  family.hold_share = 0.96;
  family.missed = 7;
  Observed sampled;
  sampled.store = "postgres";
  sampled.family = "other";
  sampled.source = "looks at pg_locks";
  sampled.accuracy = "sampled";
  result.observed = {std::move(family), std::move(sampled)};
  result.locks = {{.store = "redis",
                   .endpoint = "127.0.0.1:6379",
                   .family = "order",
                   .lock = "lock:order:7",
                   .shape = "token",
                   .trouble = "expired",
                   .holder = "0123456789",
                   .held_seconds = 1.5,
                   .ttl_left_seconds = 8.5,
                   .waiting_now = 2,
                   .acquisitions = 5,
                   .expired_while_held = 1,
                   .most_waiting = 3,
                   .history = {{1.5, "granted", "0123456789", 0}}}};
  result.findings = {{.kind = "expired",
                      .store = "redis",
                      .endpoint = "127.0.0.1:6379",
                      .family = "order",
                      .lock = "lock:order:7",
                      .times = 1,
                      .first_seconds = 2.5,
                      .last_seconds = 4.5,
                      .over = true,
                      .evidence = "at least 1 of 11 ended holdings ended by expiry",
                      .advice = "renew the lock"}};
  result.sources = {{.store = "redis",
                     .endpoint = "127.0.0.1:6379",
                     .way = "CLIENT TRACKING",
                     .accuracy = "at_least",
                     .waiters = "LLEN of queues",
                     .unseen = {"attempts that were refused"},
                     .no_locks = 3,
                     .watched_seconds = 60,
                     .blind_seconds = 2.5,
                     .missed = 7,
                     .commands = 1200}};
}

inline Result full_result() {
  Result result = minimal_result();
  result.command = {"run", "redis-*", "--clients", "8"};
  add_sample_watch(result);
  result.capacity = sample_capacity();
  result.simulation = sample_simulation();
  result.hazards = sample_hazards();
  result.interrupted = true;
  result.lockbench = {"0.1.0", "05a4e27", "Release"};
  result.environment = {"Example CPU", 2, "6.1.0", 8ULL << 30, {}};
  result.environment.servers["redis"] = {.version = "7.0.15",
                                         .endpoints = {"127.0.0.1:6379"},
                                         .encryption = "TLS",
                                         .warnings = {"the password is known to all"}};
  result.workload = {{"clients", std::int64_t{8}},
                     {"hold", 0.002},
                     {"duration", 3.0},
                     {"quiet", false},
                     {"rate", nullptr},
                     {"wait", std::string("poll:10ms")},
                     {"threshold", std::vector<std::string>{"acquire.p99<5ms"}}};
  result.skipped = {{"etcd", "not built"}};
  result.runs = {full_run(), simple_run("none")};
  result.runs[1].load = result.runs[0].load;
  return result;
}

/// A result in which all texts are `text`.
inline Result result_of_texts(const std::string& text) {
  Result result = full_result();
  result.id = result.started_at = result.environment.cpu = result.environment.kernel = text;
  result.command = {"run", text};
  result.environment.servers = {{text, {text, {text}}}};
  result.workload = {{text, text}};
  result.skipped = {{text, text}};
  Run& run = result.runs[0];
  run.strategy = run.backend = text;
  run.errors = run.generator.reasons = {text};
  run.faults = {{text, 1, 2, 1, 0}};
  result.capacity->front().strategy = result.capacity->front().objective = text;
  Simulation& simulated = result.simulation->front();
  simulated.strategy = simulated.regions.front().region = text;
  simulated.swept = {text, text};
  simulated.causes = {{text, 1}};
  simulated.errors = {text};
  for (Hazard& hazard : *result.hazards) {
    hazard.scenario = hazard.strategy = hazard.observed = hazard.expected = text;
    hazard.evidence = {{text, text}, {"reason", text}};
    hazard.timeline = {{1, text, text}};
  }
  for (Observed& family : *result.observed) family.family = family.store = text;
  for (ObservedLock& lock : result.locks) {
    lock.lock = lock.family = text;
    lock.history = {{.t = 1, .what = text, .holder = text}};
  }
  for (ObservedFinding& finding : result.findings) finding.evidence = finding.advice = text;
  return result;
}

/// Runs without held locks and with 10,000, as the command `renewal` makes them.
inline Result sample_renewal() {
  Result result = minimal_result();
  result.runs = {full_run(), full_run()};
  result.runs[0].load = {.clients = 8, .held_locks = 0};
  result.runs[1].load = {.clients = 8, .held_locks = 10'000};
  result.runs[1].costs = {.throughput = Cost{0.04, Interval{0.012, 0.068}}};
  return result;
}

/// A run on five nodes, as the command `quorum` makes it.
inline Result sample_quorum() {
  Result result = minimal_result();
  result.runs = {full_run()};
  result.runs[0].strategy = "redlock";
  result.runs[0].load = {.clients = 1, .nodes = Nodes{.count = 5}};
  result.runs[0].costs = {.node_seconds = Cost{40e-6, Interval{38e-6, 42e-6}}, .node_commands = 2};
  return result;
}

inline Result read_back(const Result& result) {
  auto read = from_json(to_json(result));
  EXPECT_TRUE(read.has_value()) << read.error();
  return read.value_or(Result{});
}

}  // namespace lockbench::results
