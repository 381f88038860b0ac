#include "cli/console/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <thread>

#include "cli/console/publish.h"
#include "cli/console/session.h"
#include "exporter/exporter.h"
#include "loadgen/cluster/wire.h"
#include "results/file/json.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

using loadgen::cluster::Hello;
using loadgen::cluster::Link;

constexpr Duration kMeeting = std::chrono::seconds(60);

Hello hello() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  std::array<char, 64> network{};
  if (readlink("/proc/self/ns/net", network.data(), network.size() - 1) < 0) network[0] = '?';
  Hello hello;
  hello.host = name.data();
  hello.build = build_line(build_facts());
  std::ifstream("/proc/sys/kernel/random/boot_id") >> hello.boot;
  hello.network = hello.boot + network.data();
  hello.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return hello;
}

Ranks*& instance() {
  static Ranks* ranks = nullptr;
  return ranks;
}

}  // namespace

Ranks* Ranks::joined() { return instance(); }

std::unique_ptr<Ranks> Ranks::join() {
  std::unique_ptr<Ranks> ranks(new Ranks(must(Link::make(loadgen::cluster::join_mpi))));
  ranks->meet();
  instance() = ranks.get();
  return ranks;
}

Ranks::~Ranks() {
  instance() = nullptr;
  const bool together = team_.is_complete();
  link_->send_to_others(loadgen::cluster::Kind::leave, loadgen::cluster::to_bytes(together));
  link_->close(together);
}

void Ranks::meet() {
  team_.hellos.resize(static_cast<std::size_t>(link_->size()));
  team_.hellos.front() = hello();
  const TimePoint until = link_->now() + kMeeting;
  for (int there = 1; there < link_->size();) {
    const auto message = link_->next(until);
    if (!message) throw UsageError("not all ranks connected within a minute");
    Hello& of = team_.hellos.at(static_cast<std::size_t>(message->from));
    if (message->kind != loadgen::cluster::Kind::hello ||
        !loadgen::cluster::from_bytes(message->body, of)) {
      throw UsageError("rank {} runs another build of lockbench", message->from);
    }
    ++there;
  }
  const Hello& own = team_.hellos.front();
  for (std::size_t i = 1; i < team_.hellos.size(); ++i) {
    if (team_.hellos[i].build == own.build) continue;
    throw UsageError("rank {} on {} runs another build, {}; rank 0 runs {}", i,
                     team_.hellos[i].host, team_.hellos[i].build, own.build);
  }
}

std::string Ranks::beyond_loopback() const {
  for (std::size_t i = 1; i < team_.hellos.size(); ++i) {
    if (team_.hellos[i].network != team_.hellos.front().network) {
      return fmt::format("rank {} on {} cannot reach private servers of this host", i,
                         team_.hellos[i].host);
    }
  }
  return {};
}

void Ranks::warn(Console& console) const {
  std::set<std::string> hosts;
  for (std::size_t i = 0; i < team_.hellos.size(); ++i) {
    const Hello& hello = team_.hellos[i];
    const int beside = team_.ranks_beside(static_cast<int>(i));
    if (!hosts.insert(hello.boot).second || beside <= hello.cores) continue;
    console.warn(
        fmt::format("warning: {} ranks share the {} cores of {}: their figures are those "
                    "of a host that is too small",
                    beside, hello.cores, hello.host));
  }
}

loadgen::RunMaker Ranks::maker(const std::string& out, results::Result result,
                               const MetricsOptions& metrics) {
  std::function<std::string(int)> metrics_of;
  if (metrics.listen) {
    metrics_of = [address = *metrics.listen](int rank) {
      exporter::ListenAddress own = address;
      if (own.port != 0) own.port = static_cast<std::uint16_t>(own.port + rank);
      return own.to_string();
    };
  }
  result.runs.clear();
  // Two configurations may take turns, so each run sets up the team for its own.
  return
      [this, metrics_of, part_path = out == kStdout ? "" : out, heading = results::to_json(result)](
          const loadgen::RunPlan& plan, const Descriptor& strategy, int repetition,
          const loadgen::Progress& progress, loadgen::ProgressObserver& observer,
          const std::stop_token& stop) {
        team_.metrics_of = metrics_of;
        team_.part_path = part_path;
        team_.heading = heading;
        return loadgen::cluster::lead(*link_, team_, plan, strategy, repetition, progress, observer,
                                      stop);
      };
}

int serve_rank() {
  prepare_signals();
  auto link = Link::make(loadgen::cluster::join_mpi);
  if (!link) {
    fmt::print(stderr, "lockbench: {}\n", link.error());
    return exit_code::kErrors;
  }
  // Only rank 0 prints.
  Console silent(stderr, false, true);
  bool together = false;
  {
    const StopOnSignal on_signal((*link)->stop(), silent, "");
    // From the first run that asks for them. If they fail, the rank goes on without them.
    std::shared_ptr<exporter::RunMetrics> metrics;
    std::unique_ptr<exporter::HttpEndpoint> endpoint;
    const auto watcher_of = [&](const loadgen::cluster::Order& order) -> loadgen::RunWatcher* {
      if (order.metrics.empty()) return nullptr;
      if (metrics != nullptr) return metrics.get();
      const std::string rank = std::to_string((*link)->rank());
      metrics = std::make_shared<exporter::RunMetrics>(all_strategies(), order.workload.nodes);
      auto serving = exporter::parse_listen_address(order.metrics).and_then([&](const auto& where) {
        return exporter::serve(
            metrics, {.run = {{"run", order.run_id}}, .build = build_facts(), .rank = rank}, where);
      });
      if (serving) {
        endpoint = *std::move(serving);
      } else {
        fmt::print(stderr, "lockbench: rank {} on {}: --metrics-listen: {}\n", rank, hello().host,
                   serving.error());
      }
      return metrics.get();
    };
    together = serve(**link, hello(), {}, watcher_of);
  }
  (*link)->close(together);
  return exit_code::kFine;
}

loadgen::RunMaker maker_of(const std::string& out, const results::Result& result,
                           const MetricsOptions& metrics) {
  Ranks* const ranks = Ranks::joined();
  return ranks == nullptr ? loadgen::RunMaker() : ranks->maker(out, result, metrics);
}

bool warn_of_lost_ranks(const std::string& out, Console& console) {
  const Ranks* const ranks = Ranks::joined();
  if (ranks == nullptr || !ranks->lost_some()) return false;
  // With --out - there are no such files.
  console.warn(out == kStdout
                   ? "a rank was lost"
                   : fmt::format("a rank was lost: the ranks' own files are {0}.rank-*; to put "
                                 "them together: lockbench merge {0}.rank-* --out FILE",
                                 out));
  return true;
}

}  // namespace lockbench::cli
