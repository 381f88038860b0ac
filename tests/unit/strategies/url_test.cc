// The URLs of each store: display forms, refusals, and warnings about passwords. That user and
// password are read correctly is proved by logging in: tests/conformance.

#include "strategies/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/store.h"

namespace lockbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(StoreUrls, AreShownWithoutCredentials) {
  const std::string longest = "/" + std::string(106, 'p');
  const struct {
    std::string store, url, shown, encryption;
  } cases[] = {
      {"redis", "redis://ann:hunter2@h:65535/", "h:65535"},
      {"redis", "redis://:p@ss:word@127.0.0.1:7001/12", "127.0.0.1:7001/12"},  // the last @ counts
      {"redis", "redis://:hunter2@[::1]", "[::1]:6379"},
      {"redis", "unix://ann:hunter2@/r?db=5", "unix:/r?db=5"},
      {"redis", "unix://" + longest, "unix:" + longest},
      {"redis", "redis+sentinel://ann:hunter2@10.0.0.1:1,[::1]:2,[::1]/lock/7",
       "10.0.0.1:1,[::1]:2,[::1]:26379/lock/7"},
      {"redis", "rediss://ann:hunter2@h:1/2?server-name=db.example&min-tls=1.3", "h:1/2", "TLS"},
      {"redis", "rediss://:p?q@h/2?min-tls=1.3", "h:6379/2", "TLS"},
      {"redis", "rediss://h", "h:6379", "TLS"},
      {"redis", "rediss+sentinel://s,t/lock/7?min-tls=1.3", "s:26379,t:26379/lock/7", "TLS"},
      {"etcd", "http://db:1/", "db:1"},
      {"etcd", "etcd://a:1,b,[::1]:3", "a:1,b:2379,[::1]:3"},
      {"etcd", "etcd://an%40n:hun%2Cter%3A2@db:1,db2", "db:1,db2:2379"},
      {"etcd", "https://ann:pw@a,b:2?server-name=etcd.example", "a:2379,b:2", "TLS"},
      {"zookeeper", "zoo", "zoo:2181"},
      {"zookeeper", "10.0.0.1:2182,[::1]:2183,zoo/of/ours",
       "10.0.0.1:2182,[::1]:2183,zoo:2181/of/ours"},
      {"zookeeper", "zk://zoo/", "zoo:2181"},
      {"zookeeper", "zk://ann:hunter%2F2%40@a:1,b:2/app", "a:1,b:2/app"},
      {"zookeeper", "zks://ann:pw@a,b:1/app?min-tls=1.2", "a:2281,b:1/app", "TLS"},
      {"redis", "redis+cluster://ann:hunter2@a,[::1]:7000", "a:6379,[::1]:7000"},
      {"redis", "rediss+cluster://:hunter2@a:1,b?min-tls=1.3", "a:1,b:6379", "TLS"},
      {"memcached", "cache", "cache:11211"},
      {"memcached", "memcached://ann:hunter%402@[::1]", "[::1]:11211"},
      {"memcached", "memcaches://ann:pw@cache:1?min-tls=1.3", "cache:1", "TLS"},
      {"nats", "bus", "bus:4222"},
      {"nats", "nats://ann:hunter%402@[::1]", "[::1]:4222"},
      {"nats", "tls://ann:pw@bus:1/?server-name=bus.example", "bus:1", "TLS"},
      {"postgres", "postgresql://ann:hunter2@db.example:6543/app", "db.example:6543"},
      {"postgres", "postgres://ann:hunter2@db.example/app", "db.example:5432"},
      {"postgres", "postgresql://ann:hunter2%40%2F%3A@db/app?sslmode=require", "db:5432",
       "sslmode=require"},
      {"postgres", "postgresql://db/app?user=ann&password=hunter2", "db:5432"},
      {"postgres", "postgresql:///app?host=/run/pg&password=hunter2", "unix:/run/pg:5432"},
      {"postgres", "host=db port=6543 user=ann password=hunter2 sslmode=verify-ca", "db:6543",
       "sslmode=verify-ca"},
      {"postgres", "host=db password='hunter2 \\' host=x' sslmode=verify-full", "db:5432",
       "sslmode=verify-full"},
      {"postgres", "hostaddr=127.0.0.1 password=hunter2", "127.0.0.1:5432"},
      {"postgres", "dbname=app password=hunter2", "local socket:5432"},
      {"mysql", "mysql://ann:hunter2@db.example", "db.example:3306"},
      {"mysql", "mysql://db:3307/", "db:3307"},
      {"mysql", "mysqls://ann:hunter%402@[::1]?min-tls=1.3", "[::1]:3306", "TLS"},
  };
  for (const auto& [store, url, shown, encryption] : cases) {
    const StoreKind* const kind = find_store_kind(store);
    if (kind == nullptr) continue;  // not in this build
    const auto display = kind->display(url);
    ASSERT_TRUE(display) << url << ": " << display.error();
    EXPECT_EQ(*display, shown) << url;
    EXPECT_EQ(kind->secrecy(url).encryption, encryption) << url;
  }
}

