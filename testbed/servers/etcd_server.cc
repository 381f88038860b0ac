#include "testbed/servers/etcd_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "testbed/servers/clients.h"

namespace lockbench::testbed {
namespace {

/// Only the server that could listen writes this to our log, and only when it has a leader.
bool ready(const Server& server) {
  return server.log().find("ready to serve client requests") != std::string::npos;
}

std::string url_on(std::uint16_t port) { return fmt::format("http://127.0.0.1:{}", port); }

struct Member {
  std::string name;
  std::uint16_t client_port = 0, peer_port = 0;

  std::string as_peer() const { return fmt::format("{}={}", name, url_on(peer_port)); }
};

}  // namespace

class EtcdStarter {
 public:
  using Started = tl::expected<std::unique_ptr<EtcdServer>, std::string>;

  EtcdStarter(Testbed& testbed, const EtcdOptions& options, std::string program)
      : testbed_(testbed), options_(options), program_(std::move(program)) {}

  /// Members with ports of their own.
  tl::expected<std::vector<Member>, std::string> choose(int count) const {
    const auto ports = distinct_ports(options_.choose_port, 2 * static_cast<std::size_t>(count));
    if (!ports) return tl::unexpected(ports.error());
    std::vector<Member> members;
    for (std::size_t i = 0; i < ports->size(); i += 2) {
      members.push_back({fmt::format("member-{}", i / 2 + 1), ports->at(i), ports->at(i + 1)});
    }
    return members;
  }

  Started start(const Member& member, const std::vector<Member>& all) const {
    ServerSpec spec;
    spec.user = unless_root("nobody");
    auto folder = testbed_.make_server_folder("etcd", spec.user);
    if (!folder) return tl::unexpected(folder.error());
    spec.folder = *std::move(folder);
    spec.argv = arguments(member, all, (spec.folder / "data" / "member").string());
    spec.ports = {member.client_port, member.peer_port};
    spec.ready = ready;
    std::unique_ptr<EtcdServer> server(new EtcdServer(testbed_, std::move(spec)));
    auto launched = server->launch();
    if (launched) return server;
    // In Go's words it begins with a small letter.
    const bool taken = launched.error().find(kPortTaken.substr(1)) != std::string::npos;
    return tl::unexpected(taken ? fmt::format("{}: {}", kPortTaken, launched.error())
                                : launched.error());
  }

 private:
  std::vector<std::string> arguments(const Member& member, const std::vector<Member>& all,
                                     const std::string& folder) const {
    std::string cluster;
    for (const Member& other : all) cluster += (cluster.empty() ? "" : ",") + other.as_peer();
    std::vector<std::string> argv = {
        program_,
        "--name=" + member.name,
        "--data-dir=" + folder,
        "--listen-client-urls=" + url_on(member.client_port),
        "--advertise-client-urls=" + url_on(member.client_port),
        "--listen-peer-urls=" + url_on(member.peer_port),
        "--initial-advertise-peer-urls=" + url_on(member.peer_port),
        "--initial-cluster=" + cluster,
        fmt::format("--initial-cluster-token=lockbench-{}", all.front().peer_port),
        // Half of the defaults: on loopback there is no network to be patient with.
        "--heartbeat-interval=50",
        "--election-timeout=500",
    };
    argv.insert(argv.end(), options_.arguments.begin(), options_.arguments.end());
    return argv;
  }

  Testbed& testbed_;
  const EtcdOptions& options_;
  const std::string program_;
};

/// The text that a JSON object has under the name, by what etcd prints: "name":"text".
std::string_view text_of(std::string_view json, std::string_view name) {
  const std::string label = fmt::format("\"{}\":\"", name);
  const std::size_t at = json.find(label);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + label.size());
  return json.substr(0, json.find('"'));
}

bool etcd_leads(const EtcdServer& server) {
  constexpr std::chrono::seconds kWithin{1};
  const std::string request = fmt::format(
      "POST /v3/maintenance/status HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n"
      "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
      server.port());
  const auto answer = ask_until(server.port(), request, kWithin, [](std::string_view text) {
    return text.find("\r\n\r\n") != std::string_view::npos && text.ends_with('}');
  });
  if (!answer) return false;
  const std::string_view leader = text_of(*answer, "leader");
  return !leader.empty() && leader == text_of(*answer, "member_id");
}

std::string EtcdServer::url() const { return url_on(port()); }

std::string EtcdCluster::url() const {
  std::string url = "http://";
  for (const auto& member : members_) {
    url += fmt::format("{}127.0.0.1:{}", &member == &members_.front() ? "" : ",", member->port());
  }
  return url;
}

tl::expected<std::unique_ptr<EtcdServer>, std::string> start_etcd(Testbed& testbed,
                                                                  const EtcdOptions& options) {
  const auto program = find_program(kEtcd);
  if (!program) return tl::unexpected(program.error());
  const EtcdStarter starter(testbed, options, program->string());
  return start_on_free_port<EtcdServer>(options.choose_port,
                                        [&](std::uint16_t port) -> EtcdStarter::Started {
                                          const auto peer = options.choose_port();
                                          if (!peer) return tl::unexpected(peer.error());
                                          const Member only{"member-1", port, *peer};
                                          return starter.start(only, {only});
                                        });
}

tl::expected<std::unique_ptr<EtcdCluster>, std::string> start_etcd_cluster(
    Testbed& testbed, int members, const EtcdOptions& options) {
  const auto program = find_program(kEtcd);
  if (!program) return tl::unexpected(program.error());
  const EtcdStarter starter(testbed, options, program->string());
  auto started = start_all_on_free_ports<EtcdServer, Member>(
      [&] { return starter.choose(members); },
      [&](std::size_t number, const std::vector<Member>& all) {
        return starter.start(all[number], all);
      });
  if (!started) return tl::unexpected(std::move(started.error()));
  return std::unique_ptr<EtcdCluster>(new EtcdCluster(*std::move(started)));
}

}  // namespace lockbench::testbed
