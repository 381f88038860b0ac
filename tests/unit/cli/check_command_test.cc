#include <nlohmann/json.hpp>

#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::HasSubstr;

/// Two holders at once in lines 1, 3, 4 and 2; before them a hold that nobody contends.
constexpr const char* kTwoHolders =
    R"({"ClientId":7,"Input":{"f":"acquire","key":"a"},"Call":1000,"Output":{"type":"ok","value":3},"Return":2000000}
{"ClientId":7,"Input":{"f":"release","key":"a"},"Call":9000000,"Output":{"type":"ok"},"Return":9500000}
{"ClientId":8,"Input":{"f":"acquire","key":"a"},"Call":3000000,"Output":{"type":"ok","value":4},"Return":4000000}
{"ClientId":8,"Input":{"f":"release","key":"a"},"Call":5000000,"Output":{"type":"info"},"Return":6000000}
{"ClientId":8,"Input":{"f":"acquire","key":"b"},"Call":500,"Output":{"type":"fail"},"Return":600}
{"ClientId":8,"Input":{"f":"renew","key":"b"},"Call":700,"Output":{"type":"ok"},"Return":800}
)";

TEST(CheckCommand, ShowsTheOperationsThatCannotBeExplained) {
  const TemporaryFile history("h.jsonl", kTwoHolders);
  const Ran checked = ran({"check", history.path()});
  EXPECT_EQ(checked.code, 3);
  EXPECT_EQ(checked.out,
            "5 operations (1 indefinite) on 2 keys, 2 grants, 1 of them contended\n"
            "1 others ignored\n"
            "mutex: violated: 1 operations on 1 keys cannot be explained; the first:\n"
            "a (lines 1, 3, 4, 2): two processes hold the lock at once\n"
            "    0.000 s  process 7  asks for the lock\n"
            "    0.002 s  process 7  is granted the lock, with number 3\n"
            "    0.003 s  process 8  asks for the lock\n"
            "    0.004 s  process 8  is granted the lock, with number 4\n"
            "    0.005 s  process 8  starts to release\n"
            "    0.009 s  process 7  starts to release\n"
            "    0.009 s  process 7  has released the lock\n");
}

TEST(CheckCommand, NamesTheFileAndTheLineOfABadOperation) {
  const TemporaryFile history("h.edn",
                              "{:process 0 :type :invoke :f :acquire-shared}\n"
                              "{:process 0 :type :ok :f :acquire}\n");
  expect_refused(ran({"check", history.path()}), HasSubstr(history.path() + ":2: :f is"));
  const TemporaryFile sharing("s.edn", "{:process 0 :type :invoke :f :acquire-shared}\n");
  expect_refused(ran({"check", sharing.path()}),
                 HasSubstr(sharing.path() + ":1: operations in shared mode need --model shared"));
}

}  // namespace
}  // namespace lockbench::cli
