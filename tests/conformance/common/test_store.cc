#include "tests/conformance/common/test_store.h"

#include <algorithm>

#include "tests/support/eventually.h"

namespace lockbench::test {

bool TestStore::exists(const std::string& key) {
  const std::vector<std::string> all = keys();
  return std::find(all.begin(), all.end(), key) != all.end();
}

bool TestStore::becomes_empty() {
  return eventually([this] { return keys().empty(); });
}

std::string url_of(std::uint16_t port) { return shared_store().server().url_form().on({port}); }

}  // namespace lockbench::test
