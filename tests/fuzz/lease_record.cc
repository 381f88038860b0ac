#include "strategies/observed_lease.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

/// What is read is written so that it is read again.
void read_record(std::string_view bytes) {
  const auto record = parse_record(bytes);
  if (!record) return;
  require(record->duration > Duration::zero() && record->duration <= kLongestDuration);
  const auto again = parse_record(to_text(*record));
  require(again && again->duration == record->duration && again->renewals == record->renewals &&
          again->transitions == record->transitions);
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(lease_record, lockbench::fuzz::read_record)
