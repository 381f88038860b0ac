#include "loadgen/record/certificate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "tests/support/temporary_folder.h"

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

/// A run without objections.
RunEvidence good_run() {
  RunEvidence run;
  run.wall_seconds = run.cpu_seconds = 10;
  run.cores = 2;
  run.acquire.record(2ms);
  run.wake_lag.record(100us);
  return run;
}

HistogramSnapshot just(Duration sample) {
  HistogramSnapshot one;
  one.record(sample);
  return one;
}

/// A change of a good run, and the only reason that it then gets; empty if it stays valid.
struct CertificateCase {
  std::string what;
  std::function<void(RunEvidence&)> change;
  std::string reason{};
};

/// Sets that figure.
template <class Figure, class Value>
std::function<void(RunEvidence&)> with(Figure RunEvidence::*figure, Value value) {
  return [=](RunEvidence& run) { run.*figure = value; };
}

/// All sections began late by `lag`, after a wait of `wait`.
std::function<void(RunEvidence&)> late(Duration lag, Duration wait) {
  return [=](RunEvidence& run) {
    run.wake_lag = just(lag);
    run.acquire = just(wait);
  };
}

/// Turns came so late after answers, with such a wait.
std::function<void(RunEvidence&)> late_turns(Duration lag, Duration wait) {
  return [=](RunEvidence& run) {
    run.turn_lag = just(lag);
    run.acquire = just(wait);
  };
}

/// Renewals were sent so late, and answered after so long, with a TTL of 3 s.
std::function<void(RunEvidence&)> late_renewals(Duration slip, Duration answered) {
  return [=](RunEvidence& run) {
    run.renewal_slip = just(slip);
    run.renewal_duration = just(answered);
    run.ttl = 3s;
  };
}

std::vector<CertificateCase> of_the_generator() {
  return {
      {"TurnsInTime", late_turns(100us, 1ms)},
      {"AQuickProgram", with(&RunEvidence::echo, just(900us))},
      {"AProgramThatTakesMostOfTheTime", with(&RunEvidence::echo, just(1500us)),
       "the program was the bottleneck"},
      {"TurnsThatAreMostOfTheWait", late_turns(600us, 1ms), "waited for their turn"},
      {"TurnsThatAreLate", late_turns(3ms, 10ms), "p99 3000 µs, with acquire p99 10000 µs"},
      {"LateTurnsOfALongWait", late_turns(3ms, 100ms)},
      {"RenewalsInTime", late_renewals(400ms, 1ms)},
      {"LateRenewals", late_renewals(600ms, 1ms), "renewed up to 600.0 ms late"},
      {"LateRenewalsOfASlowStore", late_renewals(600ms, 500ms)},
      {"Good", [](RunEvidence&) {}},
      {"WithoutLengthOrSamples", [](RunEvidence& run) { run = {}; }},
      {"MuchCpu", with(&RunEvidence::cpu_seconds, 17.9)},
      {"AllCpu", with(&RunEvidence::cpu_seconds, 19), "used 95 % of the CPU"},
      {"AllCpuForALockInThisProcess",
       [](RunEvidence& run) {
         run.cpu_seconds = 20;
         run.has_store = false;
       }},
      {"WokeUpLate", [](RunEvidence& run) { run.wake_lag.record(5ms); },
       "started late: p99 start delay 5000 µs, with acquire p99 2000 µs"},
      {"LateByLittleOfTheWait", late(5ms, 30ms)},
      {"LateByTheTimersNoise", late(90us, 200us)},
      {"NoiseThatIsMostOfTheWait", late(150us, 200us), "started late: p99 start delay 150 µs"},
      {"NoiseThatIsMostOfTheMedianWait",
       [](RunEvidence& run) {
         run.wake_lag = run.acquire = {};
         for (int i = 0; i < 100; ++i) {
           run.wake_lag.record(150us);
           run.acquire.record(i < 90 ? 200us : 20ms);
         }
       },
       "started late"},
      {"ALockInThisProcessIsQuickerThanAnyTimer",
       [](RunEvidence& run) {
         run.has_store = false;
         run.wake_lag = just(99us);
         run.acquire = just(100us);
       }},
      {"BeganLittleLate", [](RunEvidence& run) { run.schedule_lag.record(900us); }},
      {"AllClientsWereBusy", [](RunEvidence& run) { run.schedule_lag.record(5ms); },
       std::string(results::kNotTheLoadAskedFor)},
      {"StoodStillForAMoment", with(&RunEvidence::stood_still, 49ms)},
      {"StoodStill", with(&RunEvidence::stood_still, 2s),
       "stood still for 2000 ms, with a longest wait of 2 ms"},
      {"StoodStillForLittleOfTheLongestWait",
       [](RunEvidence& run) {
         run.stood_still = 100ms;
         run.acquire.record(1s);
       }},
      {"Overflow", [](RunEvidence& run) { run.overflowed_samples = 3; }, "3 samples were above"},
  };
}

