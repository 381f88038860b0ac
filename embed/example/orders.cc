// Two workers share a lock, whose numbers protect what they write. Usage: orders redis://HOST:PORT
#include <lockbench/lock.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: orders redis://HOST:PORT\n";
    return 1;
  }
  const auto metrics = std::make_shared<prometheus::Registry>();
  const lockbench::embed::Locks locks({.strategy = "redis-fenced", .urls = {argv[1]}, .ttl = 5s},
                                      metrics);
  // The protected resource refuses old numbers, and with them a holder that was paused too long.
  std::atomic<std::uint64_t> newest = 0;
  std::atomic<int> written = 0;
  const auto work = [&] {
    for (int order = 0; order < 100; ++order) {
      lockbench::embed::Lock lock = locks.acquire("orders", 10s);
      if (!lock || *lock.fencing() <= newest) continue;
      newest = *lock.fencing();
      ++written;
      if (!lock.release()) std::cerr << lock.reason() << '\n';
    }
  };
  { const std::jthread first(work), second(work); }
  std::cout << prometheus::TextSerializer().Serialize(metrics->Collect());
  std::cout << written << " orders written\n";
}
