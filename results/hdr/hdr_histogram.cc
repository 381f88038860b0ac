#include "results/hdr/hdr_histogram.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <string_view>

#include "results/stats/figures.h"

namespace lockbench::results {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kCookie = 0x1c849313;  ///< version 2, counts of variable length
constexpr std::uint32_t kCompressedCookie = 0x1c849314;

template <class Unsigned>
void append_big_endian(Bytes& out, Unsigned value) {
  for (int shift = static_cast<int>(sizeof(Unsigned)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

/// Zig-zag, then seven bits a byte, low ones first; the ninth byte holds eight.
void append_count(Bytes& out, std::int64_t value) {
  auto left = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (int bytes = 1; bytes < 9 && left >= 0x80; ++bytes) {
    out.push_back(static_cast<std::uint8_t>(left | 0x80));
    left >>= 7;
  }
  out.push_back(static_cast<std::uint8_t>(left));
}

/// A stretch of empty buckets is one negative number.
Bytes packed(const std::vector<std::uint64_t>& counts) {
  Bytes out;
  std::int64_t zeros = 0;
  for (const std::uint64_t count : counts) {
    if (count == 0) {
      ++zeros;
      continue;
    }
    if (zeros > 0) append_count(out, -zeros);
    zeros = 0;
    append_count(out, static_cast<std::int64_t>(count));
  }
  return out;
}

Bytes compressed(const Bytes& plain) {
  uLongf size = compressBound(plain.size());
  Bytes out(size);
  // With a buffer of that size only memory can be lacking.
  if (compress(out.data(), &size, plain.data(), plain.size()) != Z_OK) throw std::bad_alloc();
  out.resize(size);
  return out;
}

std::string base64(const Bytes& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t there = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < there ? bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= there ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return out;
}

std::int64_t nanoseconds(double seconds) {
  const double value = std::isfinite(seconds) ? std::round(seconds * 1e9) : 0;
  return static_cast<std::int64_t>(
      std::clamp(value, 0.0, static_cast<double>(HdrLayout::kHighest)));
}

/// The middle of a bucket: it is as wide as the power of two below it allows for its error.
std::int64_t middle(std::int64_t upper, double relative_error) {
  if (upper <= 0) return 0;
  const auto power = std::bit_floor(static_cast<std::uint64_t>(upper));
  const double error = std::clamp(relative_error, 0.0, 0.5);
  const auto width = static_cast<std::int64_t>(2 * error * static_cast<double>(power));
  return upper - std::max<std::int64_t>(width - 1, 0) / 2;
}

double middle_of(std::size_t index) {
  // As HdrHistogram takes it: rounded up.
  const std::int64_t lowest = HdrLayout::lowest_equivalent(index);
  const std::int64_t width = HdrLayout::highest_equivalent(index) - lowest + 1;
  return static_cast<double>(lowest + (width >> 1));
}

}  // namespace

std::size_t HdrLayout::index(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value) | (kSubBuckets - 1);
  const int bucket = static_cast<int>(std::bit_width(bits)) - (kHalfBits + 1);
  return (static_cast<std::size_t>(bucket) << kHalfBits) +
         static_cast<std::size_t>(value >> bucket);
}

std::int64_t HdrLayout::lowest_equivalent(std::size_t index) {
  const auto at = static_cast<std::int64_t>(index);
  if (at < kSubBuckets) return at;
  const auto bucket = (at >> kHalfBits) - 1;
  return (at - (bucket << kHalfBits)) << bucket;
}

std::int64_t HdrLayout::highest_equivalent(std::size_t index) {
  return lowest_equivalent(index + 1) - 1;
}

int HdrLayout::buckets() {
  int needed = 1;
  for (std::int64_t end = kSubBuckets; end <= kHighest; end *= 2) ++needed;
  return needed;
}

HdrHistogram::HdrHistogram(const Distribution& distribution) {
  const auto buckets = all_buckets(distribution);
  const std::uint64_t overflow = distribution.overflow + distribution.censored.overflow;
  const std::int64_t max = nanoseconds(distribution.max);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    std::uint64_t count = buckets[i].count;
    if (i + 1 == buckets.size() && overflow == 0 && count > 0) {
      add(max, 1);
      --count;
    }
    const std::int64_t upper = nanoseconds(buckets[i].upper);
    add(std::min(middle(upper, distribution.relative_error), max), count);
  }
  add(HdrLayout::kHighest, overflow);
}

void HdrHistogram::add(std::int64_t nanoseconds, std::uint64_t count) {
  if (count == 0) return;
  const std::size_t index = HdrLayout::index(nanoseconds);
  if (counts_.size() <= index) counts_.resize(index + 1);
  counts_[index] += count;
  total_ += count;
}

std::int64_t HdrHistogram::max() const {
  return counts_.empty() ? 0 : HdrLayout::highest_equivalent(counts_.size() - 1);
}

double HdrHistogram::mean() const {
  double sum = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    sum += middle_of(i) * static_cast<double>(counts_[i]);
  }
  return total_ == 0 ? 0 : sum / static_cast<double>(total_);
}

double HdrHistogram::stddev() const {
  const double center = mean();
  double squares = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const double off = middle_of(i) - center;
    squares += off * off * static_cast<double>(counts_[i]);
  }
  return total_ == 0 ? 0 : std::sqrt(squares / static_cast<double>(total_));
}

std::string HdrHistogram::encoded() const {
  const Bytes counts = packed(counts_);
  Bytes plain;
  append_big_endian(plain, kCookie);
  append_big_endian(plain, static_cast<std::uint32_t>(counts.size()));
  append_big_endian(plain, std::uint32_t{0});  // no index is shifted
  append_big_endian(plain, static_cast<std::uint32_t>(HdrLayout::kDigits));
  append_big_endian(plain, static_cast<std::uint64_t>(HdrLayout::kLowest));
  append_big_endian(plain, static_cast<std::uint64_t>(HdrLayout::kHighest));
  append_big_endian(plain, std::bit_cast<std::uint64_t>(1.0));  // unit
  plain.insert(plain.end(), counts.begin(), counts.end());

  const Bytes small = compressed(plain);
  Bytes out;
  append_big_endian(out, kCompressedCookie);
  append_big_endian(out, static_cast<std::uint32_t>(small.size()));
  out.insert(out.end(), small.begin(), small.end());
  return base64(out);
}

}  // namespace lockbench::results
