#include "loadgen/run/tpcc_locks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

namespace lockbench::loadgen {
namespace {

struct Taken {
  TpccType type{};
  std::vector<Wanted> locks;
};

std::vector<Taken> transactions(int warehouses, int count, double skew = 0,
                                std::uint64_t seed = 1) {
  TpccLocks tpcc(warehouses, skew, seed);
  std::vector<Taken> all(static_cast<std::size_t>(count));
  for (Taken& one : all) one.type = tpcc.next(one.locks);
  return all;
}

/// Which table a lock belongs to: 'w', 'd', 'c', 'o' or 's'.
char table_of(int key) {
  const int row = key % TpccLocks::kRows;
  if (row >= TpccLocks::stock(0, 0)) return 's';
  if (row >= TpccLocks::order(0, 0, 0)) return 'o';
  if (row >= TpccLocks::customer(0, 0, 0)) return 'c';
  return row >= TpccLocks::district(0, 0) ? 'd' : 'w';
}

int warehouse_of(int key) { return key / TpccLocks::kRows; }

/// "w:s d:x": the tables and modes, in their order; stock rows as one.
std::string footprint(const std::vector<Wanted>& locks) {
  std::string text;
  for (const Wanted& wanted : locks) {
    const std::string one = {table_of(wanted.key), wanted.mode == Mode::shared ? 's' : 'x', ' '};
    if (text.ends_with("sx ") && one == "sx ") continue;
    text += one;
  }
  return text;
}

constexpr int kCount = 40'000;

void expect_share(double seen, double all, double share, const char* what) {
  EXPECT_NEAR(seen, all * share, 6 * std::sqrt(all * share * (1 - share))) << what;
}

TEST(TpccLocks, TransactionsHaveTheStandardsShares) {
  std::map<TpccType, int> counts;
  for (const Taken& one : transactions(2, kCount)) ++counts[one.type];
  expect_share(counts[TpccType::new_order], kCount, 0.45, "New-Order");
  expect_share(counts[TpccType::payment], kCount, 0.43, "Payment");
  expect_share(counts[TpccType::order_status], kCount, 0.04, "Order-Status");
  expect_share(counts[TpccType::delivery], kCount, 0.04, "Delivery");
  expect_share(counts[TpccType::stock_level], kCount, 0.04, "Stock-Level");
}

TEST(TpccLocks, EachTransactionLocksItsRowsInItsModes) {
  for (const auto& [type, locks] : transactions(3, kCount)) {
    const std::string rows = footprint(locks);
    switch (type) {
      case TpccType::new_order:
        ASSERT_EQ(rows, "ws dx cs ox sx ");
        break;
      case TpccType::payment:
        ASSERT_EQ(rows, "wx dx cx ");
        break;
      case TpccType::order_status:
        ASSERT_EQ(rows, "cs os ");
        break;
      case TpccType::delivery:
        ASSERT_EQ(rows, "ox cx ox cx ox cx ox cx ox cx ox cx ox cx ox cx ox cx ox cx ");
        break;
      case TpccType::stock_level:
        ASSERT_EQ(locks.size(), 21U);
        ASSERT_TRUE(rows.starts_with("ds os os "));
        break;
    }
  }
}

TEST(TpccLocks, NewOrderHasFiveToFifteenItemsOfWhichOneInAHundredIsRemote) {
  int orders = 0, items = 0, remote = 0;
  std::set<std::size_t> sizes;
  for (const auto& [type, locks] : transactions(4, kCount)) {
    if (type != TpccType::new_order) continue;
    ++orders;
    const int home = warehouse_of(locks.front().key);
    const auto is_stock = [](const Wanted& one) { return table_of(one.key) == 's'; };
    const auto first = std::find_if(locks.begin(), locks.end(), is_stock);
    sizes.insert(static_cast<std::size_t>(locks.end() - first));
    for (auto row = first; row != locks.end(); ++row, ++items) {
      if (warehouse_of(row->key) != home) ++remote;
    }
  }
  EXPECT_EQ(*sizes.begin(), 5U);
  EXPECT_EQ(*sizes.rbegin(), 15U);
  EXPECT_EQ(sizes.size(), 11U);
  EXPECT_NEAR(static_cast<double>(items) / orders, 10, 0.2);
  expect_share(remote, items, 0.01, "remote items");
}

TEST(TpccLocks, FifteenPercentOfThePaymentsComeFromElsewhere) {
  int payments = 0, remote = 0;
  for (const auto& [type, locks] : transactions(4, kCount)) {
    if (type != TpccType::payment) continue;
    ++payments;
    if (warehouse_of(locks[2].key) != warehouse_of(locks[0].key)) ++remote;
  }
  expect_share(remote, payments, 0.15, "remote payments");
}

TEST(TpccLocks, DeliveryTakesTheOldestOrdersInTurn) {
  std::map<int, int> latest;  // by the order's district
  for (const auto& [type, locks] : transactions(1, kCount)) {
    if (type != TpccType::delivery) continue;
    for (const Wanted& wanted : locks) {
      if (table_of(wanted.key) != 'o') continue;
      const int row = wanted.key - TpccLocks::order(0, 0, 0);
      const int district = row / TpccLocks::kOrders, order = row % TpccLocks::kOrders;
      const auto before = latest.find(district);
      const int expected = before == latest.end() ? 2100 : (before->second + 1) % 3000;
      ASSERT_EQ(order, expected);
      latest[district] = order;
    }
  }
  EXPECT_EQ(latest.size(), 10U);
}

TEST(TpccLocks, NewOrdersKeepAwayFromThoseThatAreDelivered) {
  // So many that their rows would meet, as more orders come in than are delivered.
  constexpr int kMany = 200'000;
  TpccLocks tpcc(1, 0, 1);
  std::vector<Wanted> locks;
  std::map<int, int> delivered;  // the latest, by the district
  int furthest = 0;
  for (int i = 0; i < kMany; ++i) {
    const TpccType type = tpcc.next(locks);
    if (type != TpccType::new_order && type != TpccType::delivery) continue;
    for (const Wanted& wanted : locks) {
      if (table_of(wanted.key) != 'o') continue;
      const int row = wanted.key - TpccLocks::order(0, 0, 0);
      const int district = row / TpccLocks::kOrders, order = row % TpccLocks::kOrders;
      if (type == TpccType::delivery) delivered[district] = order;
      if (type == TpccType::delivery || !delivered.contains(district)) continue;
      const int ahead = (order - delivered[district] + TpccLocks::kOrders) % TpccLocks::kOrders;
      ASSERT_GT(ahead, 500);
      furthest = std::max(furthest, ahead);
    }
  }
  EXPECT_LT(furthest, 1600);
  EXPECT_GT(furthest, 1490) << "else the test shows nothing";
}

TEST(TpccLocks, ALockIsTakenOnceAndIsOneOfTheWarehouses) {
  for (const int warehouses : {1, 5}) {
    const int keys = TpccLocks(warehouses, 0, 1).keys();
    for (const auto& [type, locks] : transactions(warehouses, 5000)) {
      ASSERT_FALSE(locks.empty());
      std::set<int> seen;
      for (const Wanted& wanted : locks) {
        ASSERT_TRUE(seen.insert(wanted.key).second) << wanted.key;
        ASSERT_GE(wanted.key, 0);
        ASSERT_LT(wanted.key, keys);
      }
    }
  }
}

TEST(TpccLocks, CustomersAndItemsAreUneven) {
  std::map<int, int> customers;
  int all = 0;
  for (const auto& [type, locks] : transactions(1, kCount)) {
    if (type != TpccType::payment) continue;
    ++all;
    ++customers[(locks[2].key - TpccLocks::customer(0, 0, 0)) % TpccLocks::kCustomers];
  }
  int most = 0;
  for (const auto& [customer, count] : customers) most = std::max(most, count);
  EXPECT_GT(most, 5 * all / TpccLocks::kCustomers);
}

TEST(TpccLocks, ASkewPrefersTheFirstWarehouses) {
  std::map<int, int> homes;
  for (const auto& [type, locks] : transactions(3, kCount, 1)) ++homes[warehouse_of(locks[0].key)];
  expect_share(homes[0], kCount, 6.0 / 11, "the first");
  expect_share(homes[2], kCount, 2.0 / 11, "the last");
}

TEST(TpccLocks, NonsenseIsAProgrammingError) {
  EXPECT_THROW(TpccLocks(0, 0, 1), std::invalid_argument);
  EXPECT_THROW(TpccLocks(TpccLocks::kMostWarehouses + 1, 0, 1), std::invalid_argument);
}

}  // namespace
}  // namespace lockbench::loadgen
