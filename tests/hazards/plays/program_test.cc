#include "strategies/programs/program.h"

#include <gtest/gtest.h>

#include <ostream>

#include "tests/folders.h"
#include "tests/hazards/support/fixtures.h"

// Client programs that are broken in one way each, beside sound ones: the plays tell them apart.

namespace lockbench::hazards::test {
namespace {

const Descriptor& client(const std::string& script) {
  const std::string folder = LOCKBENCH_SOURCE_DIR "/tests/programs/";
  std::string name = script.substr(script.find(' ') + 1);
  auto added = program::ask({.name = "program-" + name.substr(0, name.find('.')),
                             .command = "python3 " + folder + script},
                            {})
                   .and_then(program::add);
  if (!added) throw std::runtime_error(added.error());
  return **added;
}

struct Twins {
  std::string_view scenario;
  std::string broken;
  HazardOutcome seen;
  std::string sound;
  HazardOutcome expected;

  friend std::ostream& operator<<(std::ostream& out, const Twins& twins) {
    return out << twins.scenario << " / " << twins.broken;
  }
};

class ClientPrograms : public testing::TestWithParam<Twins> {};

TEST_P(ClientPrograms, AreToldApart) {
  const Twins& twins = GetParam();
  const Cell broken = undisturbed(scenario(twins.scenario), client(twins.broken));
  ASSERT_TRUE(broken.played()) << description_of(broken);
  EXPECT_EQ(to_string(*broken.observed), to_string(twins.seen)) << description_of(broken);
  EXPECT_FALSE(broken.agrees());
  const Cell sound = undisturbed(scenario(twins.scenario), client(twins.sound));
  ASSERT_TRUE(sound.played()) << description_of(sound);
  EXPECT_EQ(to_string(*sound.observed), to_string(twins.expected)) << description_of(sound);
  EXPECT_TRUE(sound.agrees()) << description_of(sound);
}

using enum HazardOutcome;
INSTANTIATE_TEST_SUITE_P(
    , ClientPrograms,
    testing::Values(
        Twins{"late-release", "variants.py unchecked", foreign_release, "redis_lock.py", safe},
        Twins{"overrun-holding", "variants.py ttl0", double_grant, "variants.py renews", safe},
        Twins{"cancelled-release", "variants.py forgets", stuck, "redis_lock.py", safe},
        Twins{"acquire-unreachable", "variants.py proceeds", double_grant, "redis_lock.py", safe},
        Twins{"busy-holding", "variants.py one-thread", double_grant, "variants.py renews", safe},
        Twins{"lost-answer-release", "variants.py unchecked", foreign_release, "redis_lock.py",
              safe}));

TEST(ClientProgram, DiesAndStopsWithItsClient) {
  for (const char* const name : {"crash-holding", "pause-holding"}) {
    const Cell cell = undisturbed(scenario(name), client("redis_lock.py"));
    ASSERT_TRUE(cell.played()) << description_of(cell);
    EXPECT_TRUE(cell.agrees()) << description_of(cell);
  }
}

TEST(ClientProgram, IsNotPlayedWhereItsCommandsWouldHaveToShow) {
  for (const char* const name : {"crash-mid-acquire", "release-race"}) {
    const Cell cell = undisturbed(scenario(name), client("redis_lock.py"));
    EXPECT_EQ(cell.observed, not_played) << description_of(cell);
    EXPECT_EQ(cell.reason, "the commands of a client program do not show");
  }
}

TEST(ClientProgram, HasAClockThatCanBeMoved) {
  const Cell cell = undisturbed(scenario("client-clock-ahead"), client("redis_lock.py"));
  EXPECT_EQ(cell.observed, safe) << description_of(cell);
}

}  // namespace
}  // namespace lockbench::hazards::test
