#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace lockbench::watch {

/// Groups locks into families by their names. Immutable and thread-safe; cheap to copy.
class Families {
 public:
  /// The family of locks that no pattern matches, and of those beyond the maximum number of
  /// families.
  static constexpr std::string_view kOther = "other";
  static constexpr std::size_t kLongestPattern = 256, kLongestName = 512;

  /// Without an expression, a lock belongs to the first glob (with * and ?) that matches it.
  /// Without globs, and with one that begins with *, its family is the beginning of its name, up to
  /// the first part with a digit.
  Families() = default;
  explicit Families(std::vector<std::string> globs) : globs_(std::move(globs)) {}
  /// A Perl expression with a group `(?<family>...)`, which names the family; it must match the
  /// whole name, in a bounded number of steps. The error says what is wrong with it.
  static tl::expected<Families, std::string> parse(const std::string& expression);

  /// Never empty and always printable UTF-8, as metric labels must be. Names longer than
  /// kLongestName belong to kOther.
  std::string family_of(std::string_view lock) const;

 private:
  struct Expression;

  std::vector<std::string> globs_;
  std::shared_ptr<const Expression> expression_;
};

/// Whether a pattern with * and ? matches the whole text.
bool glob_matches(std::string_view pattern, std::string_view text);

}  // namespace lockbench::watch
