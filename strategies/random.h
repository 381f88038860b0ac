#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <random>

namespace lockbench {

/// 64 random bits per call: xoroshiro128++ by Blackman and Vigna, seeded by SplitMix64. Only 16
/// bytes, as each client has several (std::mt19937_64 has 2.5 KB). A standard random bit generator;
/// one seed gives the same numbers everywhere. Not for secrets.
class Random {
 public:
  using result_type = std::uint64_t;

  /// Streams of one seed are independent: one for each client.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) {
    std::uint64_t mixed = split(seed) + stream;
    low_ = split(mixed);
    high_ = split(mixed);
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  result_type operator()() {
    const std::uint64_t result = std::rotl(low_ + high_, 17) + low_;
    const std::uint64_t mixed = high_ ^ low_;
    low_ = std::rotl(low_, 49) ^ mixed ^ (mixed << 21);
    high_ = std::rotl(mixed, 28);
    return result;
  }

 private:
  static std::uint64_t split(std::uint64_t& state) {
    std::uint64_t bits = state += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  // Never both zero: SplitMix64 maps different states to different numbers.
  std::uint64_t low_ = 0, high_ = 0;
};

/// A seed that no other process has. std::random_device gives 32 bits a call: of so many seeds, a
/// hundred thousand processes would have two that are equal, whose clients draw the same tokens.
inline std::uint64_t random_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace lockbench
