#pragma once

#include <bit>
#include <boost/pfr/core.hpp>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "strategies/duration.h"

namespace lockbench::loadgen::cluster {

// The form in which ranks send each other structs: member by member, and whole numbers in as few
// bytes as they need. Only ranks of the same build talk, so there are no versions.

/// Its members are private, and thing.parts(visit) calls visit(member, member...).
template <class T>
concept HasParts = requires(T& thing) {
  thing.parts(0);
};

class Writer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(out_); }

 private:
  void put_number(std::uint64_t value) {
    constexpr std::uint64_t kMore = 0x80;
    for (; value >= kMore; value >>= 7) out_.push_back(static_cast<char>(value | kMore));
    out_.push_back(static_cast<char>(value));
  }
  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void put(const T& value) {
    // Small negative numbers become small ones, too.
    const auto whole = static_cast<std::int64_t>(value);
    put_number((static_cast<std::uint64_t>(whole) << 1) ^ static_cast<std::uint64_t>(whole >> 63));
  }
  void put(double value) { put_number(std::bit_cast<std::uint64_t>(value)); }
  void put(const Duration& value) { put(value.count()); }
  void put(const TimePoint& value) { put(value.time_since_epoch().count()); }
  void put(const std::string& text) {
    put_number(text.size());
    out_.append(text);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put_number(values.size());
    for (const T& value : values) put(value);
  }
  template <class Key, class Value, class Less>
  void put(const std::map<Key, Value, Less>& values) {
    put_number(values.size());
    for (const auto& [key, value] : values) (*this)(key, value);
  }
  template <class First, class Second>
  void put(const std::pair<First, Second>& both) {
    (*this)(both.first, both.second);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  requires std::is_aggregate_v<T>
  void put(const T& thing) {
    boost::pfr::for_each_field(thing, [this](const auto& member) { this->put(member); });
  }
  template <HasParts T>
  void put(const T& thing) {
    // Which only reads it.
    const_cast<T&>(thing).parts([this](const auto&... part) { (this->put(part), ...); });
  }

  std::string out_;
};

/// Whatever the bytes are, reading ends and takes no more memory than they justify.
class Reader {
 public:
  /// `bytes` must outlive it.
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  /// All bytes were read, and they were as expected.
  bool done() const { return !failed_ && rest_.empty(); }

 private:
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  /// Each element takes at least a byte.
  std::size_t size() {
    const std::uint64_t elements = number();
    if (elements <= rest_.size()) return static_cast<std::size_t>(elements);
    failed_ = true;
    return 0;
  }
  template <class T>
  requires std::integral<T> || std::is_enum_v<T>
  void get(T& value) {
    const std::uint64_t coded = number();
    value = static_cast<T>(static_cast<std::int64_t>((coded >> 1) ^ (~(coded & 1) + 1)));
  }
  void get(double& value) { value = std::bit_cast<double>(number()); }
  void get(Duration& value) {
    Duration::rep count = 0;
    get(count);
    value = Duration(count);
  }
  void get(TimePoint& value) {
    Duration since{};
    get(since);
    value = TimePoint(since);
  }
  void get(std::string& text) {
    const std::size_t length = size();
    text.assign(rest_.substr(0, length));
    rest_.remove_prefix(length);
  }
  template <class T>
  void get(std::vector<T>& values) {
    values.clear();
    for (std::size_t left = size(); left > 0 && !failed_; --left) get(values.emplace_back());
  }
  template <class Key, class Value, class Less>
  void get(std::map<Key, Value, Less>& values) {
    values.clear();
    for (std::size_t left = size(); left > 0 && !failed_; --left) {
      Key key{};
      get(key);
      get(values[key]);
    }
  }
  template <class First, class Second>
  void get(std::pair<First, Second>& both) {
    get(both.first);
    get(both.second);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    value.reset();
    if (there) get(value.emplace());
  }
  template <class T>
  requires std::is_aggregate_v<T>
  void get(T& thing) {
    boost::pfr::for_each_field(thing, [this](auto& member) { this->get(member); });
  }
  template <HasParts T>
  void get(T& thing) {
    thing.parts([this](auto&... part) { (this->get(part), ...); });
  }

  std::string_view rest_;
  bool failed_ = false;
};

template <class T>
std::string to_bytes(const T& value) {
  Writer writer;
  writer(value);
  return writer.take();
}

/// False: the bytes are not those of such a value.
template <class T>
bool from_bytes(std::string_view bytes, T& value) {
  Reader reader(bytes);
  reader(value);
  return reader.done();
}

}  // namespace lockbench::loadgen::cluster
