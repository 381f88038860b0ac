#include "testbed/servers/zookeeper_server.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "testbed/servers/clients.h"
#include "testbed/servers/programs.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using Started = tl::expected<std::unique_ptr<ZookeeperServer>, std::string>;

constexpr Program kJava{"java", "default-jre-headless"};
/// Names what it needs in its manifest, but no logger.
constexpr std::string_view kJar = "/usr/share/java/zookeeper.jar";
constexpr std::string_view kLogger = "/usr/share/java/slf4j-simple.jar";

/// A member's number is part of its data, so that it is there again when the data has been removed.
constexpr std::string_view kScript = R"(echo "$1" > myid && shift && exec "$@")";

/// The answer to one of ZooKeeper's commands of four letters.
std::string ask(const Server& server, std::string_view letters) {
  constexpr std::chrono::milliseconds kWithin{500};
  // It closes the connection when it has said all.
  const auto whole = [](std::string_view) { return false; };
  return ask_until(server.port(), letters, kWithin, whole).value_or("");
}

/// The process that answers must be ours: another may have been quicker to take the port.
bool ready(const Server& server) {
  if (zookeeper_mode(static_cast<const ZookeeperServer&>(server)).empty()) return false;
  const std::string folder = fmt::format("user.dir={}\n", server.data_folder().string());
  return ask(server, "envi").find(folder) != std::string::npos;
}

/// The three ports of a member of an ensemble.
struct Member {
  std::uint16_t clients = 0, peers = 0, election = 0;
};

tl::expected<std::vector<Member>, std::string> choose(const ZookeeperOptions& options,
                                                      std::size_t size) {
  const auto ports = distinct_ports(options.choose_port, 3 * size);
  if (!ports) return tl::unexpected(ports.error());
  std::vector<Member> members;
  for (std::size_t i = 0; i < ports->size(); i += 3) {
    members.push_back({ports->at(i), ports->at(i + 1), ports->at(i + 2)});
  }
  return members;
}

}  // namespace

class ZookeeperStarter {
 public:
  ZookeeperStarter(Testbed& testbed, const ZookeeperOptions& options, fs::path java, fs::path jar)
      : testbed_(testbed), options_(options), java_(std::move(java)), jar_(std::move(jar)) {}

  Started start_alone(std::uint16_t port) const { return start({.clients = port}, 1, {}); }

  Started start(const Member& member, std::size_t number, const std::vector<Member>& all) const {
    ServerSpec spec;
    spec.name = kZookeeper;
    spec.user = unless_root("nobody");
    auto folder = testbed_.make_server_folder(kZookeeper, spec.user);
    if (!folder) return tl::unexpected(folder.error());
    spec.folder = *std::move(folder);
    const fs::path config = spec.folder / "zoo.cfg";
    std::ofstream(config) << configuration(spec.folder / "data", member, all);
    std::error_code error;
    fs::permissions(config, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read,
                    error);
    if (error) return tl::unexpected(fmt::format("{}: {}", config.string(), error.message()));
    spec.argv = {"/bin/sh", "-c", std::string(kScript), "zookeeper", std::to_string(number)};
    for (std::string& word : arguments(config)) spec.argv.push_back(std::move(word));
    if (options_.clock != nullptr) options_.clock->put_under(spec);
    spec.ports = {member.clients};
    spec.ready_within = std::chrono::seconds(30);
    spec.ready = ready;
    std::unique_ptr<ZookeeperServer> server(new ZookeeperServer(testbed_, std::move(spec)));
    const auto launched = server->launch();
    if (launched) return server;
    // Its stack leaves no room for the reason in the end of the log.
    const bool taken = server->log().find(kPortTaken) != std::string::npos;
    return tl::unexpected(taken ? fmt::format("{}: {}", kZookeeper, kPortTaken) : launched.error());
  }

