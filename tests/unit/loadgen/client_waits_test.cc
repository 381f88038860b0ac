#include "loadgen/record/client_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace lockbench::loadgen {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::IsEmpty;

/// Recorded in place, as a client's waits cannot be copied.
class Clients {
 public:
  ClientWaits& add() { return *all_.emplace_back(std::make_unique<ClientWaits>()); }
  std::optional<results::ByClient> figures() const {
    std::vector<const ClientWaits*> waits;
    for (const auto& one : all_) waits.push_back(one.get());
    return by_client(waits);
  }

 private:
  std::vector<std::unique_ptr<ClientWaits>> all_;
};

void record(ClientWaits& client, int times, Duration wait) {
  for (int i = 0; i < times; ++i) client.record(wait, false);
}

TEST(ClientWaits, AClientWithManyGrantsWeighsAsMuchAsOneWithFew) {
  Clients clients;
  record(clients.add(), 10'000, 1ms);
  record(clients.add(), 10, 1s);
  record(clients.add(), 10, 1s);
  const auto figures = clients.figures();
  ASSERT_TRUE(figures);
  // Over all waits it would be 1 ms, as far as the 99th percentile.
  EXPECT_NEAR(figures->p50, 1, 0.04);
  EXPECT_NEAR(figures->worst_p99, 1, 0.04);
  EXPECT_THAT(figures->at_least, IsEmpty());
}

TEST(ClientWaits, TheWorstClientIsTheOneWithTheHighestP99) {
  Clients clients;
  for (const Duration wait : {2ms, 700ms, 3ms}) record(clients.add(), 100, wait);
  EXPECT_NEAR(clients.figures()->worst_p99, 0.7, 0.03);
}

TEST(ClientWaits, WaitsThatWereCutOffAreLowerBounds) {
  Clients clients;
  record(clients.add(), 1000, 1ms);
  ClientWaits& starved = clients.add();
  record(starved, 1, 1ms);
  starved.record(3s, true);
  const auto figures = clients.figures();
  EXPECT_NEAR(figures->worst_p99, 3, 0.1);
  EXPECT_THAT(figures->at_least, Contains("worst_p99"));
  EXPECT_THAT(figures->at_least, Contains("p99"));
  EXPECT_THAT(figures->at_least, testing::Not(Contains("p50")));
}

TEST(ClientWaits, WhoeverWaitedAtTheEndOfAnEvenRunChangesNothing) {
  Clients clients;
  ClientWaits& client = clients.add();
  record(client, 1000, 10ms);
  client.record(4ms, true);
  EXPECT_THAT(clients.figures()->at_least, IsEmpty());
}

TEST(ClientWaits, ClientsWithoutWaitsDoNotCount) {
  Clients clients;
  clients.add();
  EXPECT_EQ(clients.figures(), std::nullopt);
  record(clients.add(), 5, 2ms);
  EXPECT_NEAR(clients.figures()->p50, 0.002, 1e-4);
}

}  // namespace
}  // namespace lockbench::loadgen
