#include "testbed/servers/zookeeper_snapshot.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>

namespace lockbench::testbed {
namespace {

/// In jute, ZooKeeper's serialization: numbers with their high byte first, texts after their
/// length.
std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text += static_cast<char>(value >> static_cast<unsigned>(shift));
  }
  return text;
}
std::string int32(std::uint32_t value) { return number(value, 4); }
std::string int64(std::uint64_t value) { return number(value, 8); }
std::string text(std::string_view value) {
  return int32(static_cast<std::uint32_t>(value.size())).append(value);
}

/// "user:DIGEST", as DigestAuthenticationProvider makes it: of SHA-1, in base 64.
std::string identity(std::string_view user, std::string_view password) {
  const std::string both = fmt::format("{}:{}", user, password);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  std::size_t size = 0;
  EVP_Q_digest(nullptr, "SHA1", nullptr, both.data(), both.size(), digest.data(), &size);
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> encoded{};
  EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(size));
  return fmt::format("{}:{}", user, reinterpret_cast<const char*>(encoded.data()));
}

/// A node without data and history, with the only ACL there is.
std::string node(std::string_view path) {
  constexpr int kStatSize = 4 * 8 + 3 * 4 + 2 * 8;
  constexpr std::uint64_t kAcl = 1;
  return text(path) + text("") + int64(kAcl) + std::string(kStatSize, '\0');
}

std::uint32_t adler32(std::string_view data) {
  constexpr std::uint32_t kBase = 65'521;
  std::uint32_t low = 1, high = 0;
  for (const char byte : data) {
    low = (low + static_cast<unsigned char>(byte)) % kBase;
    high = (high + low) % kBase;
  }
  return high << 16U | low;
}

}  // namespace

std::string zookeeper_snapshot(std::string_view user, std::string_view password) {
  constexpr std::uint32_t kVersion = 2, kAllRights = 31;
  constexpr std::uint64_t kNoDatabase = ~std::uint64_t{0};
  std::string snapshot = "ZKSN" + int32(kVersion) + int64(kNoDatabase);
  snapshot += int32(0);  // sessions
  // ACLs by their numbers: one, of one entry.
  snapshot += int32(1) + int64(1) + int32(1) + int32(kAllRights) + text("digest") +
              text(identity(user, password));
  for (const char* path : {"", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}) {
    snapshot += node(path);
  }
  snapshot += text("/");
  return snapshot + int64(adler32(snapshot)) + text("/");
}

}  // namespace lockbench::testbed
