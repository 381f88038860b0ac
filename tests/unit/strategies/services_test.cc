#include "strategies/services.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace lockbench {
namespace {

template <int kNumber>
struct Tombstone {
  explicit Tombstone(std::string& to) : log(to) {}
  ~Tombstone() { log += std::to_string(kNumber); }
  std::string& log;
};

TEST(Services, AreDestroyedInReverseOrder) {
  std::string log;
  {
    Services services;
    services.provide(std::make_shared<Tombstone<1>>(log));
    services.get_or_make<Tombstone<2>>([&] { return std::make_shared<Tombstone<2>>(log); });
    services.get_or_make<Tombstone<3>>([&] { return std::make_unique<Tombstone<3>>(log); });
    EXPECT_EQ(log, "");
  }
  EXPECT_EQ(log, "321");
}

TEST(Services, ThreadsShareTheOneInstance) {
  Services services;
  std::atomic<int> made{0};
  std::vector<int*> seen(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(seen.size());
    for (auto& place : seen) {
      threads.emplace_back([&services, &made, &place] {
        place = &services.get_or_make<int>([&] { return std::make_shared<int>(++made); });
      });
    }
  }
  EXPECT_EQ(made, 1);
  for (const int* number : seen) EXPECT_EQ(number, seen[0]);
}

}  // namespace
}  // namespace lockbench
