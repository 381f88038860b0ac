#include "strategies/postgres/client/answers.h"
#include "tests/fuzz/target.h"

// What our code reads of an answer. libpq reads the protocol itself.

namespace lockbench::fuzz {
namespace {

void read_values(std::string_view bytes) {
  if (const auto number = postgres::read_number(bytes)) {
    require(postgres::read_number(std::to_string(*number)) == number);
  }
  static_cast<void>(postgres::read_flag(bytes));
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(postgres, lockbench::fuzz::read_values)
