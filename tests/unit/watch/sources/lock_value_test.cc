#include <gtest/gtest.h>

#include <random>

#include "watch/sources/keys.h"
#include "watch/sources/redis_lock.h"

namespace lockbench::watch {
namespace {

using std::chrono::seconds;

std::string owner_in(std::string_view value) {
  const auto read = read_lock_value(value);
  return read ? read->owner : "no lock";
}

TEST(LockValue, ATokenIsTheOwner) {
  for (const char* const token :
       {"550e8400-e29b-41d4-a716-446655440000", "1", "worker 7 on host:4711", "", "ADDED:@host",
        "\xac\xed\x01", "\x8e\n\x07", "{\xfe\x01", "[\xc3", "<\x1b"}) {
    EXPECT_EQ(owner_in(token), token);
    EXPECT_FALSE(read_lock_value(token)->is_record) << token;
  }
}

TEST(LockValue, ShedLocksOwnerIsTheHost) {
  // It writes the time anew when it shortens or extends the lock.
  EXPECT_EQ(owner_in("ADDED:2021-05-12T13:31:45.006Z@build-7.local"), "build-7.local");
  EXPECT_EQ(owner_in("ADDED:2021-05-12T13:31:52Z@build-7.local"), "build-7.local");
}

TEST(LockValue, OtherValuesNameNoOwner) {
  for (const std::string& value :
       {std::string(R"({"a":1})"), std::string("[1,2]"), std::string("<html>"),
        std::string("a: 1\nb: 2"), std::string(300, 'x'), std::string("  {}")}) {
    EXPECT_EQ(owner_in(value), "no lock") << value;
  }
}

TEST(LockValue, AKeyOfRedisWithoutAnOwnerIsNoLock) {
  const auto read = [](const std::string& value) {
    RedisAnswers answers;
    answers.time_left.type = redis::Reply::Type::integer;
    answers.time_left.integer = -1;
    answers.value.type = redis::Reply::Type::string;
    answers.value.text = value;
    return read_redis_lock("lock:config", KeyKind::text, answers);
  };
  EXPECT_FALSE(read(R"({"a":1})"));
  EXPECT_EQ(read(R"({"owner":"a"})")->holders.at(0).owner, "a");
  EXPECT_TRUE(read(R"({"owner":"a"})")->no_ttl);
  EXPECT_FALSE(read(R"({"holder":"a","leaseDurationSeconds":1.5})")->no_ttl) << "by observation";
  EXPECT_TRUE(read(R"({"holder":""})")->holders.empty());
  EXPECT_EQ(read("ADDED:2021-05-12T13:31:45Z@h")->holders.at(0).owner, "h");
}

TEST(LockValue, ARecordNamesItsHolder) {
  const auto lease = read_lock_value(
      R"({"metadata":{},"spec":{"holderIdentity":"pod-1","leaseDurationSeconds":15}})");
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->is_record);
  EXPECT_EQ(lease->owner, "pod-1");
  EXPECT_EQ(lease->lasts, seconds(15));
  EXPECT_EQ(read_lock_value(R"({"holder":"a","leaseDurationSeconds":1.25})")->lasts,
            std::chrono::milliseconds(1250));
  EXPECT_EQ(owner_in(R"({"owner" : "a", "since": 7})"), "a");
  EXPECT_EQ(owner_in(R"({"holder":"b","text":"cut)"), "b");
}

/// A field of a message: `text` is shorter than 128 bytes.
std::string field(int number, const std::string& text) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(text.size()) + text;
}

TEST(LockValue, KubernetesRecordsAreReadAsItStoresThem) {
  const auto stored = [](const std::string& kind) {
    const std::string spec = field(1, "pod-1") + std::string("\x10\x0f", 2);
    const std::string type = field(1, "coordination.k8s.io/v1") + field(2, kind);
    return std::string("k8s\0", 4) + field(1, type) + field(2, field(1, "meta") + field(2, spec)) +
           field(3, "") + field(4, "");
  };
  const auto lease = read_lock_value(stored("Lease"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->owner, "pod-1");
  EXPECT_EQ(lease->lasts, seconds(15));
  EXPECT_EQ(owner_in(stored("ConfigMap")), "no lock");
  const std::string whole = stored("Lease");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    static_cast<void>(read_lock_value(whole.substr(0, size)));
  }
}

TEST(LockValue, AnyBytesAreTaken) {
  std::mt19937 random(7);  // NOLINT: the same each time
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = round % 2 == 0 ? std::string("k8s\0", 4) : std::string();
    for (auto i = random() % 40; i > 0; --i) bytes += static_cast<char>(random());
    const auto read = read_lock_value(bytes);
    EXPECT_TRUE(!read || read->owner.size() <= bytes.size());
  }
}

}  // namespace
}  // namespace lockbench::watch
