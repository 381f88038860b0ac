#include <gtest/gtest.h>

#include "strategies/store.h"
#include "tests/unit/loadgen/live_run_fixture.h"

namespace lockbench::loadgen {
namespace {

double cpu_seconds = 0;  ///< that the server of these tests has used

class MeteredStore : public Store {
 public:
  std::string display() const override { return "metered:1"; }
  StoreResult<void> reach(const std::stop_token&) override { return {}; }
  StoreResult<StoreFacts> facts() override {
    return StoreFacts{.version = "1", .instance = "1", .cpu_seconds = cpu_seconds};
  }
  StoreResult<std::size_t> remove_keys(std::span<const std::string> keys,
                                       const std::stop_token&) override {
    return keys.size();
  }
  StoreResult<std::size_t> remove_run(std::string_view, const std::stop_token&) override {
    return 1;
  }
};

const StoreRegistration metered(StoreKind{
    .name = "metered",
    .value_name = "URL",
    .help = "",
    .listing = Listing::by_scan,
    .display = [](const std::string& url) -> StoreKind::Text { return url; },
    .make = [](const std::string&, Duration) -> std::unique_ptr<Store> {
      return std::make_unique<MeteredStore>();
    }});

TEST_F(LiveRunTest, WhatTheServersDoAfterTheLoadIsNoCostOfASection) {
  plan_.endpoints = {{"metered", {"metered:1"}}};
  plan_.before_load = [] { cpu_seconds += 10; };
  plan_.after_load = [] { cpu_seconds += 1000; };
  end_after(20);
  Descriptor strategy = leaky_lock;
  strategy.backend = "metered";
  EXPECT_DOUBLE_EQ(run_one(strategy).server_cpu_seconds_per_section.value(), 0.5);
}

}  // namespace
}  // namespace lockbench::loadgen
