#!/usr/bin/env python3
"""Writes a trace for `lockbench run --trace`: the rows that the five transactions of TPC-C (standard specification,
revision 5.11) lock under two-phase locking, in the order in which they touch them. docs/cli.md lists the rows and
explains the format of a trace. A seed gives the same trace everywhere.
"""
import argparse
import bisect
import itertools
import random
import sys

SHARED, EXCLUSIVE = 1, 2

# Rows of a warehouse, numbered in this order. Rows of orders are reused in turn, where a database would keep all
# orders. Left out are rows that no other transaction can want (HISTORY), rows that never change (ITEM), and ORDER-LINE
# and NEW-ORDER, whose rows are locked with their order.
DISTRICTS, CUSTOMERS, ORDERS, STOCK = 10, 3000, 3000, 100_000
FIRST_CUSTOMER = 1 + DISTRICTS
FIRST_ORDER = FIRST_CUSTOMER + DISTRICTS * CUSTOMERS
FIRST_STOCK = FIRST_ORDER + DISTRICTS * ORDERS
ROWS = FIRST_STOCK + STOCK
MOST_WAREHOUSES = 100  # a trace numbers its locks from 0 to below 2^24

# Clause 4.3.3. More orders come in than are delivered. Beyond MOST_UNDELIVERED the oldest are dropped, so that new
# orders never share rows with orders being delivered.
UNDELIVERED, MOST_UNDELIVERED = 900, ORDERS // 2


class District:
    def __init__(self, customers):
        self.orders, self.delivered = ORDERS, ORDERS - UNDELIVERED
        # Each customer has ordered once, in a random order.
        self.customer_of_order = customers
        self.latest_order_of = {customer: order for order, customer in enumerate(customers)}


