#include "watch/hashing.h"

#include <fmt/format.h>

#include <bit>
#include <random>

namespace lockbench::watch {
namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void take(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

/// Up to eight bytes, the first one lowest.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

Salt random_salt() {
  std::random_device random;
  const auto word = [&] { return std::uint64_t{random()} << 32 | random(); };
  return {word(), word()};
}

std::uint64_t hash_of(std::string_view text, const Salt& salt) {
  SipState state{salt.low ^ 0x736f6d6570736575ULL, salt.high ^ 0x646f72616e646f6dULL,
                 salt.low ^ 0x6c7967656e657261ULL, salt.high ^ 0x7465646279746573ULL};
  const std::uint64_t length = std::uint64_t{text.size() & 0xff} << 56;
  for (; text.size() >= 8; text.remove_prefix(8)) state.take(word_of(text.substr(0, 8)));
  state.take(length | word_of(text));
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

std::string shown_hash(std::uint64_t hash) { return fmt::format("{:010x}", hash >> 24); }

}  // namespace lockbench::watch
