// The URLs of each store: what is shown of them, what is refused, and what is said of their
// passwords' secrecy. That user and password are read rightly is proved by logging in:
// tests/conformance.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/store.h"

namespace lockbench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(StoreUrls, AreShownWithoutCredentials) {
  const std::string longest = "/" + std::string(106, 'p');
  const struct {
    std::string store, url, shown, encryption;
  } cases[] = {
      {"redis", "redis://example.org", "example.org:6379"},
      {"redis", "redis://ann:hunter2@h:65535/", "h:65535"},
      {"redis", "redis://:p@ss:word@127.0.0.1:7001/12", "127.0.0.1:7001/12"},  // the last @ counts
      {"redis", "redis://:hunter2@[::1]", "[::1]:6379"},
      {"redis", "unix:///run/r.sock", "unix:/run/r.sock"},
      {"redis", "unix://ann:hunter2@/r?db=5", "unix:/r?db=5"},
      {"redis", "unix://" + longest, "unix:" + longest},
      {"redis", "redis+sentinel://watch/lock", "watch:26379/lock"},
      {"redis", "redis+sentinel://ann:hunter2@10.0.0.1:1,[::1]:2,[::1]/lock/7",
       "10.0.0.1:1,[::1]:2,[::1]:26379/lock/7"},
      {"redis", "rediss://ann:hunter2@h:1/2?server-name=db.example&min-tls=1.3", "h:1/2", "TLS"},
      {"redis", "rediss+sentinel://s,t/lock/7?min-tls=1.3", "s:26379,t:26379/lock/7", "TLS"},
      {"etcd", "db", "db:2379"},
      {"etcd", "http://db:1/", "db:1"},
      {"etcd", "etcd://a:1,b,[::1]:3", "a:1,b:2379,[::1]:3"},
      {"etcd", "etcd://an%40n:hun%2Cter%3A2@db:1,db2", "db:1,db2:2379"},
      {"etcd", "https://ann:pw@a,b:2?server-name=etcd.example", "a:2379,b:2", "TLS"},
      {"zookeeper", "zoo", "zoo:2181"},
      {"zookeeper", "10.0.0.1:2182,[::1]:2183,zoo/of/ours",
       "10.0.0.1:2182,[::1]:2183,zoo:2181/of/ours"},
      {"zookeeper", "zk://zoo/", "zoo:2181"},
      {"zookeeper", "zk://ann:hunter%2F2%40@a:1,b:2/app", "a:1,b:2/app"},
      {"zookeeper", "zks://ann:pw@a,b:1/app?server-name=zoo", "a:2281,b:1/app", "TLS"},
      {"memcached", "cache", "cache:11211"},
      {"memcached", "memcached://ann:hunter%402@[::1]", "[::1]:11211"},
      {"memcached", "memcaches://ann:pw@cache:1?min-tls=1.3", "cache:1", "TLS"},
      {"postgres", "postgresql://ann:hunter2@db.example:6543/app", "db.example:6543"},
      {"postgres", "postgres://ann:hunter2@db.example/app", "db.example:5432"},
      {"postgres", "postgresql://ann:hunter2%40%2F%3A@db/app?sslmode=require", "db:5432",
       "sslmode=require"},
      {"postgres", "postgresql://db/app?user=ann&password=hunter2", "db:5432"},
      {"postgres", "postgresql://ann:hunter2@[::1]:6543/app", "[::1]:6543"},
      {"postgres", "postgresql:///app?host=/run/pg&password=hunter2", "unix:/run/pg:5432"},
      {"postgres", "host=db port=6543 user=ann password=hunter2 sslmode=verify-ca", "db:6543",
       "sslmode=verify-ca"},
      {"postgres", "host=db password='hunter2 \\' host=x' sslmode=verify-full", "db:5432",
       "sslmode=verify-full"},
      {"postgres", "hostaddr=127.0.0.1 password=hunter2", "127.0.0.1:5432"},
      {"postgres", "dbname=app password=hunter2", "local socket:5432"},
  };
  for (const auto& [store, url, shown, encryption] : cases) {
    const StoreKind* const kind = find_store_kind(store);
    if (kind == nullptr) continue;  // left out of this build
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
      {"redis", "absolute path", {"unix://", "unix://run/redis.sock", "unix://:hunter2@s"}},
      {"redis", "at most 107", {"unix:///" + std::string(107, 'p')}},
      {"redis", "only parameter", {"unix:///s?database=1", "unix:///s?password=hunter2"}},
      {"redis",
       "percent-encoded",
       {"redis://hunter2@h", "redis://ann:@h", "redis://:%zz@h", "redis://:hunter2%@h",
        "redis://%g0:hunter2@h", "redis://:%4g@h"}},
      {"redis",
       "",
       {"redis://:hunter2@[::1", "redis://:hunter2/@h:1", "redis://ann:hunter2/@h",
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
      {"zookeeper",
       "",
       {"", "http://a", "a//b", "a/b/", "a/b c", "ann:hunter2@a", "zk://hunter2@a", "zk://ann:@a",
        "zk://a?server-name=hunter2"}},
      {"memcached",
       "",
       {"", "memcached://hunter2@host", "http://host", "memcached://host/hunter2",
        "memcached://host?cacert=hunter2", "ann:hunter2%0d%0a@host", "ann:hunter2%20@host"}},
      // Passwords that are not encoded: libpq would take parts of them for host, port or database.
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

/// Unless it stays on this machine.
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

}  // namespace
}  // namespace lockbench
