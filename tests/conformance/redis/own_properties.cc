#include "tests/conformance/redis/own_properties.h"

namespace lockbench::test {

bool uses_redis(const Descriptor& descriptor) { return descriptor.backend == "redis"; }

std::vector<Property> redis_properties() {
  std::vector<Property> own;
  for (const auto& group : {renewal_properties(), notification_properties(), script_properties(),
                            endpoint_properties()}) {
    own.insert(own.end(), group.begin(), group.end());
  }
  return own;
}

}  // namespace lockbench::test
