#pragma once

#include <gtest/gtest.h>

#include "loadgen/run/summary.h"
#include "tests/support/run_shared.h"

namespace lockbench::loadgen {

using namespace std::chrono_literals;

/// A run in which happened what a test says, to be summed up.
class SummaryTest : public testing::Test {
 protected:
  Recorder::Histograms& measured() { return run_.recorder.histograms(Phase::measured); }

  void add(Count what, std::uint64_t value, int client = 0, Phase phase = Phase::measured) {
    under_test_.add(what, value, phase, client);
  }
  void grant(Duration waited, Phase phase = Phase::measured) { under_test_.grant(waited, phase); }

  /// Two clients inside at once.
  void overlap() {
    const Entry first = run_.audit.enter(0, 0, Mode::exclusive, {}, {}, audit_start_ + 1ms);
    const Entry second = run_.audit.enter(0, 1, Mode::exclusive, {}, {}, audit_start_ + 2ms);
    run_.audit.leave(0, first, audit_start_ + 5ms);
    run_.audit.leave(0, second, audit_start_ + 6ms);
  }

  /// Two increments of which one is lost.
  void lose_an_update() {
    const auto session = run_.counter->open(*env_);
    const auto seen = session->read(0, {});
    ASSERT_TRUE(seen);
    session->write(0, *seen, {});
    session->write(0, *seen, {});
  }

  void update() {
    const auto session = run_.counter->open(*env_);
    session->write(0, *session->read(0, {}), {});
  }

  void regress() {
    for (const int number : {5, 4}) {
      const AcquireMark mark = run_.audit.begin_acquire(0);
      const auto fencing = static_cast<std::uint64_t>(number);
      run_.audit.leave(0, run_.audit.enter(0, 0, Mode::exclusive, fencing, mark, audit_start_),
                       audit_start_);
    }
  }

  results::Run summary(Duration length = 2s) const {
    results::Run result;
    summarise(run_, length, result);
    return result;
  }

  Descriptor strategy_{.name = "tested"};
  test::RunUnderTest under_test_{strategy_, 2, 0, make_memory_counter(1)};
  RunShared& run_ = under_test_.shared();
  std::unique_ptr<Env> env_ = make_system_env(1);
  TimePoint audit_start_ = env_->now();
};

}  // namespace lockbench::loadgen