/// Load of the busiest shared client thread and of a server.
std::function<void(RunEvidence&)> busy(double thread, std::optional<double> server,
                                       const std::function<void(RunEvidence&)>& more = {}) {
  return [=](RunEvidence& run) {
    run.busiest_thread_seconds = thread;
    run.each_server_cpu_seconds = server;
    if (more) more(run);
  };
}

std::vector<CertificateCase> of_threads() {
  return {
      {"NotFull", busy(9.4, 3)},
      {"Full", busy(9.8, 3), "busy 98 % of the time, and a server only 30 %"},
      {"FullAndServersDoNotTell", busy(9.8, {}), "the servers do not report their CPU"},
      {"FullAsTheServer", busy(9.9, 8.1)},
      {"FullAsTheMachine", busy(9.9, 3,
                                [](RunEvidence& run) {
                                  run.machine.cpu =
                                      MachineCpu{.total = 20, .busy = 18.5, .programs = 18};
                                })},
      {"FullWithASchedule", busy(9.9, 3, [](RunEvidence& run) { run.closed_loop = false; })},
      {"FullOfALockInThisProcess", busy(9.9, 3, [](RunEvidence& run) { run.has_store = false; })},
  };
}

/// CPU of a machine with two cores and of private servers.
std::function<void(RunEvidence&)> machine(const MachineCpu& cpu, std::optional<double> servers) {
  return [=](RunEvidence& run) {
    run.machine.cpu = cpu;
    run.private_cpu_seconds = servers;
  };
}

std::vector<CertificateCase> of_the_machine() {
  const MachineCpu shared{.total = 20, .busy = 15, .programs = 15};
  const auto stolen = [](double seconds) {
    return machine({.total = 20, .busy = 10, .programs = 10, .stolen = seconds}, {});
  };
  const auto held_up = [](double seconds) {
    return [=](RunEvidence& run) { run.machine.throttled_seconds = seconds; };
  };
  constexpr auto kJump = &RunEvidence::wall_clock_jump_seconds;
  return {
      {"OtherProgramsUsedLittle", machine(shared, 3)},
      {"OtherProgramsUsedMuch", machine(shared, 1),
       "other programs used 20 % of the machine's CPU"},
      {"TheUsersServersMayBeThose", machine({.total = 20, .busy = 20, .programs = 20}, {})},
      {"LittleWasStolen", stolen(0.4)},
      {"MuchWasStolen", stolen(1), "other virtual machines took 5.0 % of the CPU (steal)"},
      {"AFewTicksOfAShortRun",
       [](RunEvidence& run) {
         run = {};
         machine({.total = 0.2, .busy = 0.06, .programs = 0.06, .stolen = 0.04}, 0)(run);
       }},
      {"ALimitThatHardlyMatters", held_up(0.19)},
      {"ALimitThatMatters", held_up(4.5),
       "a CPU limit held threads up for 4.50 s: raise the limit of the container"},
      {"TheClockMoved", with(kJump, 0.04)},
      {"TheClockMovedBack", with(kJump, -0.04)},
      {"TheClockJumped", with(kJump, 0.25), "clock jumped by 0.250 s"},
      {"TheClockJumpedBack", with(kJump, -3), "clock jumped by -3.000 s"},
      {"HardlySuspended", with(&RunEvidence::suspended_seconds, 0.04)},
      {"Suspended", with(&RunEvidence::suspended_seconds, 12), "suspended for 12.000 s"},
      {"AServerRestarted",
       with(&RunEvidence::restarted_servers, std::vector<std::string>{"127.0.0.1:1 restarted"}),
       "127.0.0.1:1 restarted"},
  };
}

class Certificate : public testing::TestWithParam<CertificateCase> {};

TEST_P(Certificate, HasThatReasonAlone) {
  RunEvidence run = good_run();
  GetParam().change(run);
  const results::Generator generator = certify(run);
  EXPECT_EQ(generator.valid, GetParam().reason.empty());
  ASSERT_EQ(generator.reasons.size(), generator.valid ? 0U : 1U) << generator.reasons.at(0);
  if (!generator.valid) {
    EXPECT_NE(generator.reasons[0].find(GetParam().reason), std::string::npos)
        << generator.reasons[0];
  }
}

std::string name_of_case(const testing::TestParamInfo<CertificateCase>& one) {
  return one.param.what;
}

