#include "loadgen/record/certificate.h"

#include <gtest/gtest.h>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;

/// A run that there is nothing to say against.
class CertificateTest : public testing::Test {
 protected:
  CertificateTest() {
    evidence_.wall_seconds = 10;
    evidence_.cpu_seconds = 10;
    evidence_.cores = 2;
    evidence_.acquire.record(2ms);
    evidence_.wake_lag.record(100us);
  }

  void expect_valid() const {
    const results::Generator generator = certify(evidence_);
    EXPECT_TRUE(generator.valid) << generator.reasons.at(0);
    EXPECT_TRUE(generator.reasons.empty());
  }
  void expect_only_reason(std::string_view part) const {
    const results::Generator generator = certify(evidence_);
    EXPECT_FALSE(generator.valid);
    ASSERT_EQ(generator.reasons.size(), 1U);
    EXPECT_NE(generator.reasons[0].find(part), std::string::npos) << generator.reasons[0];
  }

  RunEvidence evidence_;
};

TEST_F(CertificateTest, NothingToSay) {
  expect_valid();
  EXPECT_DOUBLE_EQ(certify(evidence_).cpu_seconds, 10);
  EXPECT_DOUBLE_EQ(certify(evidence_).cpu_share, 0.5);
}

TEST_F(CertificateTest, ARunWithoutLengthOrSamples) {
  evidence_ = {};
  expect_valid();
  EXPECT_EQ(certify(evidence_).cpu_share, 0);
}

TEST_F(CertificateTest, TheGeneratorUsedAllOfTheCpu) {
  evidence_.cpu_seconds = 17.9;
  expect_valid();
  evidence_.cpu_seconds = 19;
  expect_only_reason("used 95 % of the CPU");
}

TEST_F(CertificateTest, ALockInThisProcessMayUseAllOfIt) {
  evidence_.cpu_seconds = 20;
  evidence_.has_store = false;
  expect_valid();
  EXPECT_DOUBLE_EQ(certify(evidence_).cpu_share, 1);
}

TEST_F(CertificateTest, IdleClientsWokeUpLate) {
  evidence_.wake_lag.record(5ms);
  expect_only_reason("started late: p99 5000 µs after the schedule, of an acquire p99 of 2000 µs");
}

TEST_F(CertificateTest, LatenessThatIsLittleAgainstWhatIsMeasured) {
  evidence_.wake_lag = {};
  evidence_.acquire = {};
  evidence_.wake_lag.record(5ms);
  evidence_.acquire.record(30ms);
  expect_valid();
}

TEST_F(CertificateTest, LatenessWithinTheTimersNoiseThatIsMostOfTheFigure) {
  evidence_.acquire = {};
  evidence_.acquire.record(200us);
  evidence_.wake_lag = {};
  evidence_.wake_lag.record(90us);
  expect_valid();
  evidence_.wake_lag = {};
  evidence_.wake_lag.record(150us);
  expect_only_reason("started late: p99 150 µs");
}

TEST_F(CertificateTest, LatenessIsComparedWithTheMedianToo) {
  evidence_.wake_lag = {};
  evidence_.acquire = {};
  for (int i = 0; i < 100; ++i) {
    evidence_.wake_lag.record(150us);
    evidence_.acquire.record(i < 90 ? 200us : 20ms);
  }
  expect_only_reason("started late");
}

TEST_F(CertificateTest, ALockInThisProcessIsQuickerThanAnyTimer) {
  evidence_.has_store = false;
  evidence_.acquire = {};
  evidence_.acquire.record(100us);
  evidence_.wake_lag = {};
  evidence_.wake_lag.record(99us);
  expect_valid();
}

TEST_F(CertificateTest, AllClientsWereBusy) {
  evidence_.schedule_lag.record(900us);
  expect_valid();
  evidence_.schedule_lag.record(5ms);
  expect_only_reason(results::kNotTheLoadAskedFor);
}

TEST_F(CertificateTest, WhatTheMachineDidIsRecorded) {
  evidence_.machine = {.cpu = MachineCpu{.total = 20, .busy = 14, .programs = 13, .stolen = 0.2},
                       .pressure_seconds = 3};
  evidence_.private_cpu_seconds = 2;
  expect_valid();
  const results::Generator generator = certify(evidence_);
  EXPECT_DOUBLE_EQ(generator.machine_cpu_share.value(), 0.7);
  EXPECT_DOUBLE_EQ(generator.other_cpu_share.value(), 0.05);
  EXPECT_DOUBLE_EQ(generator.steal_share.value(), 0.01);
  EXPECT_DOUBLE_EQ(generator.pressure_share.value(), 0.3);
}

TEST_F(CertificateTest, AKernelThatTellsNothing) {
  evidence_.private_cpu_seconds = 2;
  expect_valid();
  const results::Generator generator = certify(evidence_);
  EXPECT_FALSE(generator.machine_cpu_share || generator.other_cpu_share || generator.steal_share ||
               generator.pressure_share);
}