 private:
  std::vector<std::string> arguments(const fs::path& config) const {
    return {java_.string(),
            // For two cores and one folder: nothing is left in others'.
            "-XX:+UseSerialGC", "-Xms64m", "-Xmx512m", "-XX:-UsePerfData", "-Djava.io.tmpdir=.",
            "-Dzookeeper.preAllocSize=4096", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
            fmt::format("{}:{}", jar_.string(), kLogger),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", config.string()};
  }

  std::string configuration(const fs::path& data, const Member& member,
                            const std::vector<Member>& all) const {
    std::string text = fmt::format(
        "dataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\ntickTime={}\n"
        "minSessionTimeout={}\nmaxSessionTimeout={}\n"
        // In ticks: as many seconds as for a server with its usual ones.
        "initLimit=100\nsyncLimit=50\n"
        "maxClientCnxns=0\nadmin.enableServer=false\n"
        "4lw.commands.whitelist=srvr,envi,cons,dump,wchs\n",
        data.string(), member.clients, options_.tick.count(), options_.min_session.count(),
        options_.max_session.count());
    for (std::size_t i = 0; i < all.size(); ++i) {
      text += fmt::format("server.{}=127.0.0.1:{}:{}\n", i + 1, all[i].peers, all[i].election);
    }
    for (const std::string& setting : options_.config) text += setting + "\n";
    return text;
  }

  Testbed& testbed_;
  const ZookeeperOptions& options_;
  const fs::path java_, jar_;
};

namespace {

tl::expected<ZookeeperStarter, std::string> make_starter(Testbed& testbed,
                                                         const ZookeeperOptions& options) {
  auto jar = find_zookeeper();
  if (!jar) return tl::unexpected(jar.error());
  auto java = find_program(kJava);
  if (!java) return tl::unexpected(java.error());
  return ZookeeperStarter(testbed, options, *std::move(java), *std::move(jar));
}

}  // namespace

ZookeeperServer::ZookeeperServer(const Testbed& testbed, ServerSpec spec)
    : Server(testbed, std::move(spec)) {}

std::string ZookeeperServer::address() const { return fmt::format("127.0.0.1:{}", port()); }

tl::expected<fs::path, std::string> find_zookeeper() {
  std::error_code error;
  if (!fs::is_regular_file(kJar, error)) {
    return tl::unexpected(fmt::format("{} not found: install the package libzookeeper-java", kJar));
  }
  if (auto java = find_program(kJava); !java) return tl::unexpected(java.error());
  return fs::path(kJar);
}

std::string zookeeper_version(const fs::path& jar) {
  constexpr std::string_view kFront = "zookeeper-";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(jar.parent_path(), error)) {
    const std::string name = entry.path().stem();
    if (!name.starts_with(kFront) || entry.path().extension() != ".jar") continue;
    std::string version = name.substr(kFront.size());
    if (version.find_first_not_of("0123456789.") == std::string::npos) return version;
  }
  return "unknown";
}

Started start_zookeeper(Testbed& testbed, const ZookeeperOptions& options) {
  const auto starter = make_starter(testbed, options);
  if (!starter) return tl::unexpected(starter.error());
  return start_on_free_port<ZookeeperServer>(
      options.choose_port, [&](std::uint16_t port) { return starter->start_alone(port); });
}

tl::expected<std::vector<std::unique_ptr<ZookeeperServer>>, std::string> start_zookeeper_ensemble(
    Testbed& testbed, int size, const ZookeeperOptions& options) {
  const auto starter = make_starter(testbed, options);
  if (!starter) return tl::unexpected(starter.error());
  return start_all_on_free_ports<ZookeeperServer, Member>(
      [&] { return choose(options, static_cast<std::size_t>(size)); },
      [&](std::size_t number, const std::vector<Member>& all) {
        return starter->start(all[number], number + 1, all);
      });
}

std::string zookeeper_mode(const ZookeeperServer& server) {
  constexpr std::string_view kLabel = "Mode: ";
  const std::string answer = ask(server, "srvr");
  const std::size_t start = answer.find(kLabel);
  if (start == std::string::npos) return {};
  const std::size_t from = start + kLabel.size();
  return answer.substr(from, answer.find('\n', from) - from);
}

}  // namespace lockbench::testbed