INSTANTIATE_TEST_SUITE_P(Generator, Certificate, testing::ValuesIn(of_the_generator()),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Threads, Certificate, testing::ValuesIn(of_threads()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Machine, Certificate, testing::ValuesIn(of_the_machine()), name_of_case);

TEST(CertificateFigures, AreSharesOfTheMachine) {
  RunEvidence run = good_run();
  run.machine = {.cpu = MachineCpu{.total = 20, .busy = 14, .programs = 13, .stolen = 0.2},
                 .pressure_seconds = 3};
  run.private_cpu_seconds = 2;
  run.busiest_thread_seconds = 9.4;
  const results::Generator generator = certify(run);
  EXPECT_DOUBLE_EQ(generator.cpu_seconds, 10);
  EXPECT_DOUBLE_EQ(generator.cpu_share, 0.5);
  EXPECT_DOUBLE_EQ(generator.machine_cpu_share.value(), 0.7);
  EXPECT_DOUBLE_EQ(generator.other_cpu_share.value(), 0.05);
  EXPECT_DOUBLE_EQ(generator.steal_share.value(), 0.01);
  EXPECT_DOUBLE_EQ(generator.pressure_share.value(), 0.3);
  EXPECT_DOUBLE_EQ(generator.busiest_thread_share.value(), 0.94);
  run.private_cpu_seconds = 3.1;
  EXPECT_EQ(certify(run).other_cpu_share, 0) << "our own use is more exact than the machine's";
}

TEST(CertificateFigures, ThatNobodyTellsAreMissing) {
  RunEvidence run = good_run();
  run.private_cpu_seconds = 2;
  const results::Generator silent = certify(run);
  EXPECT_FALSE(silent.machine_cpu_share || silent.other_cpu_share || silent.steal_share ||
               silent.pressure_share);
  machine({.total = 20, .busy = 20, .programs = 20}, {})(run);
  EXPECT_FALSE(certify(run).other_cpu_share) << "the user's servers may be on this machine";
  EXPECT_EQ(certify({}).cpu_share, 0);
}

constexpr std::string_view kStat =
    "cpu  1000 200 300 4000 50 6 14 30 400 100\n"
    "cpu0 500 100 150 2000 25 3 7 15 200 50\n"
    "intr 12345 0 1\n";

TEST(Machine, StatIsReadInSeconds) {
  const auto cpu = parse_machine_cpu(kStat, 100);
  ASSERT_TRUE(cpu);
  EXPECT_DOUBLE_EQ(cpu->programs, 15);
  EXPECT_DOUBLE_EQ(cpu->busy, 15.2) << "with interrupts";
  EXPECT_DOUBLE_EQ(cpu->stolen, 0.3);
  EXPECT_DOUBLE_EQ(cpu->total, 56) << "guests are a part of user and nice";
  const auto older = parse_machine_cpu("cpu 1 2 3 4 5 6 7 8", 100);
  ASSERT_TRUE(older);
  EXPECT_DOUBLE_EQ(older->total, 0.36) << "an older kernel does not count guests";
}

TEST(Machine, ATextOfAnotherFormIsNone) {
  for (const char* text : {"", "cpu", "cpu 1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu a b c"}) {
    EXPECT_FALSE(parse_machine_cpu(text, 100)) << text;
  }
  EXPECT_FALSE(parse_machine_cpu(kStat, 0));
}

TEST(Machine, PressureIsThatOfSomeThreadsIfTheKernelHasIt) {
  EXPECT_EQ(parse_cpu_pressure("some avg10=2.51 avg60=1.00 avg300=0.10 total=2500000\n"
                               "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"),
            2.5);
  for (const char* text : {"", "full avg10=0.00 total=99", "some avg10=0.00", "some total=x"}) {
    EXPECT_FALSE(parse_cpu_pressure(text)) << text;
  }
}

/// The kernel's cgroup files.
class ControlGroupsTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void throttle(const std::string& group, int microseconds) const {
    write("sys/fs/cgroup" + group + "/cpu.stat",
          "usage_usec 7000000\nnr_throttled 3\nthrottled_usec " + std::to_string(microseconds) +
              "\nnr_bursts 0\n");
  }
  std::optional<double> throttled() const { return read_throttled_seconds(root_.path()); }

 private:
  const test::TemporaryFolder root_;
};

TEST_F(ControlGroupsTest, TheLimitsOfTheOwnGroupAndOfThoseAroundItAddUp) {
  write("proc/self/cgroup", "1:cpu:/elsewhere\n0::/pod/container\n");
  throttle("/pod/container", 250'000);
  throttle("/pod", 1'000'000);
  throttle("/elsewhere", 9'000'000);
  EXPECT_DOUBLE_EQ(throttled().value(), 1.25);
}

TEST_F(ControlGroupsTest, AContainerSeesItsOwnGroupAsTheOutermost) {
  write("proc/self/cgroup", "0::/\n");
  throttle("", 500'000);
  EXPECT_DOUBLE_EQ(throttled().value(), 0.5);
}

TEST_F(ControlGroupsTest, WithoutALimitNothingIsTold) {
  EXPECT_FALSE(throttled());
  write("proc/self/cgroup", "1:cpu:/a\n");
  EXPECT_FALSE(throttled()) << "version 1 only";
  write("proc/self/cgroup", "0::/a\n");
  EXPECT_FALSE(throttled()) << "no such group";
  write("sys/fs/cgroup/a/cpu.stat", "usage_usec 7000000\nuser_usec 5000000\n");
  EXPECT_FALSE(throttled()) << "its CPU is not limited";
}

}  // namespace
}  // namespace lockbench::loadgen