TEST_F(CertificateTest, OtherProgramsUsedMuchOfTheMachine) {
  evidence_.machine.cpu = MachineCpu{.total = 20, .busy = 15, .programs = 15};
  evidence_.private_cpu_seconds = 3;
  expect_valid();
  evidence_.private_cpu_seconds = 1;
  expect_only_reason("other programs used 20 % of the machine's CPU");
}

TEST_F(CertificateTest, TheUsersServersMayBeThoseOtherPrograms) {
  evidence_.machine.cpu = MachineCpu{.total = 20, .busy = 20, .programs = 20};
  expect_valid();
  EXPECT_FALSE(certify(evidence_).other_cpu_share);
}

TEST_F(CertificateTest, OurOwnUseIsMoreExactThanTheMachines) {
  evidence_.machine.cpu = MachineCpu{.total = 20, .busy = 10, .programs = 10};
  evidence_.private_cpu_seconds = 0.1;
  EXPECT_EQ(certify(evidence_).other_cpu_share, 0);
}

TEST_F(CertificateTest, OtherVirtualMachinesTookTheCpu) {
  evidence_.machine.cpu = MachineCpu{.total = 20, .busy = 10, .programs = 10, .stolen = 0.4};
  expect_valid();
  evidence_.machine.cpu->stolen = 1;
  expect_only_reason("other virtual machines took 5.0 % of the CPU (steal)");
}

TEST_F(CertificateTest, ACpuLimitHeldThreadsUp) {
  evidence_.machine.throttled_seconds = 0.19;
  expect_valid();
  evidence_.machine.throttled_seconds = 4.5;
  expect_only_reason("a CPU limit held threads up for 4.50 s: raise that of the container");
}

TEST_F(CertificateTest, AFewTicksOfAShortRunSayNothing) {
  evidence_ = {};
  evidence_.private_cpu_seconds = 0;
  evidence_.machine.cpu = MachineCpu{.total = 0.2, .busy = 0.06, .programs = 0.06, .stolen = 0.04};
  expect_valid();
}

TEST_F(CertificateTest, AThreadThatClientsShareWasFullAndTheServersWereNot) {
  evidence_.busiest_thread_seconds = 9.4;
  evidence_.each_server_cpu_seconds = 3;
  expect_valid();
  EXPECT_DOUBLE_EQ(certify(evidence_).busiest_thread_share.value(), 0.94);
  evidence_.busiest_thread_seconds = 9.8;
  expect_only_reason("busy 98 % of the time, and a server only 30 %");
  evidence_.each_server_cpu_seconds = {};
  expect_only_reason("the servers do not tell");
}

TEST_F(CertificateTest, AFullThreadOfTheGeneratorWhereSomethingElseIsTheLimit) {
  evidence_.busiest_thread_seconds = 9.9;
  evidence_.each_server_cpu_seconds = 8.1;
  expect_valid();
  evidence_.each_server_cpu_seconds = 3;
  evidence_.machine.cpu = MachineCpu{.total = 20, .busy = 18.5, .programs = 18};
  expect_valid();
}

TEST_F(CertificateTest, AFullThreadOfTheGeneratorThatLimitsNothing) {
  evidence_.busiest_thread_seconds = 9.9;
  evidence_.each_server_cpu_seconds = 3;
  evidence_.closed_loop = false;
  expect_valid();
  evidence_.closed_loop = true;
  evidence_.has_store = false;
  expect_valid();
}

TEST_F(CertificateTest, SamplesOverflowed) {
  evidence_.overflowed_samples = 3;
  expect_only_reason("3 samples were above");
}

TEST_F(CertificateTest, TheClockJumped) {
  for (const double jump : {0.04, -0.04}) {
    evidence_.wall_clock_jump_seconds = jump;
    expect_valid();
  }
  evidence_.wall_clock_jump_seconds = 0.25;
  expect_only_reason("clock jumped by 0.250 s");
  evidence_.wall_clock_jump_seconds = -3;
  expect_only_reason("clock jumped by -3.000 s");
}

TEST_F(CertificateTest, TheMachineWasSuspended) {
  evidence_.suspended_seconds = 0.04;
  expect_valid();
  evidence_.suspended_seconds = 12;
  expect_only_reason("suspended for 12.000 s");
}

TEST_F(CertificateTest, AServerRestarted) {
  evidence_.restarted_servers = {"127.0.0.1:1 restarted during the run"};
  expect_only_reason("127.0.0.1:1 restarted");
}

TEST_F(CertificateTest, EveryReasonIsALine) {
  evidence_.cpu_seconds = 20;
  evidence_.wake_lag.record(5ms);
  evidence_.overflowed_samples = 1;
  evidence_.wall_clock_jump_seconds = 1;
  evidence_.restarted_servers = {"one", "two"};
  EXPECT_EQ(certify(evidence_).reasons.size(), 6U);
}

}  // namespace
}  // namespace lockbench::loadgen
