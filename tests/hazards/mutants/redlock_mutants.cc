// Redlocks with one defect that declare what a correct one does. They register themselves in
// the programs that they are linked into.

#include "tests/hazards/mutants/around.h"
#include "tests/support/plain_redlock.h"

namespace lockbench::redis {
namespace {

using Flaws = test::RedlockFlaws;

template <Flaws kFlaws>
Descriptor described(std::string_view name) {
  return with_known_hazards(
      mutant(name, "redis", redlock_traits(), construct<test::PlainRedlock<kFlaws>>));
}

const Registration sound(described<Flaws{}>("test-redlock"));
const Registration minority(described<Flaws{.minority_wins = true}>("test-redlock-minority"));
const Registration late(described<Flaws{.ignores_validity = true}>("test-redlock-late"));
const Registration unanimous(described<Flaws{.unanimous = true}>("test-redlock-unanimous"));
const Registration hoarding(described<Flaws{.hoards = true}>("test-redlock-hoarding"));

}  // namespace
}  // namespace lockbench::redis
