#include "testbed/servers/etcd_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockbench::testbed {
namespace {

/// Written to this server's log only if it could bind its port, and only when there is a leader.
bool etcd_is_ready(const Server& server) {
  return server.log().find("ready to serve client requests") != std::string::npos;
}

constexpr UrlForm kUrl{"http://"};

struct Member {
  std::string name;
  std::uint16_t client_port = 0, peer_port = 0;
  std::string peer_url{};  ///< for the other members

  std::string as_peer() const { return fmt::format("{}={}", name, peer_url); }
};

tl::expected<std::vector<Member>, std::string> choose(const EtcdOptions& options, int count) {
  const auto ports = distinct_ports(options.choose_port, 2 * static_cast<std::size_t>(count));
  if (!ports) return tl::unexpected(ports.error());
  std::vector<Member> members;
  std::vector<std::vector<std::uint16_t>> peer_ports;
  for (std::size_t i = 0; i < ports->size(); i += 2) {
    const std::uint16_t peer_port = ports->at(i + 1);
    const std::string peer_url = options.mesh == nullptr
                                     ? kUrl.on({peer_port})
                                     : fmt::format("http://{}:{}", Mesh::name_of(i / 2), peer_port);
    members.push_back({fmt::format("member-{}", i / 2 + 1), ports->at(i), peer_port, peer_url});
    peer_ports.push_back({peer_port});
  }
  if (options.mesh == nullptr) return members;
  return options.mesh->connect(peer_ports).map([&] { return members; });
}

std::vector<std::string> arguments(const std::string& program, const Member& member,
                                   const std::vector<Member>& all, const std::string& folder) {
  std::string cluster;
  for (const Member& other : all) cluster += (cluster.empty() ? "" : ",") + other.as_peer();
  return {
      program,
      "--name=" + member.name,
      "--data-dir=" + folder,
      "--listen-client-urls=" + kUrl.on({member.client_port}),
      "--advertise-client-urls=" + kUrl.on({member.client_port}),
      "--listen-peer-urls=" + kUrl.on({member.peer_port}),
      "--initial-advertise-peer-urls=" + member.peer_url,
      "--initial-cluster=" + cluster,
      fmt::format("--initial-cluster-token=lockbench-{}", all.front().peer_port),
      // Half of the defaults: loopback has no network latency.
      "--heartbeat-interval=50",
      "--election-timeout=500",
  };
}

/// Makes a member look up names in the mesh. Go does that by the C library if it is told to.
tl::expected<void, std::string> put_under(const Mesh& mesh, std::size_t number, ServerSpec& spec) {
  const auto shim = find_beside("lockbench-hosts-shim.so");
  if (!shim) return tl::unexpected(shim.error());
  const std::vector<std::string> before = {"/usr/bin/env", "GODEBUG=netdns=cgo",
                                           "LD_PRELOAD=" + shim->string(),
                                           "LOCKBENCH_HOSTS=" + mesh.hosts_of(number)};
  spec.argv.insert(spec.argv.begin(), before.begin(), before.end());
  spec.name = kEtcd.name;
  return {};
}

/// The text that a JSON object has under the name, as etcd prints it: "name":"text".
std::string_view text_of(std::string_view json, std::string_view name) {
  const std::string label = fmt::format("\"{}\":\"", name);
  const std::size_t at = json.find(label);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + label.size());
  return json.substr(0, json.find('"'));
}

bool leads(const Server& server) {
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

}  // namespace

tl::expected<std::vector<std::unique_ptr<Server>>, std::string> start_etcd_cluster(
    Testbed& testbed, int members, const EtcdOptions& options) {
  const auto program = find_program(kEtcd);
  if (!program) return tl::unexpected(program.error());
  return start_all_on_free_ports<Server, Member>(
      [&] { return choose(options, members); },
      [&](std::size_t number,
          const std::vector<Member>& all) -> tl::expected<std::unique_ptr<Server>, std::string> {
        ServerSpec spec;
        spec.user = unless_root("nobody");
        auto folder = testbed.make_server_folder("etcd", spec.user);
        if (!folder) return tl::unexpected(folder.error());
        spec.folder = *std::move(folder);
        spec.argv = arguments(program->string(), all[number], all,
                              (spec.folder / "data" / "member").string());
        if (options.mesh != nullptr) {
          if (auto put = put_under(*options.mesh, number, spec); !put) {
            return tl::unexpected(put.error());
          }
        }
        spec.ports = {all[number].client_port, all[number].peer_port};
        spec.url = kUrl;
        spec.ready = etcd_is_ready;
        spec.leads = leads;
        return Server::start(testbed, std::move(spec));
      });
}

tl::expected<std::unique_ptr<Server>, std::string> start_etcd(Testbed& testbed,
                                                              const EtcdOptions& options) {
  return start_etcd_cluster(testbed, 1, options).map([](auto members) {
    return std::move(members.front());
  });
}

}  // namespace lockbench::testbed
