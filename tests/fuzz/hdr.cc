#include <algorithm>
#include <cmath>
#include <vector>

#include "results/report/charts.h"
#include "results/tables/formats.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

constexpr std::uint64_t kMostCount = std::uint64_t{1} << 53;

/// Takes numbers from the front of the bytes, and zeros at their end.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number(int size) {
    std::uint64_t value = 0;
    for (int i = 0; i < size && !rest_.empty(); ++i) {
      value = value << 8U | static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
    }
    return value;
  }

 private:
  std::string_view rest_;
};

std::vector<results::Distribution::Bucket> buckets_in(Bytes& bytes, std::uint64_t& left) {
  std::vector<results::Distribution::Bucket> buckets;
  double upper = 0;
  for (auto n = bytes.number(1); n > 0; --n) {
    upper += std::ldexp(1, static_cast<int>(bytes.number(1)) - 128);
    const std::uint64_t count = std::min(bytes.number(7), left);
    left -= count;
    buckets.push_back({upper, count});
  }
  return buckets;
}

/// A distribution that a result file could hold.
results::Distribution distribution_in(Bytes& bytes) {
  results::Distribution one;
  one.count = std::min(bytes.number(7), kMostCount);
  one.censored.count = std::min(bytes.number(7), kMostCount);
  one.relative_error = static_cast<double>(bytes.number(1)) / 255;
  one.max = std::ldexp(1, static_cast<int>(bytes.number(1)) - 128);
  std::uint64_t left = one.count, cut_left = one.censored.count;
  one.buckets = buckets_in(bytes, left);
  one.censored.buckets = buckets_in(bytes, cut_left);
  one.overflow = std::min(bytes.number(7), left);
  return one;
}

void write_hdr(std::string_view given) {
  Bytes bytes(given);
  const results::Distribution one = distribution_in(bytes);
  constexpr std::size_t kMostLines = 4096, kLine = 128;
  require(results::to_hgrm(one).size() < kMostLines * kLine);
  static_cast<void>(results::report::percentile_curve(one));
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(hdr, lockbench::fuzz::write_hdr)
