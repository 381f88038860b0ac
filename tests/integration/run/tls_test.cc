#include <fmt/format.h>
#include <gmock/gmock.h>

#include <future>

#include "strategies/store.h"
#include "testbed/servers/authority.h"
#include "testbed/servers/kinds.h"
#include "tests/integration/support/documents.h"
#include "tests/integration/support/program.h"
#include "tests/support/must.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using testbed::Authority;
using testbed::Server;
using testbed::Testbed;
using testbed::TlsFiles;
using testing::HasSubstr;
using testing::Not;
using Started = tl::expected<std::unique_ptr<Server>, std::string>;

/// All from one authority, except `other`.
struct Certificates {
  TlsFiles good, expired, wrong_name, self_signed, asking, other;
};

const Certificates& certificates() {
  static const Certificates all = [] {
    const Testbed& testbed = shared_testbed();
    const auto make = [&](const char* name) {
      return must(Authority::make(testbed.folder() / name, testbed.account()));
    };
    const auto authority = make("authority");
    Certificates made{.good = must(authority->issue("good")),
                      .expired = must(authority->issue("expired", Authority::Flaw::expired)),
                      .wrong_name = must(authority->issue("wrong", Authority::Flaw::wrong_name)),
                      .self_signed = must(authority->issue("self", Authority::Flaw::self_signed)),
                      .asking = must(authority->issue("asking")),
                      .other = must(make("other-authority")->issue("other"))};
    made.asking.asks_clients = true;
    return made;
  }();
  return all;
}

/// The messages of one store.
struct TlsStore {
  std::string name;
  Started (*start)(const TlsFiles* tls);
  std::string plain_port = "the server does not speak TLS";
  /// A JVM takes long to start, and the client's TLS code is the same for all stores.
  bool slow = false;
  std::string before{};  ///< text before the reason
  std::string cacert = "cacert", cert = "cert", key = "key";
  std::string wrong_name =
      "its certificate is not for 127.0.0.1: set server-name=NAME to a name that it is for";
  std::string no_client_certificate =
      "the server requires a client certificate: cert=FILE&key=FILE";
};

template <class Options, Started (*kStart)(Testbed&, const Options&)>
Started start(const TlsFiles* tls) {
  Options options;
  options.tls = tls;
  return kStart(shared_testbed(), options);
}

std::vector<TlsStore> stores() {
  const std::string closed =
      "the connection was closed in the TLS handshake: the server may not speak TLS";
  TlsStore postgres{.name = "postgres",
                    .start = start<testbed::PostgresOptions, testbed::start_postgres>,
                    .plain_port = "server does not support SSL, but SSL was required",
                    .cacert = "sslrootcert",
                    .cert = "sslcert",
                    .key = "sslkey"};
  // libpq's own words.
  postgres.wrong_name = R"(server certificate for "elsewhere.invalid" (and 1 other name) )"
                        R"(does not match host name "127.0.0.1")";
  postgres.no_client_certificate = "FATAL:  connection requires a valid client certificate";
  TlsStore mysql{.name = "mysql", .start = start<testbed::MysqlOptions, testbed::start_mariadb>};
  mysql.no_client_certificate =
      "Access denied for user 'lockbench'@'127.0.0.1' (using password: YES)";
  return {
      {.name = "redis",
       .start = start<testbed::RedisOptions, testbed::start_redis>,
       // The server waits for the end of a line.
       .plain_port = "no connection within 1s: no answer to the TLS handshake: the server may "
                     "not speak TLS"},
      {.name = "memcached", .start = start<testbed::MemcachedOptions, testbed::start_memcached>},
      {.name = "nats", .start = start<testbed::NatsOptions, testbed::start_nats>},
      {.name = "etcd",
       .start = start<testbed::EtcdOptions, testbed::start_etcd>,
       .plain_port = closed},
      {.name = "zookeeper",
       .start = start<testbed::ZookeeperOptions, testbed::start_zookeeper>,
       .plain_port = closed,
       .slow = true,
       .before = "no ZooKeeper answers: ",
       // Newer versions of Java 17 send the same alert for every refused handshake.
       .no_client_certificate = " a client certificate: cert=FILE&key=FILE"},
      postgres,
      mysql};
}

class TlsOf : public testing::TestWithParam<TlsStore> {
 protected:
  void SetUp() override {
    if (find_store_kind(GetParam().name) == nullptr) GTEST_SKIP() << "left out of this build";
  }

  /// The reason why the server cannot be used, without its address; empty if it can.
  static std::string problem(const std::string& url, const Server& server,
                             Duration timeout = std::chrono::seconds(5)) {
    const StoreKind& kind = *find_store_kind(GetParam().name);
    if (const auto shown = kind.display(url); !shown) return shown.error();
    const auto reached = kind.make(url, timeout)->reach({});
    if (reached) return {};
    const std::string before = server.address() + ": " + GetParam().before;
    const std::string& message = reached.error().message;
    return message.starts_with(before) ? message.substr(before.size()) : message;
  }
  static std::string problem(const Server& server) { return problem(server.url(), server); }

  using Starting = std::future<Started>;
  static std::string problem(Starting& starting) {
    const auto server = must(starting.get());
    std::string text = problem(*server);
    EXPECT_TRUE(server->kill_hard());  // faster than an orderly stop
    return text;
  }
  static Starting begin(const TlsFiles* tls) {
    return std::async(std::launch::async, GetParam().start, tls);
  }
};

