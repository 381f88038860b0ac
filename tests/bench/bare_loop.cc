#include <hiredis/hiredis.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loadgen/run/thread.h"

// The plainest client there can be: a thread and a connection each, SET NX PX and the releasing
// script in turn, nothing recorded. What lockbench reaches beside it is what its harness costs.
// Usage: lockbench_bare_loop PORT CLIENTS SECONDS SHA; prints the commands per second.

namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

struct Shared {
  int port;
  const char* sha;
  std::atomic<int> connected{0};
  std::atomic<bool> go{false}, over{false};
  std::atomic<std::uint64_t> commands{0};
};

void expect(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "bare_loop: %s\n", what);
  std::exit(1);
}

void call(redisContext& redis, const char* format, const char* word, const char* other) {
  void* reply = redisCommand(&redis, format, word, other, kToken);
  expect(reply != nullptr, "no answer");
  freeReplyObject(reply);
}

void be_a_client(Shared& shared, int number) {
  const std::unique_ptr<redisContext, decltype(&redisFree)> redis(
      redisConnect("127.0.0.1", shared.port), &redisFree);
  expect(redis && redis->err == 0, "no connection");
  const std::string key = "lockbench:bare:{" + std::to_string(number) + "}";
  ++shared.connected;
  shared.go.wait(false);
  std::uint64_t commands = 0;
  for (; !shared.over.load(std::memory_order_relaxed); commands += 2) {
    call(*redis, "SET %s %s NX PX 10000", key.c_str(), kToken);
    call(*redis, "EVALSHA %s 1 %s %s", shared.sha, key.c_str());
  }
  shared.commands += commands;
}

}  // namespace

int main(int count, char** words) {
  expect(count == 5, "usage: lockbench_bare_loop PORT CLIENTS SECONDS SHA");
  Shared shared{.port = std::atoi(words[1]), .sha = words[4]};
  const int clients = std::atoi(words[2]);
  std::vector<lockbench::loadgen::SmallThread> threads;
  for (int i = 0; i < clients; ++i) {
    // No more at once than a server's accept queue holds.
    while (i - shared.connected >= 64) std::this_thread::yield();
    auto started = lockbench::loadgen::SmallThread::start([&shared, i] { be_a_client(shared, i); });
    expect(started.has_value(), "no thread");
    threads.push_back(std::move(*started));
  }
  while (shared.connected < clients) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  shared.go = true;
  shared.go.notify_all();
  std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(words[3])));
  shared.over = true;
  threads.clear();  // joins them
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf("%.0f\n", static_cast<double>(shared.commands) / taken.count());
}
