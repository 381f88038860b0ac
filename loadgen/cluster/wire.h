#pragma once

#include <array>
#include <bit>
#include <boost/pfr/core.hpp>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "loadgen/record/histogram.h"
#include "strategies/duration.h"

namespace lockbench::loadgen::cluster {

// The form in which processes of one build send each other structs, so without versions: member by
// member, and whole numbers in as few bytes as they need.

/// Its members are private, and thing.parts(visit) calls visit(member, member...).
template <class T>
concept HasParts = requires(T& thing) {
  thing.parts(0);
};

/// Writes values without changing them, or reads them. From any bytes, reading ends and takes no
/// more memory than they justify.
template <bool kReads>
class Wire {
 public:
  Wire() = default;
  /// To read these bytes, which must outlive it.
  explicit Wire(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void pass(T& value) {
    // Zigzag: small negative numbers become small ones, too.
    const auto whole = static_cast<std::int64_t>(value);
    std::uint64_t coded =
        (static_cast<std::uint64_t>(whole) << 1) ^ static_cast<std::uint64_t>(whole >> 63);
    number(coded);
    if (kReads)
      value = static_cast<T>(static_cast<std::int64_t>((coded >> 1) ^ (~(coded & 1) + 1)));
  }
  void pass(double& value) {
    auto bits = std::bit_cast<std::uint64_t>(value);
    number(bits);
    value = std::bit_cast<double>(bits);
  }
  void pass(Duration& value) {
    Duration::rep count = value.count();
    pass(count);
    value = Duration(count);
  }
  void pass(TimePoint& value) {
    Duration since = value.time_since_epoch();
    pass(since);
    value = TimePoint(since);
  }
  void pass(std::string& text) {
    const std::size_t length = size(text.size());
    if (kReads) {
      text.assign(rest_.substr(0, length));
      rest_.remove_prefix(length);
    } else {
      out_.append(text);
    }
  }
  template <class T>
  void pass(std::vector<T>& values) {
    std::size_t left = size(values.size());
    if (kReads) {
      values.clear();
      for (; left > 0 && !failed_; --left) pass(values.emplace_back());
    } else {
      for (T& value : values) pass(value);
    }
  }
  template <class T, std::size_t N>
  void pass(std::array<T, N>& values) {
    for (T& value : values) pass(value);
  }
  template <class Key, class Value, class Less>
  void pass(std::map<Key, Value, Less>& values) {
    std::vector<std::pair<Key, Value>> all(values.begin(), values.end());
    pass(all);
    if (kReads) values = {all.begin(), all.end()};
  }
  template <class First, class Second>
  void pass(std::pair<First, Second>& both) {
    pass(both.first);
    pass(both.second);
  }
  template <class T>
  void pass(std::optional<T>& value) {
    bool there = value.has_value();
    pass(there);
    if (kReads) value.reset();
    if (there) pass(kReads ? value.emplace() : *value);
  }
  /// Only the filled buckets, with their indices. Reads into an empty snapshot.
  void pass(HistogramSnapshot& samples) {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> filled;
    for (std::uint32_t at = 0; !kReads && at < kHistogramBuckets; ++at) {
      if (samples.buckets[at] > 0) filled.emplace_back(at, samples.buckets[at]);
    }
    pass(filled);
    for (const auto& [at, count] : filled) {
      if (kReads && at < kHistogramBuckets) samples.buckets[at] = count;
    }
    pass(samples.overflow);
    for (Duration* figure : {&samples.sum, &samples.min, &samples.max}) pass(*figure);
  }
  template <class T>
  requires(std::is_aggregate_v<T> && !HasParts<T>) void pass(T& thing) {
    boost::pfr::for_each_field(thing, [this](auto& member) { this->pass(member); });
  }
  template <HasParts T>
  void pass(T& thing) {
    thing.parts([this](auto&... part) { (this->pass(part), ...); });
  }

  std::string take() { return std::move(out_); }
  /// True if all bytes were read and were as expected.
  bool done() const { return !failed_ && rest_.empty(); }

 private:
  void number(std::uint64_t& value) {
    constexpr std::uint64_t kMore = 0x80;
    if (!kReads) {
      std::uint64_t rest = value;
      for (; rest >= kMore; rest >>= 7) out_.push_back(static_cast<char>(rest | kMore));
      return out_.push_back(static_cast<char>(rest));
    }
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < kMore) return;
    }
    failed_ = true;
    value = 0;
  }
  /// The size of a text or list, whose elements take at least a byte each.
  std::size_t size(std::uint64_t elements) {
    number(elements);
    if (!kReads || elements <= rest_.size()) return static_cast<std::size_t>(elements);
    failed_ = true;
    return 0;
  }

  std::string out_;
  std::string_view rest_;
  bool failed_ = false;
};

template <class T>
std::string to_bytes(const T& value) {
  Wire<false> wire;
  wire.pass(const_cast<T&>(value));  // NOLINT(cppcoreguidelines-pro-type-const-cast): not changed
  return wire.take();
}

/// False: the bytes are not those of such a value.
template <class T>
bool from_bytes(std::string_view bytes, T& value) {
  Wire<true> wire(bytes);
  wire.pass(value);
  return wire.done();
}

}  // namespace lockbench::loadgen::cluster
