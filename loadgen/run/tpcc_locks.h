#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "loadgen/run/demand.h"
#include "loadgen/run/key_chooser.h"
#include "strategies/random.h"

namespace lockbench::loadgen {

/// Numbered as in FissLock's traces.
enum class TpccType { new_order = 1, payment, order_status, delivery, stock_level };

/// The rows that the five transactions of TPC-C (standard specification, revision 5.11) lock under
/// two-phase locking, in the order in which they touch them. Left out are rows that nobody else can
/// want, such as those of HISTORY, rows that never change, such as those of ITEM, and ORDER-LINE
/// and NEW-ORDER, whose rows are locked with their order. Roll-backs of New-Order are left out,
/// too.
///
///   New-Order     shared: warehouse, customer; exclusive: district, the new order, 5 to 15 stock
///                 rows, of which one in a hundred belongs to another warehouse
///   Payment       exclusive: warehouse, district, customer, of another warehouse for 15 %
///   Order-Status  shared: customer, the customer's latest order
///   Delivery      exclusive: of each district the oldest undelivered order, of the 1500 latest,
///                 and its customer
///   Stock-Level   shared: district, its 20 latest orders; not the stock rows, as it needs less
///                 isolation than the others do (clause 3.4.1)
///
/// One seed gives the same transactions everywhere. For one thread at a time.
class TpccLocks {
 public:
  /// Rows of a warehouse. Orders take turns, as a database keeps all of them.
  static constexpr int kDistricts = 10, kCustomers = 3000, kStock = 100'000, kOrders = 3000;
  static constexpr int kRows = 1 + kDistricts * (1 + kCustomers + kOrders) + kStock;
  static constexpr int kMostWarehouses = 100;

  /// Warehouses are chosen uniformly, or by Zipf with that exponent. Throws std::invalid_argument
  /// unless there are 1 to kMostWarehouses of them.
  TpccLocks(int warehouses, double skew, std::uint64_t seed);

  int keys() const { return warehouses_ * kRows; }

  /// Replaces what is in `locks`, which then holds each lock once.
  TpccType next(std::vector<Wanted>& locks);

  // The locks' numbers.
  static int warehouse(int warehouse) { return warehouse * kRows; }
  static int district(int warehouse, int district) { return warehouse * kRows + 1 + district; }
  static int customer(int warehouse, int district, int customer) {
    return warehouse * kRows + 1 + kDistricts + district * kCustomers + customer;
  }
  static int order(int warehouse, int district, int order) {
    return warehouse * kRows + 1 + kDistricts * (1 + kCustomers) + district * kOrders + order;
  }
  static int stock(int warehouse, int item) {
    return warehouse * kRows + 1 + kDistricts * (1 + kCustomers + kOrders) + item;
  }

 private:
  struct District {
    int orders = kOrders;  ///< so far
    int delivered = 0;     ///< of them
    std::vector<std::uint16_t> customer_of_order, latest_order_of_customer;
  };

  void new_order(int home, std::vector<Wanted>& locks);
  void payment(int home, std::vector<Wanted>& locks);
  void order_status(int home, std::vector<Wanted>& locks);
  void delivery(int home, std::vector<Wanted>& locks);
  void stock_level(int home, std::vector<Wanted>& locks);

  /// From 0 to below `end`.
  int draw(int end);
  /// NURand of clause 2.1.6, from 0 to below `end`.
  int draw_uneven(int a, int c, int end);
  int draw_customer();
  int draw_customer_by_name();
  int other_warehouse(int home);
  District& district_of(int warehouse, int district);

  const int warehouses_;
  const KeyChooser homes_;
  Random random_;
  int c_name_, c_customer_, c_item_;  ///< of NURand
  std::vector<District> districts_;
};

}  // namespace lockbench::loadgen
