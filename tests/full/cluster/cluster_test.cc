#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "testbed/servers/ports.h"
#include "tests/folders.h"
#include "tests/full/timing/certificate.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/servers.h"
#include "tests/support/tcp_client.h"

namespace lockbench::test {
namespace {

using namespace std::chrono_literals;

constexpr int kHosts = 4;
constexpr auto kLong = 60s;
const std::string lockbench_program = LOCKBENCH_BINARY_DIR "/lockbench";

/// Simulated hosts: network namespaces with their own addresses on one bridge, created and removed
/// by this process. Needs root. Throws std::runtime_error on failure.
class Hosts {
 public:
  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  /// This machine's address on the bridge, for servers.
  std::string server_address() const { return subnet_ + "254"; }
  /// Runs mpirun on the first host, with a rank of `program` with `arguments` on each.
  std::unique_ptr<Program> mpirun(const Scratch& scratch, const std::vector<std::string>& options,
                                  const std::vector<std::string>& arguments) const;

 private:
  std::string name(int host) const { return prefix_ + std::to_string(host); }
  std::string link(int host) const { return prefix_ + "v" + std::to_string(host); }
  std::string address(int host) const { return subnet_ + std::to_string(host + 1); }
  void make() const;
  void remove() const;
  /// Writes a replacement for ssh.
  void write_agent(const Scratch& scratch) const;

  const int count_;
  const std::string prefix_, subnet_;
};

void must(const std::string& command) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe,cert-env33-c)
  if (std::system(command.c_str()) != 0) {
    throw std::runtime_error("it fails: " + command);
  }
}

Setting setting(std::string program) {
  return {
      .program = std::move(program),
      .environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}};
}

Hosts::Hosts(int count)
    : count_(count),
      prefix_(fmt::format("lb{}h", getpid() % 100'000)),
      subnet_(fmt::format("10.{}.{}.", 100 + getpid() / 250 % 100, getpid() % 250)) {
  try {
    make();
  } catch (...) {
    remove();
    throw;
  }
}

Hosts::~Hosts() { remove(); }

void Hosts::make() const {
  const std::string bridge = prefix_ + "br";
  must(fmt::format("ip link add {} type bridge", bridge));
  must(fmt::format("ip address add {}/24 dev {}", server_address(), bridge));
  must(fmt::format("ip link set {} up", bridge));
  for (int host = 0; host < count_; ++host) {
    must(fmt::format("ip netns add {}", name(host)));
    must(fmt::format("ip link add {} type veth peer name eth0 netns {}", link(host), name(host)));
    must(fmt::format("ip link set {} master {} up", link(host), bridge));
    must(fmt::format("ip -n {} address add {}/24 dev eth0", name(host), address(host)));
    must(fmt::format("ip -n {} link set eth0 up", name(host)));
    must(fmt::format("ip -n {} link set lo up", name(host)));
  }
}

void Hosts::remove() const {
  const auto try_to = [](const std::string& command) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe,cert-env33-c)
    (void)!std::system((command + " 2>/dev/null").c_str());
  };
  for (int host = 0; host < count_; ++host) {
    // A deleted namespace keeps its links, and so their names, for a while.
    try_to("ip link delete " + link(host));
    try_to("ip netns delete " + name(host));
  }
  try_to(fmt::format("ip link delete {}br", prefix_));
}

void Hosts::write_agent(const Scratch& scratch) const {
  std::string text = "#!/bin/sh\naddress=$1\nshift\ncase $address in\n";
  for (int host = 0; host < count_; ++host) {
    text += fmt::format("  {}) name={} ;;\n", address(host), name(host));
  }
  text += "esac\nexec ip netns exec $name unshare --uts sh -c \"hostname $name; $*\"\n";
  ::chmod(scratch.write("agent", text).c_str(), 0700);
}

std::unique_ptr<Program> Hosts::mpirun(const Scratch& scratch,
                                       const std::vector<std::string>& options,
                                       const std::vector<std::string>& arguments) const {
  write_agent(scratch);
  std::string hosts;
  for (int host = 0; host < count_; ++host) hosts += (host > 0 ? "," : "") + address(host);
  const std::string net = subnet_ + "0/24";
  std::vector<std::string> all = words("netns exec " + name(0) + " unshare --uts sh -c");
  all.push_back(fmt::format("hostname {}; exec \"$@\"", name(0)));
  const std::string agent = (scratch / "agent").string();
  for (const std::string& word :
       words(fmt::format("sh mpirun --oversubscribe -np {} --host {} --mca plm_rsh_agent {} --mca "
                         "oob_tcp_if_include {} --mca btl_tcp_if_include {}",
                         count_, hosts, agent, net, net))) {
    all.push_back(word);
  }
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return std::make_unique<Program>(scratch, all, setting("/usr/sbin/ip"));
}

