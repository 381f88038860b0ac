#include <fmt/format.h>

#include <algorithm>

#include "deployment/private_store.h"
#include "testbed/servers/kinds.h"

namespace lockbench::deployment {
namespace {

class MemcachedStore : public PrivateStore {
 public:
  MemcachedStore(testbed::Testbed& host, const StoreRequest& request) : PrivateStore("memcached") {
    testbed::MemcachedOptions options{.max_clients = request.clients};
    if (request.setup == Setup::cramped) options.memory_megabytes = 2;
    options.tls = host.tls();
    options.clock = clock_for(host, request.setup);
    add(testbed::start_memcached(host, options));
  }

  /// Memory is divided by the size of items, so only items of the lock's size evict it: with keys
  /// as long as its key, and values of locks' sizes.
  void fill_memory(const std::string& key, const std::string& /*policy*/) override {
    constexpr int kDigits = 8, kItems = 40'000;
    const std::string prefix =
        key.substr(0, key.size() - std::min<std::size_t>(key.size(), kDigits));
    for (const std::size_t size : {1, 16, 32, 48}) {
      std::string request;
      const std::string value(size, 'x');
      for (int i = 0; i < kItems; ++i) {
        request += fmt::format("set {}{:0{}} 0 86400 {} noreply\r\n{}\r\n", prefix, i, kDigits,
                               size, value);
      }
      request += "version\r\n";
      need(testbed::ask_memcached(
          *servers().front(), request, std::chrono::seconds(20),
          [](std::string_view text) { return text.find("VERSION") != std::string_view::npos; }));
    }
  }
};

const PrivateStoreRegistration private_memcached({
    .name = "memcached",
    .program = testbed::kMemcached.name,
    .find_program = [] { return testbed::find_program(testbed::kMemcached); },
    .start = [](testbed::Testbed& host,
                const StoreRequest& request) -> std::unique_ptr<PrivateStore> {
      if (request.setup == Setup::durable) throw NotOffered("memcached keeps nothing on disk");
      if (request.setup == Setup::replicated) throw NotOffered("memcached has no replicas");
      return std::make_unique<MemcachedStore>(host, request);
    },
});

}  // namespace
}  // namespace lockbench::deployment
