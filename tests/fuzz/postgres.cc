#include "strategies/number.h"
#include "tests/fuzz/target.h"
#include "watch/sources/sql_locks.h"

// The parts of an answer that our code parses, of MariaDB as well. The libraries parse the
// protocols.

namespace lockbench::fuzz {
namespace {

void read_values(std::string_view bytes) {
  if (const auto number = parse_number<std::uint64_t>(bytes)) {
    require(parse_number<std::uint64_t>(std::to_string(*number)) == number);
  }
  if (const auto look = watch::read_locks(bytes)) require(look->lines.size() <= watch::kMostLocks);
  if (const auto found = watch::read_tables(bytes)) {
    require(found->lines.size() <= watch::kMostTables);
  }
  if (const auto tables = watch::read_table_look(bytes, 2)) require(tables->size() == 2);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(postgres, lockbench::fuzz::read_values)
