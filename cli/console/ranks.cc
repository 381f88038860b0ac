#include "cli/console/ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <thread>

#include "cli/console/exit_code.h"
#include "cli/console/facts.h"
#include "cli/console/result_file.h"
#include "cli/console/signals.h"
#include "deployment/failure.h"
#include "exporter/exporter.h"
#include "loadgen/cluster/member.h"
#include "loadgen/cluster/wire.h"
#include "results/file/json.h"
#include "strategies/registry.h"

namespace lockbench::cli {
namespace {

using loadgen::cluster::Hello;
using loadgen::cluster::Link;

constexpr Duration kMeeting = std::chrono::seconds(60);

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Hello hello() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  std::array<char, 64> network{};
  if (readlink("/proc/self/ns/net", network.data(), network.size() - 1) < 0) network[0] = '?';
  Hello hello;
  hello.host = name.data();
  hello.build = build_line(build_facts());
  hello.boot = first_line("/proc/sys/kernel/random/boot_id");
  hello.network = hello.boot + network.data();
  hello.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return hello;
}

/// The metrics of one rank, from the first run that asks for them.
class RankMetrics {
 public:
  loadgen::RunWatcher* of(const loadgen::cluster::Order& order) {
    if (order.metrics.empty()) return nullptr;
    if (exporter_ == nullptr && !failed_) serve(order);
    return exporter_ == nullptr ? nullptr : metrics_.get();
  }

 private:
  void serve(const loadgen::cluster::Order& order) {
    constexpr unsigned kConnections = 16;
    std::vector<const Descriptor*> built;
    for (const Descriptor* strategy : all_strategies()) {
      if (strategy->not_built.empty()) built.push_back(strategy);
    }
    exporter::Facts facts;
    facts.run.emplace_back("run", order.run_id);
    facts.build = build_facts();
    metrics_ = std::make_shared<exporter::RunMetrics>(built, order.workload.nodes);
    auto made = exporter::Exporter::make(metrics_, facts);
    const auto address = exporter::parse_listen_address(order.metrics);
    if (made != nullptr && address) {
      if (const auto serving = made->serve(*address, kConnections); serving) {
        exporter_ = std::move(made);
        return;
      }
    }
    // The run goes on without them.
    failed_ = true;
    fmt::print(stderr, "lockbench: --metrics-of-ranks: {} cannot be served on {}\n", order.metrics,
               hello().host);
  }

  std::shared_ptr<exporter::RunMetrics> metrics_;
  std::unique_ptr<exporter::Exporter> exporter_;
  bool failed_ = false;
};

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
  link_->send_to_all(loadgen::cluster::Kind::leave,
                     loadgen::cluster::to_bytes(loadgen::cluster::Leave{together}));
  member_.finish();
  link_->close(together);
}

void Ranks::meet() {
  auto member = Thread::start(
      [this](const std::stop_token& /*ended by a message*/) {
        loadgen::cluster::MemberSettings settings;
        settings.hello = hello();
        RankMetrics metrics;
        settings.watcher_of = [&](const auto& order) { return metrics.of(order); };
        serve(*link_, settings, stop_.get_token());
      },
      [](const std::string& /*why: its silence tells*/) {});
  member_ = must(std::move(member));
  team_.hellos.resize(static_cast<std::size_t>(size()));
  team_.lost.resize(team_.hellos.size());
  const TimePoint until = link_->now() + kMeeting;
  for (int there = 0; there < size();) {
    const auto message = link_->for_root(until);
    if (!message) throw UsageError("not all ranks have come within a minute");
    Hello& of = team_.hellos.at(static_cast<std::size_t>(message->from));
    if (message->kind != loadgen::cluster::Kind::hello ||
        !loadgen::cluster::from_bytes(message->body, of)) {
      throw UsageError("rank {} is another build of lockbench", message->from);
    }
    ++there;
  }
  const Hello& own = team_.hellos.front();
  for (std::size_t i = 1; i < team_.hellos.size(); ++i) {
    if (team_.hellos[i].build == own.build) continue;
    throw UsageError("rank {} on {} is another build, {}; rank 0 is {}", i, team_.hellos[i].host,
                     team_.hellos[i].build, own.build);
  }
  for (std::size_t i = 0; i < team_.hellos.size(); ++i)
    team_.ranks_beside.push_back(ranks_beside(i));
}

int Ranks::ranks_beside(std::size_t rank) const {
  return static_cast<int>(
      std::count_if(team_.hellos.begin(), team_.hellos.end(),
                    [&](const Hello& other) { return other.boot == team_.hellos[rank].boot; }));
}

