#include <fmt/format.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "testbed/servers/kinds.h"

namespace lockbench::testbed {
namespace {

/// The server logs this only after binding its port, and only with a leader.
bool etcd_is_ready(const Server& server) {
  return server.log().find("ready to serve client requests") != std::string::npos;
}

namespace fs = std::filesystem;

/// Sockets in the member's folder, which nobody else can enter; etcd requires a number in the name.
constexpr std::string_view kSetupSocket = "setup:1", kPeerSocket = "peers:1";

constexpr std::string_view kData = "member";
/// A single member may lose its data, but not its users: restarts from a copy of the first state.
/// The copies are sparse, as etcd reserves space.
constexpr std::string_view kWithSeed = R"(
[ -e ../seed ] || cp -r --sparse=always member ../seed || exit 1
[ -e member ] || { cp -r --sparse=always ../seed new && mv new member; } || exit 1
exec "$@"
)";

struct Member {
  std::string name;
  std::uint16_t client_port = 0;
  std::uint16_t peer_port = 0;  ///< 0 without peers
  std::string peer_url{};       ///< for the other members
  TlsFiles peer_tls{};          ///< with peers
  fs::path folder{};            ///< with its data, after the set-up

  std::string as_peer() const { return fmt::format("{}={}", name, peer_url); }
};

std::string on_loopback(std::string_view scheme, std::uint16_t port) {
  return fmt::format("{}://127.0.0.1:{}", scheme, port);
}

std::vector<Member> choose(Testbed& testbed, const EtcdOptions& options, int count) {
  const std::size_t each = count == 1 ? 1 : 2;
  const auto ports =
      need(distinct_ports(testbed.choose_port, each * static_cast<std::size_t>(count)));
  if (each == 1) {
    return {{.name = "member-1",
             .client_port = ports.front(),
             .peer_url = fmt::format("unix://{}", kPeerSocket)}};
  }
  const auto certificates =
      need(certify_members(testbed, "etcd-peers", static_cast<std::size_t>(count)));
  std::vector<Member> members;
  std::vector<std::vector<std::uint16_t>> peer_ports;
  for (std::size_t i = 0; i < certificates.size(); ++i) {
    const std::uint16_t peer_port = ports.at(2 * i + 1);
    const std::string peer_url = options.mesh == nullptr
                                     ? on_loopback("https", peer_port)
                                     : fmt::format("https://{}:{}", Mesh::name_of(i), peer_port);
    members.push_back({.name = fmt::format("member-{}", i + 1),
                       .client_port = ports.at(2 * i),
                       .peer_port = peer_port,
                       .peer_url = peer_url,
                       .peer_tls = certificates[i]});
    peer_ports.push_back({peer_port});
  }
  if (options.mesh != nullptr) options.mesh->connect(peer_ports);
  return members;
}

/// `client_url`: its address for clients.
std::vector<std::string> arguments(const Member& member, const std::vector<Member>& all,
                                   const std::string& client_url) {
  std::string cluster;
  for (const Member& other : all) cluster += (cluster.empty() ? "" : ",") + other.as_peer();
  std::vector<std::string> words = {
      need(find_program(kEtcd)).string(),
      "--name=" + member.name,
      fmt::format("--data-dir={}", kData),
      "--listen-client-urls=" + client_url,
      "--advertise-client-urls=" +
          (client_url.starts_with("https") ? client_url : on_loopback("http", member.client_port)),
      "--listen-peer-urls=" +
          (member.peer_port == 0 ? member.peer_url : on_loopback("https", member.peer_port)),
      "--initial-advertise-peer-urls=" + member.peer_url,
      "--initial-cluster=" + cluster,
      fmt::format("--initial-cluster-token=lockbench-{}", all.front().client_port),
      // Half of the defaults: loopback has no network latency.
      "--heartbeat-interval=50",
      "--election-timeout=500",
      // The least: a secret of 128 bits cannot be guessed, and each connecting client costs this
      // much CPU.
      "--bcrypt-cost=4",
  };
  if (member.peer_port == 0) return words;
  words.insert(words.end(), {"--peer-cert-file=" + member.peer_tls.certificate.string(),
                             "--peer-key-file=" + member.peer_tls.key.string(),
                             "--peer-trusted-ca-file=" + member.peer_tls.ca.string(),
                             "--peer-client-cert-auth"});
  return words;
}

/// The text under this name in a JSON object, as etcd prints it: "name":"text".
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
  const auto whole = [](std::string_view text) {
    return text.find("\r\n\r\n") != std::string_view::npos && text.ends_with('}');
  };
  const auto answer = ask_until(server.port(), request, kWithin, whole, server.tls());
  if (!answer) return false;
  const std::string_view leader = text_of(*answer, "leader");
  return !leader.empty() && leader == text_of(*answer, "member_id");
}

using Answer = tl::expected<std::string, std::string>;

