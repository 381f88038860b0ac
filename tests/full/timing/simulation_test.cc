#include "simulate/simulation.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <iostream>

#include "loadgen/record/certificate.h"
#include "tests/integration/support/program.h"
#include "tests/unit/simulate/plans.h"

namespace lockbench::simulate {
namespace {

/// Processor time of the calling thread.
double cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

TEST(Simulation, PlaysTwoHundredThousandUncontendedSectionsASecond) {
  Plan plan = plan_for("redis-set-nx-lua");
  plan.workload.key_per_client = true;
  plan.workload.hold = plan.workload.think = {};
  const auto machine = loadgen::read_machine().cpu;
  const double before = cpu_seconds();
  const Outcome outcome = test::must(simulate(plan, 1));
  const double used = cpu_seconds() - before;
  ASSERT_TRUE(machine);
  const loadgen::MachineCpu meanwhile = *loadgen::read_machine().cpu - *machine;
  const double rate = static_cast<double>(outcome.sections) / used;
  // Other programs share this one's caches, and perhaps its core.
  constexpr double kMostOthers = 0.1;
  const double others = (meanwhile.programs - used) / meanwhile.total;
  if (others > kMostOthers) {
    std::cout << "inconclusive: other programs used " << others << " of the machine's CPU, and "
              << rate << " sections a second were played\n";
    return;
  }
  EXPECT_GT(rate, 200'000);
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
