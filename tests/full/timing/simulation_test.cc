#include "simulate/simulation.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>

#include "tests/integration/support/program.h"
#include "tests/unit/simulate/plans.h"

namespace lockbench::simulate {
namespace {

/// Processor time of the calling thread: what else the machine does hardly matters.
double cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

TEST(Simulation, PlaysTwoHundredThousandUncontendedSectionsASecond) {
  Plan plan = plan_for("redis-set-nx-lua");
  plan.workload.key_per_client = true;
  plan.workload.hold = plan.workload.think = {};
  const double before = cpu_seconds();
  const Outcome outcome = test::must(simulate(plan, 1));
  const double rate = static_cast<double>(outcome.sections) / (cpu_seconds() - before);
  EXPECT_GT(rate, 200'000);
  RecordProperty("sections_per_second", std::to_string(rate));
}

TEST(Simulation, TenThousandClientsTakeLessThanAGibibyte) {
  const test::Scratch scratch;
  const auto outcome =
      test::lockbench(scratch, {"simulate", "redis-set-nx-lua", "--clients", "10000", "--keys",
                                "1000", "--rate", "5000", "--hold", "20ms", "--duration", "10s",
                                "--regions", "eu,us,ap", "--out", "r.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  rusage children{};
  ::getrusage(RUSAGE_CHILDREN, &children);
  EXPECT_LT(children.ru_maxrss, 1024 * 1024) << "kilobytes";
}

}  // namespace
}  // namespace lockbench::simulate
