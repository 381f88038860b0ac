#include "loadgen/run/tpcc_locks.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "loadgen/run/random.h"

namespace lockbench::loadgen {
namespace {

// Shares of the mix in percent, clause 5.2.3; Payment has at least this one, New-Order the rest.
constexpr int kPayment = 43, kOrderStatus = 4, kDelivery = 4, kStockLevel = 4;
// Percent of the customers that are known by name, and of payments from elsewhere, clause 2.5.1.
constexpr int kByName = 60, kRemotePayment = 15;
constexpr int kRemoteItem = 1;
constexpr int kFewestItems = 5, kMostItems = 15;
// Orders that are not delivered at the beginning, clause 4.3.3.
constexpr int kUndelivered = 900;
// More orders come in than are delivered. Beyond this the oldest are forgotten, so that new orders
// never share rows with those that are delivered at the same time.
constexpr int kMostUndelivered = TpccLocks::kOrders / 2;
constexpr int kOrdersOfStockLevel = 20;
constexpr int kNames = 1000;
// NURand's A, clause 2.1.6.
constexpr int kNameA = 255, kCustomerA = 1023, kItemA = 8191;

int checked(int warehouses) {
  if (warehouses >= 1 && warehouses <= TpccLocks::kMostWarehouses) return warehouses;
  throw std::invalid_argument("the number of warehouses is out of range");
}

Wanted shared(int key) { return {key, Mode::shared}; }
Wanted exclusive(int key) { return {key, Mode::exclusive}; }

}  // namespace

TpccLocks::TpccLocks(int warehouses, double skew, std::uint64_t seed)
    : warehouses_(checked(warehouses)),
      homes_(warehouses, skew),
      random_(seed),
      c_name_(draw(kNameA + 1)),
      c_customer_(draw(kCustomerA + 1)),
      c_item_(draw(kItemA + 1)),
      districts_(static_cast<std::size_t>(warehouses) * kDistricts) {
  for (District& district : districts_) {
    district.delivered = kOrders - kUndelivered;
    // Each customer has ordered once, in a random order.
    std::vector<std::uint16_t>& customers = district.customer_of_order;
    customers.resize(kOrders);
    std::iota(customers.begin(), customers.end(), std::uint16_t{0});
    for (int i = kOrders - 1; i > 0; --i) {
      std::swap(customers[static_cast<std::size_t>(i)],
                customers[static_cast<std::size_t>(draw(i + 1))]);
    }
    district.latest_order_of_customer.resize(kCustomers);
    for (std::size_t order = 0; order < customers.size(); ++order) {
      district.latest_order_of_customer[customers[order]] = static_cast<std::uint16_t>(order);
    }
  }
}

TpccType TpccLocks::next(std::vector<Wanted>& locks) {
  locks.clear();
  const int home = homes_.pick(random_);
  int percent = draw(100);
  struct Part {
    int percent;
    TpccType type;
    void (TpccLocks::*lock)(int, std::vector<Wanted>&);
  };
  static constexpr std::array<Part, 4> kMix{{
      {kPayment, TpccType::payment, &TpccLocks::payment},
      {kOrderStatus, TpccType::order_status, &TpccLocks::order_status},
      {kDelivery, TpccType::delivery, &TpccLocks::delivery},
      {kStockLevel, TpccType::stock_level, &TpccLocks::stock_level},
  }};
  for (const Part& part : kMix) {
    if (percent < part.percent) {
      (this->*part.lock)(home, locks);
      return part.type;
    }
    percent -= part.percent;
  }
  new_order(home, locks);
  return TpccType::new_order;
}

void TpccLocks::new_order(int home, std::vector<Wanted>& locks) {
  const int number = draw(kDistricts);
  const int buyer = draw_customer();
  District& district = district_of(home, number);
  const int slot = district.orders++ % kOrders;
  if (district.orders - district.delivered > kMostUndelivered) ++district.delivered;
  district.customer_of_order[static_cast<std::size_t>(slot)] = static_cast<std::uint16_t>(buyer);
  district.latest_order_of_customer[static_cast<std::size_t>(buyer)] =
      static_cast<std::uint16_t>(slot);
  locks.push_back(shared(warehouse(home)));
  locks.push_back(exclusive(TpccLocks::district(home, number)));
  locks.push_back(shared(customer(home, number, buyer)));
  locks.push_back(exclusive(order(home, number, slot)));
  const int items = kFewestItems + draw(kMostItems - kFewestItems + 1);
  for (int i = 0; i < items; ++i) {
    const int supplier = draw(100) < kRemoteItem ? other_warehouse(home) : home;
    // A lock is held once. There are far more items than an order has, so this ends soon.
    Wanted row;
    do {
      row = exclusive(stock(supplier, draw_uneven(kItemA, c_item_, kStock)));
    } while (std::find(locks.begin(), locks.end(), row) != locks.end());
    locks.push_back(row);
  }
}

void TpccLocks::payment(int home, std::vector<Wanted>& locks) {
  const int number = draw(kDistricts);
  const int payer_home = draw(100) < kRemotePayment ? other_warehouse(home) : home;
  const int payer_district = payer_home == home ? number : draw(kDistricts);
  locks.push_back(exclusive(warehouse(home)));
  locks.push_back(exclusive(district(home, number)));
  locks.push_back(exclusive(customer(payer_home, payer_district, draw_customer_by_name())));
}

void TpccLocks::order_status(int home, std::vector<Wanted>& locks) {
  const int number = draw(kDistricts);
  const int asker = draw_customer_by_name();
  const int latest =
      district_of(home, number).latest_order_of_customer[static_cast<std::size_t>(asker)];
  locks.push_back(shared(customer(home, number, asker)));
  locks.push_back(shared(order(home, number, latest)));
}

void TpccLocks::delivery(int home, std::vector<Wanted>& locks) {
  for (int number = 0; number < kDistricts; ++number) {
    District& district = district_of(home, number);
    // One without undelivered orders is skipped, clause 2.7.4.2.
    if (district.delivered == district.orders) continue;
    const int slot = district.delivered++ % kOrders;
    locks.push_back(exclusive(order(home, number, slot)));
    locks.push_back(exclusive(
        customer(home, number, district.customer_of_order[static_cast<std::size_t>(slot)])));
  }
  // Each transaction of a trace has a lock.
  if (locks.empty()) locks.push_back(shared(warehouse(home)));
}

void TpccLocks::stock_level(int home, std::vector<Wanted>& locks) {
  const int number = draw(kDistricts);
  const int orders = district_of(home, number).orders;
  locks.push_back(shared(district(home, number)));
  for (int back = 1; back <= kOrdersOfStockLevel; ++back) {
    locks.push_back(shared(order(home, number, (orders - back) % kOrders)));
  }
}

int TpccLocks::draw(int end) { return static_cast<int>(draw_unit(random_) * end); }

int TpccLocks::draw_uneven(int a, int c, int end) { return ((draw(a + 1) | draw(end)) + c) % end; }

int TpccLocks::draw_customer() { return draw_uneven(kCustomerA, c_customer_, kCustomers); }

int TpccLocks::draw_customer_by_name() {
  if (draw(100) >= kByName) return draw_customer();
  // The one in the middle of those with that name is taken, clause 2.5.2.2. There are three on
  // average, of whom the first is among the first thousand: here the second of exactly three.
  return kNames + draw_uneven(kNameA, c_name_, kNames);
}

int TpccLocks::other_warehouse(int home) {
  if (warehouses_ == 1) return home;
  const int other = draw(warehouses_ - 1);
  return other < home ? other : other + 1;
}

TpccLocks::District& TpccLocks::district_of(int warehouse, int district) {
  return districts_[static_cast<std::size_t>(warehouse) * kDistricts +
                    static_cast<std::size_t>(district)];
}

}  // namespace lockbench::loadgen