TEST(StoreUrls, AreRefusedWithAReasonThatRepeatsNoSecret) {
  std::string many = "redis+sentinel://h";
  for (int i = 0; i < 32; ++i) many += ",h";
  const struct {
    std::string_view store, why;
    std::vector<std::string> urls;
  } cases[] = {
      {"redis",
       "not a Redis URL",
       {"", "127.0.0.1:6379", "http://:hunter2@h", "redisss://h", "REDIS://h",
        "redis+sentinels://h/lock"}},
      {"redis",
       "host is missing",
       {"redis://", "redis://:6379", "redis:///0", "redis://:hunter2@", "redis://[]:1",
        "redis://::1", "redis+sentinel:///lock", "redis+sentinel://,h/lock",
        "redis+sentinel://h,/lock", "redis+sentinel://h,,i/lock",
        "redis+sentinel://a:hunter2@/lock"}},
      {"redis",
       "port must be a number",
       {"redis://h:", "redis://:hunter2@h:x", "redis://h:0", "redis://h:65536", "redis://h:-1",
        "redis://h:1x", "redis://[::1]:", "redis+sentinel://h:hunter2/lock"}},
      {"redis",
       "database must be a number",
       {"redis://:hunter2@h/x", "redis://h/hunter2", "redis://h/-1", "redis://h/1000001",
        "redis://h/0?min-tls=1.3", "unix:///s?db=", "unix:///s?db=x", "redis+sentinel://h/lock/x"}},
      {"redis", "one database", {"redis+cluster://h/0", "rediss+cluster://:hunter2@h,i/x"}},
      {"redis", "absolute path", {"unix://", "unix://run/redis.sock", "unix://:hunter2@s"}},
      {"redis", "at most 107", {"unix:///" + std::string(107, 'p')}},
      {"redis", "only parameter", {"unix:///s?database=1", "unix:///s?password=hunter2"}},
      {"redis",
       "percent-encoded",
       {"redis://hunter2@h", "redis://ann:@h", "redis://:%zz@h", "redis://:hunter2%@h",
        "redis://%g0:hunter2@h", "redis://:%4g@h"}},
      {"redis", "a [ without its ]", {"redis://:hunter2@[::1"}},
      {"redis", "unexpected text after the host", {"redis://[::1]hunter2"}},
      {"redis",
       "credentials must be",
       {"redis://:hunter2/@h:1", "redis://ann:hunter2/@h", "rediss://:hunter2?/@h:1",
        "redis+sentinel://ann:123/hunter2@h:26379"}},
      {"redis",
       "name is missing",
       {"redis+sentinel://h", "redis+sentinel://:hunter2@h/", "redis+sentinel://h//1"}},
      {"redis", "@ in the master's name", {"redis+sentinel://:hunter2@h/lo@ck"}},
      {"redis", "at most 32", {many + "/lock"}},
      {"redis", "verify is not known", {"rediss://h?verify=none"}},
      {"etcd", "the host is missing", {""}},
      {"etcd", "min-tls=1.3 cannot be kept", {"https://hunter2?min-tls=1.3"}},
      {"etcd", "not a host name", {"http://db?cacert=/hunter2"}},
      {"etcd", "not the address of an etcd server", {"redis://hunter2"}},
      {"etcd", "credentials", {"ann:@db", ":hunter2@db", "ann:hunter2@@db", "ann:hunter2,@db"}},
      {"etcd", "a path is not allowed", {"hunter2/path"}},
      {"zookeeper", "the host is missing", {"h,hunter2,"}},
      {"zookeeper",
       "",
       {"", "http://a", "a//b", "a/b/", "a/b c", "ann:hunter2@a", "zk://hunter2@a", "zk://ann:@a",
        "zk://a?server-name=hunter2"}},
      {"memcached", "a space in the host name", {"hunter2 h"}},
      {"memcached",
       "",
       {"", "memcached://hunter2@host", "http://host", "memcached://host/hunter2",
        "memcached://host?cacert=hunter2", "ann:hunter2%0d%0a@host", "ann:hunter2%20@host"}},
      {"mysql", "a database cannot be chosen", {"mysql://ann:hunter2@db/app"}},
      {"mysql",
       "",
       {"", "hunter2", "postgresql://ann:hunter2@db", "mysql://ann:hunter2%zz@db",
        "mysql://ann:x/hunter2@db", "mysql://db?cacert=hunter2", "mysql://ann:hunter2@a,b"}},
      {"nats",
       "",
       {"", "nats://hunter2@host", "http://host", "nats://host/hunter2",
        "nats://host?cacert=hunter2", "nats://ann:hunter2@a,b"}},
      // Unencoded passwords: libpq would take parts of them for host, port or database.
      {"postgres",
       "",
       {"", "hunter2", "host=db hunter2", "nonsense=hunter2", "password='hunter2",
        "mysql://ann:hunter2@db/app", "postgresql://ann:hunter2%zz@db/app",
        "postgresql://ann:x@hunter2@db/app", "postgresql://ann:1234/hunter2@db/app",
        "postgresql://ann:x/hunter2@db/app", "host=db port=hunter2"}},
  };
  for (const auto& [store, why, urls] : cases) {
    const StoreKind* const kind = find_store_kind(store);
    if (kind == nullptr) continue;
    for (const std::string& url : urls) {
      const auto display = kind->display(url);
      ASSERT_FALSE(display) << url << " is shown as " << *display;
      EXPECT_THAT(display.error(),
                  AllOf(HasSubstr(why), HasSubstr("allowed: "), Not(HasSubstr("hunter2"))))
          << store << " " << url;
    }
  }
}

