#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "strategies/registry.h"
#include "tests/conformance/common/bench.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

/// The lease is over by the time its grant is heard of, though the server has it still.
class LateGrants : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    warm_up(*client_, bench_.key());
    client_->faults().next_answer_is_late(2 * kLongTtl);
  }

  Bench bench_{*find_strategy(GetParam()), unrenewed()};
  const std::unique_ptr<Client> client_ = bench_.client();
};

TEST_P(LateGrants, AreGivenBack) {
  const AcquireResult late = client_->try_once(bench_.key());
  EXPECT_EQ(late.outcome, AcquireOutcome::refused) << late.reason;
  EXPECT_FALSE(bench_.is_held());
}

TEST_P(LateGrants, ThatCannotBeGivenBackAreUnknown) {
  client_->faults().drop_command(2, 100);
  const AcquireResult late = client_->try_once(bench_.key());
  EXPECT_EQ(late.outcome, AcquireOutcome::unknown);
  EXPECT_THAT(late.reason, testing::HasSubstr(shared_endpoints().front()));
  EXPECT_TRUE(bench_.is_held());
}

/// Those that give such a grant back, of the tested store.
std::vector<std::string_view> givers_back() {
  std::vector<std::string_view> names = {
      "redis-set-nx-lua", "redis-set-nx-check",     "redis-fenced",  "redis-queue",
      "redis-reentrant",  "redis-reentrant-notify", "postgres-lease"};
  std::erase_if(names,
                [](std::string_view name) { return !name.starts_with(tested_backends().front()); });
  return names;
}

// Of some stores there is none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LateGrants);
INSTANTIATE_TEST_SUITE_P(, LateGrants, testing::ValuesIn(givers_back()),
                         [](const auto& tested) { return test::test_name_of(tested.param); });

}  // namespace
}  // namespace lockbench::test
