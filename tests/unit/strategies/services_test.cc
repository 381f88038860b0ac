#include "strategies/services.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace lockbench {
namespace {

struct Number {
  explicit Number(int n) : value(n) {}
  virtual ~Number() = default;
  int value;
};

struct Special : Number {
  Special() : Number(99) {}
};

template <int kNumber>
struct Tombstone {
  explicit Tombstone(std::string& to) : log(to) {}
  ~Tombstone() { log += std::to_string(kNumber); }
  std::string& log;
};

TEST(Services, KeepsTypesApart) {
  Services services;
  services.provide<Number>(std::make_shared<Number>(1));
  EXPECT_EQ(services.get_or_make<Special>([] { return std::make_unique<Special>(); }).value, 99);
  EXPECT_EQ(services.get_or_make<Number>([] { return std::make_unique<Number>(2); }).value, 1);
}

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
  std::vector<Number*> seen(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(seen.size());
    for (auto& place : seen) {
      threads.emplace_back([&services, &made, &place] {
        place = &services.get_or_make<Number>([&] { return std::make_shared<Number>(++made); });
      });
    }
  }
  EXPECT_EQ(made, 1);
  for (const Number* number : seen) EXPECT_EQ(number, seen[0]);
}

}  // namespace
}  // namespace lockbench
