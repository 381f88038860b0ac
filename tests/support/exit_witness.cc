// Loaded into lockbench by LD_PRELOAD: a static destructor that cannot be missed.
#include <cstdlib>

namespace {

struct Witness {
  Witness() = default;
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { std::abort(); }
};
const Witness witness;

}  // namespace