/// Runs mpirun on this host only.
std::unique_ptr<Program> mpirun_here(const Scratch& scratch, int ranks,
                                     const std::vector<std::string>& options,
                                     const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"--oversubscribe", "-np", std::to_string(ranks)};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return std::make_unique<Program>(scratch, all, setting("/usr/bin/mpirun"));
}

/// Four hosts, and a Redis that they can reach.
class ClusterTest : public testing::Test {
 protected:
  ClusterTest() : hosts_(kHosts), redis_(own_redis(reached_by_all())), probe_(redis_->port()) {}

  testbed::RedisOptions reached_by_all() const {
    return {.config = {"bind 127.0.0.1 " + hosts_.server_address()}};
  }
  /// Writes a file with the server's URL.
  std::string url_of(const testbed::Server& server) const {
    std::string url = server.url();
    url.replace(url.find("127.0.0.1"), std::string("127.0.0.1").size(), hosts_.server_address());
    return "@" + scratch_.write(fmt::format("redis.{}", server.port()), url);
  }
  std::vector<std::string> run(const std::string& strategy, std::vector<std::string> more = {},
                               const std::string& program = lockbench_program) const {
    std::vector<std::string> all = {program,    "run",   strategy, "--redis", url_of(*redis_),
                                    "--warmup", "200ms", "--out",  out()};
    const auto unless_given = [&](const char* option, const char* value) {
      if (std::find(more.begin(), more.end(), option) == more.end()) {
        all.insert(all.end(), {option, value});
      }
    };
    unless_given("--clients", "8");
    unless_given("--duration", "2s");
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string out() const { return (scratch_ / "out.json").string(); }
  Json result() const { return read_result(out()); }

  void expect_nothing_left() {
    EXPECT_TRUE(eventually([&] { return probe_.ask({"DBSIZE"}) == "0"; }));
  }

  Scratch scratch_;
  Hosts hosts_;
  std::unique_ptr<testbed::Server> redis_;
  RedisProbe probe_;
};

TEST_F(ClusterTest, FourHostsMakeOneResultThatTheServerConfirms) {
  const auto counter = own_redis(reached_by_all());
  const Outcome ended =
      hosts_
          .mpirun(scratch_, {},
                  run("redis-queue", {"--resource", "redis", "--counter-redis", url_of(*counter)}))
          ->finish(kLong);
  ASSERT_EQ(ended.code, 0) << ended.err;
  const Json result = this->result();
  const Json& run = run_of(result, "redis-queue");
  EXPECT_TRUE(kept_exclusion(run));
  EXPECT_EQ(run["audit"]["increments"], RedisProbe(counter->port()).calls_of("set"));
  EXPECT_EQ(run["audit"]["counter"], RedisProbe(counter->port()).calls_of("set"));
  ASSERT_EQ(run["ranks"].size(), kHosts);
  std::uint64_t sections = 0;
  std::set<std::string> names;
  for (const Json& rank : run["ranks"]) {
    sections += rank["sections"].get<std::uint64_t>();
    names.insert(rank["host"].get<std::string>());
  }
  EXPECT_EQ(names.size(), kHosts);
  EXPECT_EQ(run["sections"], sections);
  EXPECT_GT(run["handoff"]["count"], 0);
  expect_nothing_left();
  EXPECT_THAT(scratch_.files(), testing::Not(testing::Contains(testing::HasSubstr("rank-"))));
  if (!are_conclusive(result["runs"])) return;
  for (const Json& rank : run["ranks"]) EXPECT_LT(rank["late_seconds"].get<double>(), 0.05);
}

TEST_F(ClusterTest, ALockThatOnlyLetsClientsOfDifferentHostsOverlapIsCaught) {
  const auto arguments =
      run("mutant-per-process", {}, LOCKBENCH_BINARY_DIR "/lockbench_with_rank_mutant");
  EXPECT_EQ(hosts_.mpirun(scratch_, {}, arguments)->finish(kLong).code, 3);
  const Json result = this->result();
  const Json& audit = run_of(result, "mutant-per-process")["audit"];
  EXPECT_GT(audit["lost_updates"], 0);
  EXPECT_EQ(audit["overlaps"], 0) << "no rank sees the clients of another one";
  EXPECT_EQ(audit["verdict"], "violated");
}

TEST_F(ClusterTest, PrivateServersCannotServeOtherHosts) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"run", "redis-queue"}, {"quorum", "--nodes", "1"}}) {
    std::vector<std::string> arguments = {lockbench_program};
    arguments.insert(arguments.end(), command.begin(), command.end());
    arguments.insert(arguments.end(), {"--out", out()});
    const Outcome ended = hosts_.mpirun(scratch_, {}, arguments)->finish(kLong);
    EXPECT_EQ(ended.code, 1) << command.front();
    expect_in(ended.err, "rank 1 on ");
    expect_in(ended.err, "cannot reach private servers of this host");
  }
}

