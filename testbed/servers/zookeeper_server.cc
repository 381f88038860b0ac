#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "testbed/servers/kinds.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

constexpr Program kJava{"java", "default-jre-headless"};
/// Its manifest names the jars that it needs, except for a logger.
constexpr std::string_view kJar = "/usr/share/java/zookeeper.jar";
constexpr std::string_view kLogger = "/usr/share/java/slf4j-simple.jar";
/// For TLS with clients: the manifest lacks these, though jars that it names need them.
constexpr std::string_view kNetty =
    "/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar:"
    "/usr/share/java/netty-transport-native-unix-common.jar";

/// In the server's folder.
constexpr std::string_view kConfig = "zoo.cfg", kSnapshot = "snapshot", kPeerKey = "peers.pem",
                           kClientKey = "clients.pem";

/// A member's number and the owner of its nodes are part of its data, so restores them after the
/// data was removed.
constexpr std::string_view kStart = R"(
echo "$1" > myid && shift || exit 1
[ -e version-2 ] || { mkdir -p new && cp ../snapshot new/snapshot.0 && mv new version-2; } || exit 1
exec "$@"
)";

/// The answer to one of ZooKeeper's commands of four letters.
std::string ask(const Server& server, std::string_view letters) {
  constexpr std::chrono::milliseconds kWithin{500};
  // The server closes the connection after the answer.
  const auto whole = [](std::string_view) { return false; };
  return ask_until(server.port(), letters, kWithin, whole, server.tls()).value_or("");
}

/// Checks that this process answers, as another may have taken the port first.
bool zookeeper_is_ready(const Server& server) {
  if (zookeeper_mode(server).empty()) return false;
  const std::string folder = fmt::format("user.dir={}\n", server.data_folder().string());
  return ask(server, "envi").find(folder) != std::string::npos;
}

/// The ports of a member: three in an ensemble, only the first for a single server.
struct Voter {
  std::uint16_t clients = 0, peers = 0, election = 0;
  TlsFiles tls{};  ///< in an ensemble
};

std::vector<Voter> choose(Testbed& testbed, const ZookeeperOptions& options, std::size_t size) {
  if (size == 1) return {{.clients = need(testbed.choose_port())}};
  const auto ports = need(distinct_ports(testbed.choose_port, 3 * size));
  const auto certificates = need(certify_members(testbed, "zookeeper-peers", size));
  std::vector<Voter> members;
  std::vector<std::vector<std::uint16_t>> between;
  for (std::size_t i = 0; i < size; ++i) {
    members.push_back({ports.at(3 * i), ports.at(3 * i + 1), ports.at(3 * i + 2), certificates[i]});
    between.push_back({members.back().peers, members.back().election});
  }
  if (options.mesh != nullptr) options.mesh->connect(between);
  return members;
}

std::vector<std::string> arguments(const ZookeeperOptions& options, const fs::path& java,
                                   const fs::path& jar, const fs::path& folder,
                                   std::size_t number) {
  std::vector<std::string> words = {
      "/bin/sh", "-c", std::string(kStart), "zookeeper", std::to_string(number + 1), java.string(),
      // For two cores, and without files outside its own folder.
      "-XX:+UseSerialGC", "-Xms64m", "-Xmx512m", "-XX:-UsePerfData", "-Djava.io.tmpdir=.",
      "-Dzookeeper.preAllocSize=4096", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"};
  words.insert(words.end(), options.java.begin(), options.java.end());
  if (options.mesh != nullptr) {
    // For isolated members. By default, a member in an election connects to one after another and
    // waits 5 s for each, and repeats a lost vote only after up to 60 s.
    words.insert(words.end(), {"-Dzookeeper.cnxTimeout=500",
                               "-Dzookeeper.fastleader.maxNotificationInterval=1000"});
  }
  words.insert(words.end(),
               {"-cp", fmt::format("{}:{}:{}", jar.string(), kLogger, kNetty),
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", (folder / kConfig).string()});
  return words;
}

std::string configuration(const ZookeeperOptions& options, const fs::path& folder,
                          std::size_t number, const std::vector<Voter>& all) {
  std::string text = fmt::format(
      "dataDir={0}\n{1}={2}\n{1}Address=127.0.0.1\n"
      // In milliseconds. Sessions are checked once per tick, so they end at most a tick late.
      "tickTime=100\nminSessionTimeout=200\nmaxSessionTimeout=3600000\n"
      // In ticks: 10 s to join; then 5 s, or 2 s in a mesh, until an isolated member is given up.
      "initLimit=100\nsyncLimit={3}\n"
      "maxClientCnxns=0\nadmin.enableServer=false\n"
      // Anyone may send them.
      "4lw.commands.whitelist=srvr,envi\n",
      (folder / "data").string(), options.tls == nullptr ? "clientPort" : "secureClientPort",
      all[number].clients, options.mesh == nullptr ? 50 : 20);
  for (std::size_t i = 0; all.size() > 1 && i < all.size(); ++i) {
    text += fmt::format("server.{}={}:{}:{}\n", i + 1,
                        options.mesh == nullptr ? "127.0.0.1" : Mesh::name_of(i), all[i].peers,
                        all[i].election);
  }
  for (const std::string& setting : options.config) text += setting + "\n";
  return text;
}

/// Members let each other in by certificates of an authority of their own.
std::string peer_configuration(const TlsFiles& tls, const fs::path& key) {
  return fmt::format(
      "sslQuorum=true\nssl.quorum.clientAuth=need\n"
      "ssl.quorum.keyStore.type=PEM\nssl.quorum.keyStore.location={}\n"
      "ssl.quorum.trustStore.type=PEM\nssl.quorum.trustStore.location={}\n"
      // All have one address, and the authority certifies only them.
      "ssl.quorum.hostnameVerification=false\n",
      key.string(), tls.ca.string());
}

std::string client_configuration(const TlsFiles& tls, const fs::path& key) {
  return fmt::format(
      "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
      "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n"
      "ssl.keyStore.type=PEM\nssl.keyStore.location={}\n"
      "ssl.trustStore.type=PEM\nssl.trustStore.location={}\nssl.clientAuth={}\n",
      key.string(), tls.ca.string(), tls.asks_clients ? "need" : "none");
}

/// In jute, ZooKeeper's serialization: big-endian numbers; texts preceded by their length.
std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> static_cast<unsigned>(shift));
  }
  return text;
}
std::string int32(std::uint32_t value) { return number(value, 4); }
std::string int64(std::uint64_t value) { return number(value, 8); }
std::string text(std::string_view value) {
  return int32(static_cast<std::uint32_t>(value.size())).append(value);
}