class Tpcc:
    def __init__(self, warehouses, zipf, seed):
        self.random = random.Random(seed)
        self.warehouses = warehouses
        self.weights = list(itertools.accumulate(1 / (k + 1) ** zipf for k in range(warehouses)))
        self.c_name, self.c_customer, self.c_item = self.draw(256), self.draw(1024), self.draw(8192)
        self.districts = [
            [District(self.shuffled(CUSTOMERS)) for _ in range(DISTRICTS)] for _ in range(warehouses)]

    # Of the random module, only random() gives the same numbers in every version of Python.
    def draw(self, end):
        """From 0 to below `end`."""
        return int(self.random.random() * end)

    def draw_uneven(self, a, c, end):
        """NURand of clause 2.1.6, from 0 to below `end`."""
        return ((self.draw(a + 1) | self.draw(end)) + c) % end

    def shuffled(self, count):
        numbers = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.draw(last + 1)
            numbers[last], numbers[other] = numbers[other], numbers[last]
        return numbers

    def draw_customer(self):
        return self.draw_uneven(1023, self.c_customer, CUSTOMERS)

    def draw_customer_by_name(self):
        if self.draw(100) >= 60:
            return self.draw_customer()
        # Clause 2.5.2.2 takes the middle one of the customers with that name. There are three on average, the first of
        # them among the first thousand; here the second of exactly three is taken.
        return 1000 + self.draw_uneven(255, self.c_name, 1000)

    def home(self):
        return bisect.bisect_right(self.weights, self.random.random() * self.weights[-1], hi=self.warehouses - 1)

    def other_warehouse(self, home):
        if self.warehouses == 1:
            return home
        other = self.draw(self.warehouses - 1)
        return other if other < home else other + 1

    def transaction(self):
        """The type, as FissLock numbers it, and the locks as pairs of number and mode."""
        home = self.home() * ROWS
        number = self.draw(DISTRICTS)
        district = self.districts[home // ROWS][number]
        # The shares of clause 5.2.3. Roll-backs of New-Order are left out.
        percent = self.draw(100)
        if percent < 45:
            return 1, self.new_order(home, number, district)
        if percent < 88:
            return 2, self.payment(home, number)
        if percent < 92:
            return 3, self.order_status(home, number, district)
        if percent < 96:
            return 4, self.delivery(home)
        return 5, self.stock_level(home, number, district)

    def new_order(self, home, number, district):
        customer = self.draw_customer()
        order = district.orders % ORDERS
        district.orders += 1
        if district.orders - district.delivered > MOST_UNDELIVERED:
            district.delivered += 1
        district.customer_of_order[order] = customer
        district.latest_order_of[customer] = order
        stock = {}  # each row once, in the order of the items
        for _ in range(5 + self.draw(11)):
            supplier = home if self.draw(100) >= 1 else self.other_warehouse(home // ROWS) * ROWS
            # There are far more items than an order has, so this ends soon.
            while (row := supplier + FIRST_STOCK + self.draw_uneven(8191, self.c_item, STOCK)) in stock:
                pass
            stock[row] = EXCLUSIVE
        return [(home, SHARED), (home + 1 + number, EXCLUSIVE), (customer_row(home, number, customer), SHARED),
                (order_row(home, number, order), EXCLUSIVE), *stock.items()]

    def payment(self, home, number):
        payer_home, payer_number = home, number
        # Clause 2.5.1.
        if self.draw(100) < 15 and self.warehouses > 1:
            payer_home, payer_number = self.other_warehouse(home // ROWS) * ROWS, self.draw(DISTRICTS)
        customer = customer_row(payer_home, payer_number, self.draw_customer_by_name())
        return [(home, EXCLUSIVE), (home + 1 + number, EXCLUSIVE), (customer, EXCLUSIVE)]

    def order_status(self, home, number, district):
        customer = self.draw_customer_by_name()
        order = district.latest_order_of[customer]
        return [(customer_row(home, number, customer), SHARED), (order_row(home, number, order), SHARED)]

    def delivery(self, home):
        """The oldest undelivered order of each district."""
        locks = []
        for number, district in enumerate(self.districts[home // ROWS]):
            # Districts without undelivered orders are skipped, clause 2.7.4.2.
            if district.delivered == district.orders:
                continue
            order = district.delivered % ORDERS
            district.delivered += 1
            locks.append((order_row(home, number, order), EXCLUSIVE))
            locks.append((customer_row(home, number, district.customer_of_order[order]), EXCLUSIVE))
        # A transaction of a trace needs at least one lock.
        return locks or [(home, SHARED)]

    def stock_level(self, home, number, district):
        """Without the stock rows, as it needs less isolation than the others (clause 3.4.1)."""
        latest = [order_row(home, number, (district.orders - back) % ORDERS) for back in range(1, 21)]
        return [(home + 1 + number, SHARED), *((order, SHARED) for order in latest)]


def customer_row(home, number, customer):
    return home + FIRST_CUSTOMER + number * CUSTOMERS + customer


def order_row(home, number, order):
    return home + FIRST_ORDER + number * ORDERS + order


def within(kind, least, most):
    def parse(text):
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is out of range; allowed: {least} to {most}")
        return value
    parse.__name__ = "number"  # argparse uses this name if the text is not a number
    return parse


def main():
    options = argparse.ArgumentParser(description="Make a trace of the locks of TPC-C for lockbench run --trace.")
    options.add_argument("--warehouses", metavar="W", type=within(int, 1, MOST_WAREHOUSES), default=1,
                         help="the fewer, the more contention; default 1")
    options.add_argument("--zipf", metavar="S", type=within(float, 0, 10), default=0,
                         help="Zipf exponent of the choice among the warehouses; default 0: uniform")
    options.add_argument("--transactions", metavar="N", type=within(int, 1, 1_000_000_000), default=100_000,
                         help="transactions to write; default 100000")
    options.add_argument("--seed", metavar="N", type=within(int, 0, 2**63 - 1), default=1,
                         help="a seed gives the same trace everywhere; default 1")
    options.add_argument("--out", metavar="FILE", required=True, help="the file to write; -: stdout")
    given = options.parse_args()

    tpcc = Tpcc(given.warehouses, given.zipf, given.seed)
    count = 0
    try:
        with open(sys.stdout.fileno() if given.out == "-" else given.out, "w") as file:
            for number in range(1, given.transactions + 1):
                kind, locks = tpcc.transaction()
                count += len(locks)
                file.writelines(f"{number},0,{kind},{row},{mode}\n" for row, mode in locks)
    except OSError as error:
        sys.exit(f"tpcc.py: {given.out} could not be written: {error.strerror}")
    print(f"{given.transactions} transactions with {count} locks of {given.warehouses * ROWS} rows", file=sys.stderr)


main()