/// Sections of redis-queue; 0 if that port does not serve such metrics.
double sections_by_metrics(std::uint16_t port, const std::string& rank) {
  const std::string metrics = http_get(port, "/metrics").body;
  if (!has(metrics, "rank=\"" + rank + "\"")) return 0;
  return metric_on(metrics, "lockbench_sections_total{strategy=\"redis-queue\"");
}

TEST_F(ClusterTest, EachRankServesItsOwnFigures) {
  const std::uint16_t base = testbed::free_loopback_port().value();
  const auto job = mpirun_here(
      scratch_, 2, {},
      run("redis-queue", {"--duration", "1h", "--metrics-listen", std::to_string(base)}));
  double first = 0, second = 0;
  EXPECT_TRUE(eventually([&] {
    first = sections_by_metrics(base, "0");
    second = sections_by_metrics(base + 1, "1");
    return first > 0 && second > 0;
  })) << first
      << " and " << second;
  job->signal(SIGTERM);
  job->finish(kLong);
}

/// A run in which a rank is killed.
class KilledRank : public ClusterTest {
 protected:
  static bool is_rank(const std::filesystem::path& process, const std::string& rank) {
    const std::string environment = read_file(process / "environ");
    return has(environment, std::string("OMPI_COMM_WORLD_RANK=") + rank + '\0');
  }
  /// The pid of this rank.
  pid_t find(const std::string& rank) const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string command = read_file(entry.path() / "cmdline");
      if (command.starts_with(lockbench_program) && has(command, out()) &&
          is_rank(entry.path(), rank)) {
        return std::stoi(name);
      }
    }
    return -1;
  }

  /// Kills rank 2 once its file exists, after ten seconds. Returns mpirun's outcome.
  Outcome kill_one(const std::vector<std::string>& options) {
    const auto job = mpirun_here(
        scratch_, kHosts, options,
        run("redis-queue", {"--ttl", "1s", "--duration", "15s", "--store-timeout", "500ms"}));
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(out() + ".rank-2"); }, 30s));
    const pid_t victim = find("2");
    EXPECT_GT(victim, 0);
    if (victim > 0) ::kill(victim, SIGKILL);
    return job->finish(kLong);
  }

  void expect_marked(const Json& result) {
    EXPECT_EQ(result["exit_code"], 2);
    const Json& run = run_of(result, "redis-queue");
    EXPECT_TRUE(run["ranks"][2]["lost"]);
    EXPECT_FALSE(run["ranks"][1]["lost"]);
    EXPECT_GT(run["ranks"][1]["sections"], 0);
    EXPECT_FALSE(run["generator"]["valid"]);
    EXPECT_EQ(run["audit"]["lost_updates"], 0);
  }
  void expect_left_out(const Json& result) {
    expect_marked(result);
    EXPECT_EQ(run_of(result, "redis-queue")["ranks"][2]["sections"], 0);
  }

  void expect_that_the_files_merge() {
    std::vector<std::string> arguments = {"merge", "--out", (scratch_ / "merged.json").string()};
    for (int rank = 0; rank < kHosts; ++rank) {
      arguments.push_back(out() + ".rank-" + std::to_string(rank));
    }
    const Outcome merged = lockbench(scratch_, arguments);
    EXPECT_EQ(merged.code, 2) << merged.err;
    const Json result = read_result(scratch_ / "merged.json");
    expect_marked(result);
    // Its file has the first ten seconds of the rank.
    const Json& ranks = run_of(result, "redis-queue")["ranks"];
    EXPECT_GT(ranks[2]["sections"].get<double>(), 0.3 * ranks[1]["sections"].get<double>());
  }
};

TEST_F(KilledRank, TheLauncherEndsTheOthersWhichSaveWhatThereIs) {
  EXPECT_NE(kill_one({}).code, 0);
  expect_left_out(result());
  expect_that_the_files_merge();
  expect_nothing_left();
}

}  // namespace
}  // namespace lockbench::test