/// "user:DIGEST", as DigestAuthenticationProvider makes it: of SHA-1, in base 64.
std::string identity(std::string_view user, std::string_view password) {
  const std::string both = fmt::format("{}:{}", user, password);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  std::size_t size = 0;
  EVP_Q_digest(nullptr, "SHA1", nullptr, both.data(), both.size(), digest.data(), &size);
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> encoded{};
  EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(size));
  return fmt::format("{}:{}", user, reinterpret_cast<const char*>(encoded.data()));
}

/// A node without data and history, with the only ACL.
std::string node(std::string_view path) {
  constexpr int kStatSize = 4 * 8 + 3 * 4 + 2 * 8;
  constexpr std::uint64_t kAcl = 1;
  return text(path) + text("") + int64(kAcl) + std::string(kStatSize, '\0');
}

std::uint32_t adler32(std::string_view data) {
  constexpr std::uint32_t kBase = 65'521;
  std::uint32_t low = 1, high = 0;
  for (const char byte : data) {
    low = (low + static_cast<unsigned char>(byte)) % kBase;
    high = (high + low) % kBase;
  }
  return high << 16U | low;
}

/// A snapshot of a ZooKeeper without data, "snapshot.0", whose nodes only this digest user may
/// touch. Without a snapshot, a server would let everybody in until its root has an ACL.
std::string zookeeper_snapshot(std::string_view user, std::string_view password) {
  constexpr std::uint32_t kVersion = 2, kAllRights = 31;
  constexpr std::uint64_t kNoDatabase = ~std::uint64_t{0};
  std::string snapshot = "ZKSN" + int32(kVersion) + int64(kNoDatabase);
  snapshot += int32(0);  // sessions
  // ACLs by number: one, with one entry.
  snapshot += int32(1) + int64(1) + int32(1) + int32(kAllRights) + text("digest") +
              text(identity(user, password));
  for (const char* path : {"", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}) {
    snapshot += node(path);
  }
  snapshot += text("/");
  return snapshot + int64(adler32(snapshot)) + text("/");
}

std::string contents_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A key and its certificate in one file, as Java requires.
void write_key(const Testbed& testbed, const fs::path& path, const TlsFiles& tls) {
  need(testbed.write_file(path, contents_of(tls.key) + contents_of(tls.certificate)));
}

std::unique_ptr<Server> start_member(Testbed& testbed, const ZookeeperOptions& options,
                                     std::size_t number, const std::vector<Voter>& all) {
  const fs::path jar = need(find_zookeeper()), java = need(find_program(kJava));
  const Voter& own = all[number];
  ServerSpec spec = ServerSpec::in_new_folder(testbed, kZookeeper, {own.clients});
  std::string config = configuration(options, spec.folder, number, all);
  need(testbed.write_file(spec.folder / kSnapshot, zookeeper_snapshot(kUser, testbed.secret())));
  if (all.size() > 1) {
    spec.ports.insert(spec.ports.end(), {own.peers, own.election});
    config += peer_configuration(own.tls, spec.folder / kPeerKey);
    write_key(testbed, spec.folder / kPeerKey, own.tls);
  }
  if (options.tls != nullptr) {
    config += client_configuration(*options.tls, spec.folder / kClientKey);
    write_key(testbed, spec.folder / kClientKey, *options.tls);
  }
  need(testbed.write_file(spec.folder / kConfig, config));
  spec.argv = arguments(options, java, jar, spec.folder, number);
  if (options.mesh != nullptr) options.mesh->put_under(testbed, number, spec);
  spec.clock = options.clock;
  spec.speak("zk", "zks", testbed.login(), options.tls);
  spec.ready = zookeeper_is_ready;
  spec.leads = [](const Server& server) { return zookeeper_mode(server) == "leader"; };
  return need(Server::start(testbed, std::move(spec)));
}

}  // namespace

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

StartedCluster start_zookeeper_ensemble(Testbed& testbed, int size,
                                        const ZookeeperOptions& options) {
  return start_all_on_free_ports<Server, Voter>(
      [&] { return choose(testbed, options, static_cast<std::size_t>(size)); },
      [&](std::size_t number, const std::vector<Voter>& all) {
        return start_member(testbed, options, number, all);
      });
}

StartedServer start_zookeeper(Testbed& testbed, const ZookeeperOptions& options) {
  return start_zookeeper_ensemble(testbed, 1, options).map([](auto members) {
    return std::move(members.front());
  });
}

std::string zookeeper_mode(const Server& server) {
  constexpr std::string_view kLabel = "Mode: ";
  const std::string answer = ask(server, "srvr");
  const std::size_t start = answer.find(kLabel);
  if (start == std::string::npos) return {};
  const std::size_t from = start + kLabel.size();
  return answer.substr(from, answer.find('\n', from) - from);
}

}  // namespace lockbench::testbed
