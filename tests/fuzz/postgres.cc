#include "strategies/postgres/client/answers.h"
#include "tests/fuzz/target.h"
#include "watch/sources/postgres_look.h"
#include "watch/sources/postgres_table.h"

// What our code reads of an answer. libpq reads the protocol itself.

namespace lockbench::fuzz {
namespace {

void read_values(std::string_view bytes) {
  if (const auto number = postgres::read_number(bytes)) {
    require(postgres::read_number(std::to_string(*number)) == number);
  }
  static_cast<void>(postgres::read_flag(bytes));
  if (const auto look = watch::read_look(bytes)) require(look->locks.size() <= watch::kMostLocks);
  if (const auto tables = watch::read_table_look(bytes, 2)) require(tables->size() == 2);
  static_cast<void>(watch::parse_lock_table(bytes));
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(postgres, lockbench::fuzz::read_values)