/// All servers start side by side: a JVM and a new PostgreSQL cluster take a second each.
TEST_P(TlsOf, TrustsTheRightServerAndSaysInALineWhatIsWrongWithOthers) {
  const TlsStore& store = GetParam();
  const Certificates& with = certificates();
  Starting starting_good = begin(&with.good), starting_plain = begin(nullptr),
           starting_asking = begin(&with.asking);
  Starting starting_expired, starting_wrong, starting_self;
  if (!store.slow) {
    starting_expired = begin(&with.expired);
    starting_wrong = begin(&with.wrong_name);
    starting_self = begin(&with.self_signed);
  }

  const auto good = must(starting_good.get());
  EXPECT_EQ(problem(*good), "");
  std::string distrusting = good->url();
  const std::string ours = with.good.ca.string();
  distrusting.replace(distrusting.find(ours), ours.size(), with.other.ca.string());
  EXPECT_EQ(
      problem(distrusting, *good),
      fmt::format("its certificate is from an untrusted authority: name the authority with {}=FILE",
                  store.cacert));

  const auto plain = must(starting_plain.get());
  EXPECT_EQ(problem(good->url_form().on({plain->port()}), *plain, std::chrono::seconds(1)),
            store.plain_port);

  const auto asking = must(starting_asking.get());
  EXPECT_THAT(problem(*asking), testing::EndsWith(store.no_client_certificate));
  EXPECT_EQ(problem(fmt::format("{}&{}={}&{}={}", asking->url(), store.cert,
                                with.good.certificate.string(), store.key, with.good.key.string()),
                    *asking),
            "");

  for (const auto* server : {&good, &plain, &asking}) EXPECT_TRUE((*server)->kill_hard());
  if (store.slow) return;
  EXPECT_EQ(problem(starting_expired), "its certificate has expired");
  EXPECT_EQ(problem(starting_wrong), store.wrong_name);
  EXPECT_EQ(problem(starting_self),
            fmt::format("its certificate is self-signed and not trusted: name it with {}=FILE",
                        store.cacert));
}

INSTANTIATE_TEST_SUITE_P(Stores, TlsOf, testing::ValuesIn(stores()),
                         [](const auto& of) { return of.param.name; });

TEST(Tls, EtcdSaysThatAPlainUrlLeadsToATlsPort) {
  const StoreKind* const etcd = find_store_kind("etcd");
  if (etcd == nullptr) GTEST_SKIP() << "left out of this build";
  const auto server = must(start<testbed::EtcdOptions, testbed::start_etcd>(&certificates().good));
  const auto reached =
      etcd->make("http://" + server->address(), std::chrono::seconds(5))->reach({});
  ASSERT_FALSE(reached);
  EXPECT_EQ(reached.error().message, server->address() + ": the server speaks TLS: use https://");
}

TEST(Tls, OfPrivateServersCarriesLocksOfAllKinds) {
  const Scratch scratch;
  const std::vector<std::string> strategies = {
      "redis-set-nx-lua",  "redis-queue", "redis-watchdog", "redis-wait", "redlock-parallel",
      "memcached-add-cas", "nats-kv",     "zookeeper",      "etcd",       "postgres-advisory",
      "mysql-get-lock"};
  std::vector<std::string> arguments = words(
      "run --tls --clients 4 --hold 1ms --node-timeout 1s --wait-timeout 10s --warmup 0ms "
      "--iterations 100 --resource redis --out r.json");
  arguments.insert(arguments.begin() + 1, strategies.begin(), strategies.end());
  Program program(scratch, arguments);
  const Outcome outcome = program.finish();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = read_result(scratch / "r.json");
  EXPECT_EQ(result.at("workload").at("tls"), true);
  for (const std::string& strategy : strategies) {
    const Json& run = run_of(result, strategy);
    EXPECT_GT(run.at("sections"), 0) << strategy;
    EXPECT_TRUE(kept_exclusion(run)) << strategy;
    EXPECT_EQ(run.at("outcomes").at("failed"), 0) << strategy;
  }
  const Json& servers = result.at("environment").at("servers");
  EXPECT_EQ(servers.size(), 9U) << "of seven stores, one with replicas, and the counter's";
  for (const auto& [name, server] : servers.items()) {
    EXPECT_EQ(server.at("encryption"), name == "postgres" ? "sslmode=verify-full" : "TLS") << name;
  }
}

/// 0.0.0.0 also leads here, but is not a loopback address.
TEST(Tls, APasswordThatCrossesANetworkWithoutItIsWarnedOf) {
  const auto server = own_redis();
  const std::string elsewhere = fmt::format("0.0.0.0:{}", server->port());
  const std::string warning = elsewhere + ": its password may cross the network unencrypted";
  for (const std::string& address : {elsewhere, server->address()}) {
    const Scratch scratch;
    const Outcome outcome = lockbench(
        scratch, short_run({"redis-set-nx", "--redis", server->url_form().before + address}));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(has(outcome.err, warning + ": use rediss://"), address == elsewhere) << outcome.err;
    EXPECT_EQ(has(outcome.err, "unencrypted"), address == elsewhere) << outcome.err;
    EXPECT_THAT(outcome.err + outcome.out + scratch.all_text(), Not(HasSubstr(server->secret())));
  }
}

}  // namespace
}  // namespace lockbench::test