/// The answer of etcd's gateway from HTTP to its API.
Answer post(const fs::path& socket, std::string_view method, std::string_view body) {
  const std::string request = fmt::format(
      "POST /v3/auth/{} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      method, body.size(), body);
  const auto until_it_closes = [](std::string_view) { return false; };
  return ask_until(socket, request, std::chrono::seconds(3), until_it_closes);
}

/// Counts a repeated request as done: an unanswered one may have taken effect, for example during
/// an election.
bool done(const Answer& answer) {
  return answer && (answer->find(" 200 ") < answer->find('\n') ||
                    answer->find("already exists") != std::string::npos);
}

/// Makes the root user of the etcd on this unix socket, and makes authentication mandatory from now
/// on. Takes at most some seconds.
void enable_etcd_auth(const fs::path& socket, const std::string& secret) {
  constexpr std::chrono::seconds kPatience{10};
  const std::array<std::array<std::string, 2>, 3> steps{
      {{"user/add", fmt::format(R"({{"name":"{}","password":"{}"}})", kEtcdRoot, secret)},
       {"user/grant", fmt::format(R"({{"user":"{0}","role":"{0}"}})", kEtcdRoot)},
       {"enable", "{}"}}};
  for (const auto& [method, body] : steps) {
    Answer answer;
    const auto is_done = [&, &method = method, &body = body] {
      answer = post(socket, method, body);
      return done(answer);
    };
    if (comes_true(kPatience, is_done)) continue;
    throw Failure(fmt::format("etcd: authentication cannot be enabled: {}: {}", method,
                              answer ? *answer : answer.error()));
  }
}

std::unique_ptr<Server> start_spec(Testbed& testbed, const EtcdOptions& options, std::size_t number,
                                   ServerSpec spec) {
  spec.ready = etcd_is_ready;
  if (options.mesh != nullptr) {
    // Makes Go look up names through the C library.
    spec.set({"GODEBUG=netdns=cgo"});
    options.mesh->put_under(testbed, number, spec);
  }
  return need(Server::start(testbed, std::move(spec)));
}

/// Starts members that can be reached only in their folders, and makes them require authentication.
/// They have ended when this returns.
std::vector<Member> set_up(Testbed& testbed, int count, const EtcdOptions& options) {
  std::vector<Member> members;
  const auto begin = [&] { return members = choose(testbed, options, count); };
  const auto start = [&](std::size_t number, const std::vector<Member>& all) {
    ServerSpec spec = ServerSpec::in_new_folder(testbed, "etcd-setup");
    spec.name = kEtcd.name;
    spec.argv = arguments(all[number], all, "unix://" + std::string(kSetupSocket));
    return start_spec(testbed, options, number, std::move(spec));
  };
  const auto servers = need(start_all_on_free_ports<Server, Member>(begin, start));
  enable_etcd_auth(servers.front()->data_folder() / kSetupSocket, testbed.secret());
  for (std::size_t i = 0; i < members.size(); ++i) {
    need(servers.at(i)->kill_hard());
    members[i].folder = need(testbed.make_server_folder(kEtcd.name));
    std::error_code error;
    fs::rename(servers.at(i)->data_folder() / kData, members[i].folder / "data" / kData, error);
    if (error) throw Failure(fmt::format("cannot move etcd's data: {}", error.message()));
  }
  return members;
}

std::unique_ptr<Server> start_member(Testbed& testbed, const EtcdOptions& options,
                                     std::size_t number, const std::vector<Member>& all) {
  const Member& member = all[number];
  ServerSpec spec;
  spec.folder = member.folder;
  spec.name = kEtcd.name;
  spec.argv = arguments(member, all,
                        on_loopback(options.tls == nullptr ? "http" : "https", member.client_port));
  if (const TlsFiles* const files = options.tls) {
    spec.argv.push_back("--cert-file=" + files->certificate.string());
    spec.argv.push_back("--key-file=" + files->key.string());
    if (files->asks_clients) {
      spec.argv.push_back("--trusted-ca-file=" + files->ca.string());
      spec.argv.emplace_back("--client-cert-auth");
    }
  }
  if (all.size() == 1) {
    spec.argv.insert(spec.argv.begin(),
                     {"/bin/sh", "-c", std::string(kWithSeed), std::string(kEtcd.name)});
  }
  spec.ports = {member.client_port};
  if (member.peer_port != 0) spec.ports.push_back(member.peer_port);
  spec.speak("http", "https", testbed.login(kEtcdRoot), options.tls);
  spec.leads = leads;
  return start_spec(testbed, options, number, std::move(spec));
}

}  // namespace

StartedCluster start_etcd_cluster(Testbed& testbed, int members, const EtcdOptions& options) {
  return start_all_on_free_ports<Server, Member>(
      [&] { return set_up(testbed, members, options); },
      [&](std::size_t number, const std::vector<Member>& all) {
        return start_member(testbed, options, number, all);
      });
}

StartedServer start_etcd(Testbed& testbed, const EtcdOptions& options) {
  return start_etcd_cluster(testbed, 1, options).map([](auto members) {
    return std::move(members.front());
  });
}

}  // namespace lockbench::testbed
