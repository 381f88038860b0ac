#include <gmock/gmock.h>
#include <lockbench/lock.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/support/listener.h"

namespace lockbench::embed {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class Embedded : public testing::Test {
 protected:
  std::string metrics() const {
    return prometheus::TextSerializer().Serialize(registry_->Collect());
  }

  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  const Locks locks_{{.strategy = "local-mutex"}, registry_};
};

TEST_F(Embedded, ALockIsTakenUntilItsRelease) {
  Lock held = locks_.acquire("k");
  ASSERT_TRUE(held);
  EXPECT_EQ(held.outcome(), Outcome::acquired);
  EXPECT_TRUE(held.valid());
  const Lock refused = locks_.acquire("k");
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.outcome(), Outcome::taken);
  EXPECT_EQ(refused.reason(), "");
  EXPECT_TRUE(locks_.acquire("another"));
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(held);
  EXPECT_FALSE(held.valid());
  EXPECT_FALSE(held.release()) << "only once";
  EXPECT_TRUE(locks_.acquire("k"));
}

TEST_F(Embedded, TheEndOfALockAndAnAssignmentReleaseIt) {
  {
    Lock first = locks_.acquire("first");
    Lock second = locks_.acquire("second");
    first = std::move(second);
    EXPECT_TRUE(first.valid());
    EXPECT_TRUE(locks_.acquire("first"));
    EXPECT_EQ(locks_.acquire("second").outcome(), Outcome::taken);
  }
  EXPECT_TRUE(locks_.acquire("second"));
}

TEST_F(Embedded, ThreadsExcludeEachOther) {
  int counter = 0;
  const auto count = [&] {
    for (int i = 0; i < 1000; ++i) {
      const Lock held = locks_.acquire("k", 1h);
      if (held) ++counter;
    }
  };
  std::thread first(count), second(count);
  first.join();
  second.join();
  EXPECT_EQ(counter, 2000);
}

TEST_F(Embedded, EachOutcomeIsCounted) {
  {
    Lock held = locks_.acquire("k");
    EXPECT_EQ(locks_.acquire("k").outcome(), Outcome::taken);
    EXPECT_FALSE(held.renew(1s));
    EXPECT_EQ(held.reason(), "this lock needs no renewal");
  }
  const std::string text = metrics();
  for (const char* line :
       {"lockbench_lock_acquire_seconds_count{outcome=\"acquired\",strategy=\"local-mutex\"} 1\n",
        "lockbench_lock_acquire_seconds_count{outcome=\"taken\",strategy=\"local-mutex\"} 1\n",
        "lockbench_lock_held_seconds_count{outcome=\"released\",strategy=\"local-mutex\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("lockbench_lock_renewals_total{")));
}

/// A Redis that grants everything, on one connection.
class GenerousRedis {
 public:
  GenerousRedis() : thread_([this] { serve(); }) {}
  GenerousRedis(const GenerousRedis&) = delete;
  GenerousRedis& operator=(const GenerousRedis&) = delete;
  ~GenerousRedis() {
    ::shutdown(listener_.fd(), SHUT_RDWR);
    thread_.join();
  }

  std::string url() const { return "redis://127.0.0.1:" + std::to_string(listener_.port()); }

 private:
  void serve() const {
    const int fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    std::array<char, 4096> buffer;
    ssize_t got = 0;
    while ((got = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0) {
      const std::string_view request(buffer.data(), static_cast<std::size_t>(got));
      const bool sets = request.find("\r\nSET\r\n") != std::string_view::npos;
      const std::string_view answer = sets ? "+OK\r\n" : ":1\r\n";
      ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    ::close(fd);
  }

  const test::Listener listener_;
  std::thread thread_;
};

TEST(RenewedByATimer, ALockNeedsNoOtherRenewal) {
  const GenerousRedis redis;
  const Locks locks({.strategy = "redis-watchdog", .urls = {redis.url()}},
                    std::make_shared<prometheus::Registry>());
  Lock held = locks.acquire("k");
  ASSERT_TRUE(held) << held.reason();
  EXPECT_FALSE(held.renew(1s));
  EXPECT_EQ(held.reason(), "this lock needs no renewal");
  EXPECT_TRUE(held.release());
}

std::string error_of(const Settings& settings) {
  try {
    const Locks locks(settings, std::make_shared<prometheus::Registry>());
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const std::runtime_error& error) {
    return std::string("unusable: ") + error.what();
  }
}

TEST(EmbeddedSettings, MistakesShowAtOnceAndKeepSecrets) {
  EXPECT_EQ(error_of({.strategy = "redis-best"}), "no strategy is called \"redis-best\"");
  EXPECT_EQ(error_of({.strategy = "redis-fenced"}), "redis-fenced needs the URL of a server");
  EXPECT_EQ(error_of({.strategy = "local-mutex", .urls = {"redis://h"}}),
            "local-mutex has no servers");
  EXPECT_EQ(error_of({.strategy = "local-mutex", .ttl = 0s}),
            "TTL and store timeout must be above zero");
  const std::string scheme =
      error_of({.strategy = "redis-fenced", .urls = {"http://ann:hunter2@h"}});
  EXPECT_THAT(scheme, testing::AllOf(HasSubstr("redis://"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(error_of({.strategy = "redis-fenced", .urls = {"unix:///no/such/socket"}}),
              testing::AllOf(testing::StartsWith("unusable: "), HasSubstr("/no/such/socket")));
}

}  // namespace
}  // namespace lockbench::embed
