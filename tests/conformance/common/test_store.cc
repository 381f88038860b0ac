#include "tests/conformance/common/test_store.h"

#include <algorithm>
#include <thread>

namespace lockbench::test {

bool TestStore::exists(const std::string& key) {
  const std::vector<std::string> all = keys();
  return std::find(all.begin(), all.end(), key) != all.end();
}

bool TestStore::becomes_empty() {
  constexpr int kLooks = 50;
  for (int look = 0; look < kLooks && !keys().empty(); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return keys().empty();
}

std::string url_of(std::uint16_t port) { return shared_store().server().url_form().on({port}); }

}  // namespace lockbench::test