void Ranks::stop_with(const std::stop_token& stop) {
  on_stop_ = std::make_unique<std::stop_callback<std::function<void()>>>(
      stop, [this] { stop_.request_stop(); });
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
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < team_.hellos.size(); ++i) {
    const Hello& hello = team_.hellos[i];
    if (!first.emplace(hello.boot, i).second || team_.ranks_beside[i] <= hello.cores) continue;
    console.warn(
        fmt::format("warning: {} ranks share the {} cores of {}: their figures are those "
                    "of a host that is too small",
                    team_.ranks_beside[i], hello.cores, hello.host));
  }
}

Endpoints Ranks::Zones::endpoints_of(int rank, Endpoints usual) const {
  const auto own = far.find(rank);
  if (own == far.end()) return usual;
  for (auto& [set, urls] : usual) {
    if (const auto found = own->second.find(set); found != own->second.end()) urls = found->second;
  }
  return usual;
}

loadgen::CrewFactory Ranks::crews(const std::string& out, results::Result result,
                                  const RankOptions& options) {
  std::function<std::string(int)> metrics_of;
  if (options.metrics) {
    metrics_of = [address = *options.metrics](int rank) {
      exporter::ListenAddress own = address;
      own.port = static_cast<std::uint16_t>(address.port + rank);
      return own.to_string();
    };
  }
  result.runs.clear();
  // Two configurations may take turns: each run has the team know its own.
  return [this, zones = zones_, split = options.split, metrics_of,
          partial_path = out == kStdout ? "" : out, heading = results::to_json(result)](
             const loadgen::RunPlan& plan, loadgen::RunShared& run, const loadgen::RunTurn& turn) {
    team_.rtts = zones->rtts;
    team_.endpoints_of = [zones](int rank, const Endpoints& usual) {
      return zones->endpoints_of(rank, usual);
    };
    team_.split = split;
    team_.metrics_of = metrics_of;
    team_.partial_path = partial_path;
    team_.heading = heading;
    return std::make_unique<loadgen::cluster::RemoteCrew>(*link_, team_, plan, run, turn);
  };
}

tl::expected<void, std::string> Ranks::add_rtts(const deployment::Deployment& servers,
                                                const RankOptions& options) {
  auto zones = std::make_shared<Zones>();
  zones->rtts.resize(team_.hellos.size());
  auto added = deployment::attempt([&] {
    for (const RankOptions::RttOfRank& of : options.rtts) {
      zones->rtts.at(static_cast<std::size_t>(of.rank)) = of.rtt;
      for (const auto& [set, store] : servers.stores) {
        if (set == "counter") continue;
        std::vector<std::uint16_t> ports;
        for (const std::uint16_t port : store->ports()) {
          zones->lines.push_back(servers.host->line_to(port, of.rtt));
          ports.push_back(zones->lines.back()->port());
        }
        // Names as in the deployment, which may have the same servers under several.
        for (auto& [name, urls] : store->endpoints_through(ports)) zones->far[of.rank][set] = urls;
      }
    }
  });
  if (added) zones_ = std::move(zones);
  return added;
}

int serve_rank() {
  prepare_signals();
  auto link = Link::make(loadgen::cluster::join_mpi);
  if (!link) {
    fmt::print(stderr, "lockbench: {}\n", link.error());
    return exit_code::kErrors;
  }
  // Rank 0 says what there is to say.
  Console silent(stderr, false, true);
  std::stop_source stop;
  bool together = false;
  {
    const StopOnSignal on_signal(stop, silent, "");
    loadgen::cluster::MemberSettings settings;
    settings.hello = hello();
    RankMetrics metrics;
    settings.watcher_of = [&](const auto& order) { return metrics.of(order); };
    together = serve(**link, settings, stop.get_token());
  }
  (*link)->close(together);
  return exit_code::kFine;
}

loadgen::CrewFactory crews_of(const std::string& out, const results::Result& result,
                              const RankOptions& options) {
  Ranks* const ranks = Ranks::joined();
  return ranks == nullptr ? loadgen::CrewFactory() : ranks->crews(out, result, options);
}

bool note_lost_ranks(const std::string& out, results::Result& result, Console& console) {
  const Ranks* const ranks = Ranks::joined();
  if (ranks == nullptr || !ranks->lost_some()) return false;
  result.exit_code = exit_code::kErrors;
  // With --out - there are no such files.
  console.warn(out == kStdout
                   ? "a rank was lost"
                   : fmt::format("a rank was lost: the ranks' own files are {0}.rank-*; to put "
                                 "them together: lockbench merge {0}.rank-* --out FILE",
                                 out));
  return true;
}

}  // namespace lockbench::cli
