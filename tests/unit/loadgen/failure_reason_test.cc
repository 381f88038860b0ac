#include "loadgen/record/metrics.h"

#include <gtest/gtest.h>

namespace lockbench::loadgen {
namespace {

TEST(FailureReason, IsSaidByTheStoresInTheirOwnWords) {
  const auto expect = [](FailureReason reason, std::initializer_list<const char*> messages) {
    for (const char* message : messages) {
      EXPECT_EQ(info_of(reason_of(message)).name, info_of(reason).name) << message;
    }
  };
  expect(FailureReason::oom,
         {"h:1: OOM command not allowed when used memory > 'maxmemory'.",
          "h:1: etcdserver: mvcc: database space exceeded", "h:1: ERROR: out of memory"});
  expect(FailureReason::readonly, {"h:1: READONLY You can't write against a read only replica.",
                                   "h:1: ERROR: cannot execute INSERT in a read-only transaction",
                                   "h:1: the server that the sentinels name as master is a replica",
                                   "h:1: MISCONF Redis is configured to save RDB snapshots",
                                   "h:1: NOREPLICAS Not enough good replicas to write."});
  expect(FailureReason::auth,
         {"h:1: NOAUTH Authentication required.", "h:1: AUTH was refused: WRONGPASS",
          "h:1: NOPERM this user has no permissions to run the 'set' command",
          "h:1: FATAL: password authentication failed for user \"u\"",
          "h:1: etcdserver: permission denied", "h:1: not authenticated",
          "h:1: \"CLIENT_ERROR unauthenticated\"", "h:1: its certificate has expired"});
  expect(FailureReason::busy, {"h:1: LOADING Redis is loading the dataset in memory",
                               "h:1: BUSY Redis is busy running a script.",
                               "h:1: FATAL: the database system is starting up"});
  expect(FailureReason::timeout, {"h:1: no answer within 300ms", "h:1: no connection within 3s",
                                  "3 of 5 nodes failed: h:1: no answer within 50ms"});
  expect(FailureReason::unreachable,
         {"h:1: Connection refused", "h:1: the connection was closed",
          "no sentinel knows the master; h:1: it does not watch m", "h:1: connection loss",
          "h:1: the server does not speak TLS",
          "h:1: its name cannot be looked up: Name or service not known"});
  expect(FailureReason::other, {"h:1: ERR unknown command", ""});
}

}  // namespace
}  // namespace lockbench::loadgen
