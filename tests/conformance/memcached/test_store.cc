#include <fmt/format.h>

#include "strategies/carrier.h"
#include "tests/conformance/memcached/memcached_test_store.h"
#include "tests/support/eventually.h"

namespace lockbench::test {
namespace {

/// Decodes the percent-encoding that occurs in test keys.
std::string decoded(const std::string& encoded) {
  std::string key;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] != '%') {
      key += encoded[i];
      continue;
    }
    key += static_cast<char>(std::stoi(encoded.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return key;
}

}  // namespace

MemcachedTestStore::MemcachedTestStore()
    : server_(must(testbed::start_memcached(shared_testbed()))) {}

std::vector<std::string> MemcachedTestStore::ask(const std::string& commands) const {
  const auto whole = [](std::string_view) { return false; };
  return lines_of(
      must(testbed::ask_memcached(*server_, commands + "\r\nquit\r\n", kPatience, whole)));
}

std::vector<std::string> MemcachedTestStore::keys() {
  // Only one dump can run at a time, including the server's own.
  std::string dump;
  const auto whole = [](std::string_view text) {
    return text.ends_with("END\r\n") || text.starts_with("BUSY");
  };
  const auto dumped = [&] {
    dump = must(testbed::ask_memcached(*server_, "lru_crawler metadump all\r\n", kPatience, whole));
    return !dump.starts_with("BUSY");
  };
  if (!eventually(dumped)) throw std::runtime_error("memcached's crawler stays busy");
  std::vector<std::string> keys;
  for (const std::string& line : lines_of(dump)) {
    if (line.starts_with("key=")) keys.push_back(decoded(line.substr(4, line.find(' ') - 4)));
  }
  // The dump may list expired items.
  std::erase_if(keys, [this](const std::string& key) { return !exists(key); });
  return keys;
}

std::optional<TimePoint> MemcachedTestStore::end_of(const std::string& key) {
  // "HD t11": seconds left, rounded up; "HD t-1": no end; "EN": no such item.
  const std::string answer = ask("mg " + key + " t").front();
  if (!answer.starts_with("HD t") || answer.starts_with("HD t-")) return std::nullopt;
  return Carrier::current().now() + std::chrono::seconds(std::stoi(answer.substr(4)));
}

void MemcachedTestStore::take_away(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) ask("delete " + key);
}

int MemcachedTestStore::other_connections() {
  constexpr std::string_view kConnections = "STAT curr_connections ";
  for (const std::string& line : ask("stats")) {
    if (line.starts_with(kConnections)) return std::stoi(line.substr(kConnections.size()));
  }
  throw std::runtime_error("memcached does not count its connections");
}

namespace {

const TestedStoreRegistration registration({.name = "memcached",
                                            .backends = {"memcached"},
                                            .shared = the_one<MemcachedTestStore>,
                                            .make = another<MemcachedTestStore>});

}  // namespace

}  // namespace lockbench::test
