#include "tests/conformance/redis/redis_test_store.h"

namespace lockbench::test {
namespace {

TestStore& shared() {
  static RedisTestStore tested(shared_redis());
  return tested;
}

std::unique_ptr<TestStore> make() { return std::make_unique<RedisTestStore>(own_redis()); }

const TestedStoreRegistration registration({.name = "redis",
                                            .backends = {"redis", "local"},
                                            .shared = shared,
                                            .make = make,
                                            .properties = redis_properties});

}  // namespace

}  // namespace lockbench::test
