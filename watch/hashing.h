#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockbench::watch {

/// A key that nobody knows: without it a hash does not tell what was hashed, not even by trying all
/// likely owners.
struct Salt {
  std::uint64_t low = 0, high = 0;
};
Salt random_salt();

/// SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
std::uint64_t hash_of(std::string_view text, const Salt& salt);

/// The first ten hexadecimal digits, by which people tell owners apart.
std::string shown_hash(std::uint64_t hash);

}  // namespace lockbench::watch
