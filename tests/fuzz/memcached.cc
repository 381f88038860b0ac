#include "strategies/memcached/client/connection.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

template <class T>
void check(const memcached::ParseResult<T>& read, std::string_view bytes) {
  if (!read) {
    for (const char c : read.error().why) require(static_cast<unsigned char>(c) >= ' ');
  } else if (*read) {
    require((*read)->size > 0 && (*read)->size <= bytes.size());
  }
}

void read_replies(std::string_view bytes) {
  for (const memcached::Choice& choice :
       {memcached::Choice{.yes = "STORED", .no = "NOT_STORED"},
        memcached::Choice{.yes = "STORED", .no = "EXISTS", .or_no = "NOT_FOUND"},
        memcached::Choice{.yes = "DELETED", .no = "NOT_FOUND"}}) {
    check(memcached::parse_choice(bytes, choice), bytes);
  }
  check(memcached::parse_item(bytes, "lockbench:key"), bytes);
  check(memcached::parse_version(bytes), bytes);
  check(memcached::parse_stats(bytes), bytes);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(memcached, lockbench::fuzz::read_replies)