/// But not on the loopback.
TEST(StoreUrls, APasswordThatANetworkWouldSeeIsAdvisedAgainst) {
  const struct {
    std::string store, url, advice;
  } cases[] = {
      {"redis", "redis://:pw@h", "use rediss://"},
      {"redis", "redis+sentinel://:pw@h/lock", "use rediss+sentinel://"},
      {"redis", "unix://:pw@/r", ""},
      {"etcd", "http://ann:pw@db", "use https://"},
      {"etcd", "http://ann:pw@127.0.0.1,db", "use https://"},
      {"etcd", "https://ann:pw@db", ""},
      {"etcd", "http://db", ""},
      {"etcd", "http://ann:pw@127.0.0.1,localhost,[::1]:7", ""},
      {"postgres", "postgresql://u:pw@db/app?sslmode=disable", "use sslmode=verify-full"},
      {"postgres", "postgresql://u:pw@db/app?sslmode=allow", "use sslmode=verify-full"},
      {"postgres", "postgresql://u:pw@db/app?sslmode=prefer", "use sslmode=verify-full"},
      {"postgres", "host=db password=pw sslmode=require", ""},
      {"postgres", "host=127.0.0.1 password=pw sslmode=disable", ""},
      {"postgres", "host=/run/postgresql password=pw sslmode=prefer", ""},
      {"postgres", "host=db sslmode=disable", ""},
  };
  for (const auto& [store, url, advice] : cases) {
    const StoreKind* const kind = find_store_kind(store);
    if (kind == nullptr) continue;
    EXPECT_EQ(kind->secrecy(url).advice, advice) << url;
  }
}

const UrlForm form{.what = "a test URL",
                   .allowed = "x://host",
                   .schemes = {"x", ""},
                   .default_port = 7,
                   .max_hosts = 3,
                   .login = UrlForm::Login::user};

TEST(Url, HasSchemeLoginHostsAndPath) {
  const auto url = parse_url("x://a%3An:p%2F%40@h:1,[::1]:2,[fe80::1]/path?q=1", form);
  ASSERT_TRUE(url) << url.error();
  EXPECT_EQ(url->scheme, "x");
  EXPECT_EQ(url->user, "a:n");
  EXPECT_EQ(url->password, "p/@");
  EXPECT_THAT(url->hosts,
              ElementsAre(HostPort{"h", 1}, HostPort{"::1", 2}, HostPort{"fe80::1", 7}));
  EXPECT_EQ(url->path, "/path?q=1");
  EXPECT_EQ(url->hosts[1].display(), "[::1]:2");
}

// Any file that can be read.
const std::string file = "/proc/self/status";

TEST(TlsQuery, NamesFilesNameAndVersion) {
  const auto settings = parse_tls_query("?cacert=" + file + "&cert=%2Fproc/self/stat&key=" + file +
                                        "&server-name=db.example&min-tls=1.3");
  ASSERT_TRUE(settings) << settings.error();
  EXPECT_EQ(*settings, (TlsSettings{.ca_file = file,
                                    .certificate_file = "/proc/self/stat",
                                    .key_file = file,
                                    .server_name = "db.example",
                                    .only_1_3 = true}));
}

TEST(TlsQuery, SaysWhatIsWrongAndWhatIsAllowed) {
  for (const auto& [query, said] : std::vector<std::pair<std::string, std::string>>{
           {"verify=none", "verify is not known"},
           {"min-tls=1.1", "min-tls must be 1.2 or 1.3"},
           {"cacert=/no/such/file", "cacert: /no/such/file cannot be read: No such file"},
           {"cacert=", "cacert needs a value"},
           {"server-name=a%0ab", "server-name needs a value"},
           {"server-name=%4", "server-name needs a value"},
           {"cert=" + file, "cert needs key too"},
           {"key=" + file, "key needs cert too"},
           {"server-name=a&server-name=b", "server-name is given twice"},
           {"hunter2", "not NAME=VALUE"},
           {"hunter2%21=x", "not NAME=VALUE"},
           {"min-tls=1.3&", ""},
           {"&min-tls=1.3", "not NAME=VALUE"}}) {
    const auto settings = parse_tls_query(query);
    if (said.empty()) {
      EXPECT_TRUE(settings) << query;
      continue;
    }
    ASSERT_FALSE(settings) << query;
    EXPECT_THAT(settings.error(), AllOf(HasSubstr(said), HasSubstr("; allowed: ?cacert=FILE"),
                                        Not(HasSubstr("hunter2"))));
  }
}

}  // namespace
}  // namespace lockbench
