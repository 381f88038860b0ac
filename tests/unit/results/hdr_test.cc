#include "results/hdr/hdr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <sstream>
#include <stdexcept>

#include "results/hdr/hdr_histogram.h"

namespace lockbench::results {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

/// A reader of version 2 written from the format's description, not from the writer.
class Decoder {
 public:
  explicit Decoder(const std::string& base64) {
    bytes_ = plain(base64);
    if (number(4) != 0x1c849314) throw std::runtime_error("cookie of the compressed");
    const std::uint64_t length = number(4);
    if (length != bytes_.size() - 8) throw std::runtime_error("length of the compressed");
    std::vector<unsigned char> inflated(1 << 20);
    uLongf size = inflated.size();
    if (uncompress(inflated.data(), &size, bytes_.data() + 8, length) != Z_OK) {
      throw std::runtime_error("zlib");
    }
    inflated.resize(size);
    bytes_ = inflated;
    at_ = 0;
    if (number(4) != 0x1c849313) throw std::runtime_error("cookie");
    if (number(4) != bytes_.size() - 40) throw std::runtime_error("length");
    shift = number(4);
    digits = number(4);
    lowest = number(8);
    highest = number(8);
    ratio = std::bit_cast<double>(number(8));
    read_counts();
  }

  std::uint64_t shift, digits, lowest, highest;
  double ratio;
  std::map<std::int64_t, std::uint64_t> counts;  ///< by the lowest value of their bucket

 private:
  static std::vector<unsigned char> plain(const std::string& base64) {
    std::vector<unsigned char> out;
    unsigned group = 0;
    int bits = 0;
    for (const char c : base64) {
      const std::size_t digit =
          std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
              .find(c);
      if (digit == std::string_view::npos) break;
      group = group << 6 | static_cast<unsigned>(digit);
      bits += 6;
      if (bits >= 8) out.push_back(static_cast<unsigned char>(group >> (bits -= 8)));
    }
    return out;
  }

  std::uint64_t number(int size) {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) value = value << 8 | bytes_.at(at_++);
    return value;
  }

  std::int64_t zigzag() {
    std::uint64_t value = 0;
    for (int shift_by = 0; shift_by < 63; shift_by += 7) {
      const std::uint64_t byte = bytes_.at(at_++);
      if (shift_by == 56) {
        value |= byte << shift_by;
        break;
      }
      value |= (byte & 127) << shift_by;
      if (byte < 128) break;
    }
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

  /// 2,048 buckets of 1 ns, then 1,024 of 2 ns, 1,024 of 4 ns, ...
  void read_counts() {
    std::int64_t index = 0;
    while (at_ < bytes_.size()) {
      const std::int64_t value = zigzag();
      if (value <= 0) {
        index -= value;
        continue;
      }
      std::int64_t low = index;
      for (std::int64_t width = 2, first = 2048; index >= first; first += 1024, width *= 2) {
        low = 1024 * width + (index - first) * width;
      }
      counts[low] = static_cast<std::uint64_t>(value);
      ++index;
    }
  }

  std::vector<unsigned char> bytes_;
  std::size_t at_ = 0;
};

/// 900 samples about 10 µs, 99 about 1 ms, the largest 1.1 ms.
Distribution sample() {
  return {.count = 1000,
          .min = 9e-6,
          .max = 1.1e-3,
          .relative_error = 1.0 / 128,
          .buckets = {{1e-7, 3}, {10.111e-6, 897}, {1.015807e-3, 98}, {1.11411e-3, 2}}};
}

TEST(Hgrm, OfMoreSamplesThanADoubleTellsApartEnds) {
  const std::uint64_t count = std::uint64_t{1} << 53;
  const Distribution huge{.count = count, .max = 2, .buckets = {{1, count - 1}, {2, 1}}};
  const std::string text = to_hgrm(huge);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 400);
  EXPECT_THAT(text, HasSubstr("Total count    = 9007199254740992"));
}

