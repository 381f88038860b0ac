#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/integration/machine/under.h"
#include "tests/integration/support/documents.h"
#include "tests/support/servers.h"

namespace lockbench::test {
namespace {

using Words = std::vector<std::string>;

/// It ended by itself, and said why.
void expect_orderly(const Outcome& outcome) {
  EXPECT_EQ(outcome.signal, 0) << outcome.err;
  EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << outcome.code << ": " << outcome.err;
  EXPECT_TRUE(has(outcome.err, "lockbench: ") || has(outcome.err, "did not start: "))
      << outcome.err;
}

TEST(Descriptors, ThatAreTooFewForTheClientsAreAnError) {
  const Scratch scratch;
  const Outcome outcome =
      run(scratch,
          under({"/usr/bin/prlimit", "--nofile=64:64"},
                short_run({"redis-set-nx", "--clients", "200", "--redis", shared_redis().url()})));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  expect_in(outcome.err, "open files are needed, the limit is 64");
}

TEST(Descriptors, ThatAreTooFewForAnythingAreAnErrorToo) {
  for (const int limit : {5, 6, 8, 10}) {
    SCOPED_TRACE(limit);
    const Scratch scratch;
    expect_orderly(run(scratch, under({"/usr/bin/prlimit", fmt::format("--nofile={0}:{0}", limit)},
                                      short_run({"redis-set-nx", "--out", "r.json"}))));
  }
}

/// The limit is on all threads of a user, and does not hold for root.
class Threads : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become a user without other processes";
  }

  Outcome with_at_most(int threads, const Words& arguments) {
    Words wrapper = as_stranger(scratch_);
    wrapper.insert(wrapper.end(), {"/usr/bin/prlimit", fmt::format("--nproc={}", threads)});
    return run(scratch_, under(wrapper, arguments));
  }

  const Scratch scratch_;
};

TEST_F(Threads, ThatAreTooFewForTheClientsAreAnErrorAndNoKeyStays) {
  const auto server = own_redis();
  const Outcome outcome = with_at_most(
      20, {"run", "redis-fenced", "--redis", server->url(), "--clients", "100", "--threads", "100",
           "--duration", "20s", "--resource", "redis-fenced", "--out", "r.json"});
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  expect_in(outcome.err, "a thread cannot be started");
  EXPECT_EQ(RedisProbe(server->port()).keys(), Words{});
}

TEST_F(Threads, ThatAreTooFewForAnythingAreAnErrorToo) {
  for (const int limit : {1, 2, 3, 4}) {
    SCOPED_TRACE(limit);
    expect_orderly(with_at_most(
        limit, {"run", "redis-queue", "--redis", shared_redis().url(), "--clients", "8",
                "--threads", "8", "--duration", "20s", "--warmup", "0ms", "--out", "r.json"}));
  }
}

TEST(Memory, ThatIsTooLittleIsAnError) {
  const Scratch scratch;
  const Outcome outcome = run(
      scratch, under({"/usr/bin/prlimit", "--as=80000000"},
                     {"run", "none", "--keys", "10000000", "--duration", "5s", "--out", "r.json"}));
  expect_orderly(outcome);
  expect_in(outcome.err, "not enough memory");
}

}  // namespace
}  // namespace lockbench::test
