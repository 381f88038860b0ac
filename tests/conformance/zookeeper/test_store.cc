#include <fmt/format.h>

#include <algorithm>

#include "deployment/failure.h"
#include "testbed/servers/ports.h"
#include "tests/conformance/zookeeper/zookeeper_test_store.h"
#include "tests/support/eventually.h"
#include "tests/support/zookeeper_bytes.h"

namespace lockbench::test {
namespace {

using zookeeper::Reader;
using zookeeper::Writer;

constexpr std::int32_t kCreate = 1, kDelete = 2, kExists = 3, kGetChildren = 8;
constexpr std::int32_t kNoNode = -101, kNotEmpty = -111;
constexpr std::chrono::seconds kProbeTtl{60}, kProbePatience{20};

/// The session's password, which the server derives from its number by Java's Random.
std::string password_of(std::int64_t session) {
  constexpr std::uint64_t kServersSecret = 0xB3415C00, kFactor = 0x5DEECE66D;
  constexpr std::uint64_t kMask = (1ULL << 48) - 1;
  constexpr std::size_t kSize = 16;
  std::string password;
  std::uint64_t seed = ((static_cast<std::uint64_t>(session) ^ kServersSecret) ^ kFactor) & kMask;
  while (password.size() < kSize) {
    seed = (seed * kFactor + 0xB) & kMask;
    for (int byte = 0; byte < 4; ++byte) password += static_cast<char>(seed >> (16 + 8 * byte));
  }
  return password;
}

void must(std::int32_t error, const std::string& path) {
  if (error != 0) throw std::runtime_error(fmt::format("{}: error {}", path, error));
}

Writer path_and(const std::string& path, bool watch) {
  Writer body;
  body.put(std::string_view(path)).put(watch);
  return body;
}

/// The request that creates a node with this access list.
Writer creation(const std::string& path, std::string_view acl, std::int32_t mode) {
  constexpr std::string_view kLetters = "rwcda";
  const std::size_t scheme = acl.find(':'), rights = acl.rfind(':');
  std::int32_t allowed = 0;
  for (const char letter : acl.substr(rights + 1)) allowed |= 1 << kLetters.find(letter);
  Writer body;
  body.put(std::string_view(path)).put(std::string_view());
  body.put(std::int32_t{1}).put(allowed);
  body.put(acl.substr(0, scheme)).put(acl.substr(scheme + 1, rights - scheme - 1)).put(mode);
  return body;
}

constexpr std::string_view kEverybody = "world:anyone:rwcda";

}  // namespace

ZookeeperProbe::ZookeeperProbe(testbed::Server& server)
    : endpoint_(zookeeper::parse_endpoint(server.url()).value()), port_(server.port()) {}

ZookeeperProbe::~ZookeeperProbe() {
  if (link_) link_->packets().send(zookeeper::end_session(++xid_));
}

bool ZookeeperProbe::connect() {
  auto link = std::make_unique<zookeeper::Link>(endpoint_, *env_);
  link->begin(kProbePatience);
  const TimePoint give_up_at = env_->now() + kProbePatience;
  while (env_->now() < give_up_at) {
    const auto greeting = link->advance({}, kProbeTtl, *env_, zookeeper::Packets::kPace);
    if (!greeting) continue;
    session_ = greeting->id;
    link->packets().send(zookeeper::authenticate(endpoint_.user, endpoint_.password));
    link_ = std::move(link);
    return true;
  }
  return false;
}

std::optional<ZookeeperProbe::Answer> ZookeeperProbe::try_to_ask(std::int32_t operation,
                                                                 const Writer& body) {
  if (!link_ && !connect()) return std::nullopt;
  Writer header;
  header.put(++xid_).put(operation);
  // Both parts without their frames.
  const std::string framed = jute::text(header.framed().substr(4) + body.framed().substr(4));
  const TimePoint give_up_at = env_->now() + kProbePatience;
  bool open = link_->packets().send(framed);
  while (open && env_->now() < give_up_at) {
    open = link_->packets().receive(zookeeper::Packets::kPace) != Transport::Status::closed;
    for (auto packet = link_->packets().next(); packet && *packet;
         packet = link_->packets().next()) {
      Reader from(**packet);
      const std::int32_t xid = from.int32();
      from.int64();
      const std::int32_t error = from.int32();
      constexpr std::size_t kHeader = 16;
      if (xid == xid_) return Answer{error, std::string((*packet)->substr(kHeader))};
    }
  }
  link_.reset();
  return std::nullopt;
}

ZookeeperProbe::Answer ZookeeperProbe::ask(std::int32_t operation, const Writer& body) {
  std::optional<Answer> answer;
  if (eventually([&] { return (answer = try_to_ask(operation, body)).has_value(); })) {
    return *std::move(answer);
  }
  throw std::runtime_error(endpoint_.display() + " does not answer");
}

std::vector<std::string> ZookeeperProbe::children(const std::string& path) {
  const Answer answer = ask(kGetChildren, path_and(path, false));
  if (answer.error == kNoNode) return {};
  must(answer.error, path);
  return Reader(answer.body).texts();
}

ZookeeperProbe::Facts ZookeeperProbe::look(const std::string& path) {
  constexpr std::size_t kOwner = 4 * 8 + 3 * 4;  // its place in the metadata
  const Answer answer = ask(kExists, path_and(path, false));
  if (answer.error == kNoNode) return {};
  must(answer.error, path);
  return {.there = true, .owner = Reader(std::string_view(answer.body).substr(kOwner)).int64()};
}

void ZookeeperProbe::make(const std::string& path, const std::string& acl) {
  must(ask(kCreate, creation(path, acl.empty() ? kEverybody : std::string_view(acl), 0)).error,
       path);
}

std::string ZookeeperProbe::make_contender(const std::string& path) {
  constexpr std::int32_t kEphemeralSequential = 3;
  const Answer answer = ask(kCreate, creation(path, kEverybody, kEphemeralSequential));
  must(answer.error, path);
  return std::string(Reader(answer.body).text());
}

bool ZookeeperProbe::remove(const std::string& path) {
  const std::int32_t error =
      ask(kDelete, Writer().put(std::string_view(path)).put(std::int32_t{-1})).error;
  if (error == kNoNode) return false;
  must(error, path);
  return true;
}

void ZookeeperProbe::remove_tree(const std::string& path) {
  for (const std::string& child : children(path)) remove_tree(fmt::format("{}/{}", path, child));
  // A leaving client may interfere.
  const std::int32_t error =
      ask(kDelete, Writer().put(std::string_view(path)).put(std::int32_t{-1})).error;
  if (error == kNotEmpty) return remove_tree(path);
  if (error != kNoNode) must(error, path);
}

int ZookeeperProbe::other_connections() {
  look("/");  // connects it
  const std::string list = four_letters(port_, "cons");
  const std::string own = fmt::format("sid={:#x},", static_cast<std::uint64_t>(session_));
  int count = list.find(own) == std::string::npos ? 0 : -1;
  for (std::size_t at = 0; (at = list.find("sid=", at)) != std::string::npos; ++at) ++count;
  return count;
}

void ZookeeperProbe::end_session(std::uint16_t port, std::int64_t session) {
  constexpr std::int64_t kTimeoutMs = 10'000, kCloseSession = -11;
  const std::string join = jute::number(0, 4) + jute::number(0, 8) + jute::number(kTimeoutMs, 4) +
                           jute::number(session, 8) + jute::text(password_of(session));
  const std::string end = jute::number(1, 4) + jute::number(kCloseSession, 4);
  const std::string both = jute::text(join) + jute::text(end);
  const std::string name = fmt::format("{:#x}", session);
  // The server closes the connection after both.
  const auto whole = [](std::string_view) { return false; };
  // The owner loses its connection by this, but may reclaim its session before it is ended.
  for (int trial = 0; trial < 20; ++trial) {
    (void)testbed::ask_until(port, both, kPatience, whole);
    std::string sessions = four_letters(port, "dump");
    // Connections follow, including ones whose session has ended.
    sessions.resize(std::min(sessions.find("Connections dump"), sessions.size()));
    if (sessions.find(name) == std::string::npos) return;
  }
  throw std::runtime_error("the session could not be ended");
}

std::string four_letters(std::uint16_t port, const std::string& letters) {
  // The server closes the connection after its answer.
  const auto whole = [](std::string_view) { return false; };
  const auto answer = testbed::ask_until(port, letters, kPatience, whole);
  if (!answer) throw std::runtime_error(answer.error());
  return *answer;
}

ZookeeperTestStore::ZookeeperTestStore()
    : server_(deployment::need(testbed::start_zookeeper(
          shared_testbed(), {.config = {"4lw.commands.whitelist=srvr,envi,cons,dump"}}))),
      probe_(std::make_unique<ZookeeperProbe>(*server_)) {}

std::vector<std::string> ZookeeperTestStore::keys() {
  std::vector<std::string> keys;
  for (const std::string& run : probe_->children("/lockbench")) {
    const std::string path = "/lockbench/" + run;
    for (const std::string& name : probe_->children(path)) {
      const std::string node = fmt::format("{}/{}", path, name);
      // A key's node exists for the whole run; its children and ephemeral nodes are locks.
      const bool held = probe_->look(node).owner != 0 || !probe_->children(node).empty();
      if (held) keys.push_back(fmt::format("lockbench:{}:{}", run, name));
    }
  }
  return keys;
}

std::optional<TimePoint> ZookeeperTestStore::end_of(const std::string& /*key*/) {
  return std::nullopt;  // it lasts as long as its session
}

void ZookeeperTestStore::take_away(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const std::string node = node_of(key);
    for (const std::string& child : probe_->children(node))
      probe_->remove(fmt::format("{}/{}", node, child));
    if (probe_->look(node).owner != 0) probe_->remove(node);
  }
}

int ZookeeperTestStore::other_connections() { return probe_->other_connections(); }

std::string node_of(const std::string& key) {
  std::string path = "/" + key;
  std::replace(path.begin(), path.end(), ':', '/');
  return path;
}

ZookeeperTestStore& shared_zookeeper() { return dynamic_cast<ZookeeperTestStore&>(shared_store()); }

namespace {

const TestedStoreRegistration registration({.name = "zookeeper",
                                            .backends = {"zookeeper"},
                                            .shared = the_one<ZookeeperTestStore>,
                                            .make = another<ZookeeperTestStore>,
                                            .properties = zookeeper_properties});

}  // namespace

}  // namespace lockbench::test