TEST(HdrHistogram, IsReadByAnotherReader) {
  const Decoder decoded(HdrHistogram(sample()).encoded());
  EXPECT_EQ(decoded.digits, 3U);
  EXPECT_EQ(decoded.lowest, 1U);
  EXPECT_EQ(decoded.highest, 3'600'000'000'000U);
  EXPECT_EQ(decoded.shift, 0U);
  EXPECT_EQ(decoded.ratio, 1);
  // Middles of the buckets: 128 ns wide at 10 µs, 8,192 ns and 16,384 ns wide at 1 ms.
  EXPECT_THAT(decoded.counts, ElementsAre(Pair(100, 3), Pair(10'048, 897), Pair(1'011'712, 98),
                                          Pair(1'099'776, 2)));
}

TEST(HdrHistogram, CountsOfAnySizeAreKept) {
  Distribution distribution;
  for (int power = 0; power < 62; ++power) {
    distribution.buckets.push_back({(100 + 2 * power) * 1e-9, 1ULL << power});
  }
  distribution.buckets.push_back({2e-6, 1});
  distribution.max = 2e-6;
  const Decoder decoded(HdrHistogram(distribution).encoded());
  for (int power = 0; power < 62; ++power) {
    EXPECT_EQ(decoded.counts.at(100 + 2 * power), 1ULL << power);
  }
}

TEST(HdrHistogram, NothingAndOverflow) {
  EXPECT_TRUE(Decoder(HdrHistogram(Distribution{}).encoded()).counts.empty());
  Distribution distribution = sample();
  distribution.overflow = 5;
  distribution.max = 9000;
  const HdrHistogram histogram(distribution);
  EXPECT_EQ(histogram.total(), 1005U);
  EXPECT_NEAR(static_cast<double>(histogram.max()), 3.6e12, 3.6e9);
}

TEST(HdrHistogram, EveryIndexLeadsBack) {
  for (std::int64_t value :
       {0L, 1L, 1023L, 1024L, 2047L, 2048L, 4095L, 4096L, 123'456'789L, 3'600'000'000'000L}) {
    const std::size_t index = HdrLayout::index(value);
    EXPECT_LE(HdrLayout::lowest_equivalent(index), value);
    EXPECT_GE(HdrLayout::highest_equivalent(index), value);
    EXPECT_LE(HdrLayout::highest_equivalent(index) - HdrLayout::lowest_equivalent(index),
              value / 1000);
  }
}

TEST(HdrHistogram, HostileDistributionsDoNoHarm) {
  Distribution distribution = sample();
  distribution.relative_error = -1e300;
  distribution.buckets = {{-1, 1}, {1e300, 2}, {0, 3}};
  distribution.max = -5;
  EXPECT_NO_THROW(to_hgrm(distribution));
  EXPECT_EQ(HdrHistogram(distribution).total(), 6U);
}

TEST(Hgrm, HasTheLayoutOfHdrHistogramsTools) {
  const std::string text = to_hgrm(sample());
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "       Value     Percentile TotalCount 1/(1-Percentile)");
  std::getline(lines, line);
  EXPECT_EQ(line, "");
  std::getline(lines, line);
  EXPECT_EQ(line, "       0.100 0.000000000000          3           1.00");
  EXPECT_THAT(text, HasSubstr("      10.055 0.500000000000        900           2.00\n"));
  EXPECT_THAT(text, HasSubstr("\n    1100.799 1.000000000000       1000\n#[Mean    = "));
  EXPECT_THAT(text, HasSubstr("#[Max     =     1100.799, Total count    =         1000]\n"
                              "#[Buckets =           32, SubBuckets     =         2048]\n"));
}

TEST(HdrHistogram, HasWhatWasCutOffToo) {
  Distribution distribution{.count = 9, .max = 5, .buckets = {{1, 9}}};
  distribution.censored = {.count = 1, .buckets = {{5, 1}}};
  const std::string text = to_hgrm(distribution);
  EXPECT_THAT(text, HasSubstr("Total count    =           10]"));
  EXPECT_THAT(text, HasSubstr(" 0.900000000000          9"));
}

TEST(Hgrm, OfNothingHasNoLines) {
  EXPECT_THAT(to_hgrm({}), HasSubstr("1/(1-Percentile)\n\n#[Mean    =        0.000"));
}

TEST(Hlog, HasALineForEachInterval) {
  const Distribution distribution = sample();
  const std::array intervals{HdrInterval{"acquire", 0, 3, distribution},
                             HdrInterval{"hold", 3, 2.5, distribution}};
  const std::string text = to_hlog(1'700'000'000, intervals);
  EXPECT_THAT(text, HasSubstr("#[Histogram log format version 1.3]\n"));
  EXPECT_THAT(text, HasSubstr("#[StartTime: 1700000000.000 (seconds since epoch)"));
  EXPECT_THAT(text, HasSubstr("\nTag=acquire,0.000,3.000,1.101,HISTFAAAA"));
  EXPECT_THAT(text, HasSubstr("\nTag=hold,3.000,2.500,1.101,HISTFAAAA"));
}

}  // namespace
}  // namespace lockbench::results
