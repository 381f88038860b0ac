#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockbench::simulate {

/// The items of one memcached server, and the commands of its text protocol that clients send.
/// Answers as memcached 1.6, errors included; a command that it does not know is an error. It has
/// no clock and no connections: the caller passes the server's count of seconds, which begins at
/// kFirstSecond. Not thread-safe.
class MemcachedModel {
 public:
  /// So that a time of 1 s has always passed.
  static constexpr std::int64_t kFirstSecond = 62;

  /// Executes the first command in `input`, which is removed from it. Returns the answer; nothing
  /// if the command is not complete.
  std::optional<std::string> execute(std::string& input, std::int64_t now);

  /// Removes a random item; returns whether there was one.
  bool evict(const std::function<std::uint64_t()>& random);
  /// Of the items that have not expired, in order.
  std::vector<std::string> names(std::int64_t now) const;

 private:
  using Words = std::span<const std::string_view>;
  struct Item {
    std::string value;
    std::uint32_t flags = 0;
    std::int64_t expires = 0;   ///< 0: never
    std::uint64_t version = 0;  ///< "cas unique"

    bool lives(std::int64_t now) const { return expires == 0 || expires > now; }
  };

  Item* find(std::string_view key, std::int64_t now);
  /// `input` begins with the item's bytes.
  std::optional<std::string> store(Words words, std::string_view input, std::size_t& used,
                                   std::int64_t now);
  std::string get(Words words, std::int64_t now);
  std::string remove(Words words, std::int64_t now);
  std::string touch(Words words, std::int64_t now);

  std::map<std::string, Item, std::less<>> items_;
  std::uint64_t versions_ = 0;
};

}  // namespace lockbench::simulate
