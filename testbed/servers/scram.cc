#include "testbed/servers/scram.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>

namespace lockbench::testbed {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest keyed(const Digest& key, std::string_view text) {
  Digest result{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), result.data(), nullptr);
  return result;
}

template <class Bytes>
std::string base64(const Bytes& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

}  // namespace

std::string scram_verifier(std::string_view secret) {
  constexpr int kIterations = 1;
  // The secret is random already: no two runs share it.
  constexpr std::array<unsigned char, 16> kSalt{};
  Digest salted{};
  PKCS5_PBKDF2_HMAC(secret.data(), static_cast<int>(secret.size()), kSalt.data(),
                    static_cast<int>(kSalt.size()), kIterations, EVP_sha256(),
                    static_cast<int>(salted.size()), salted.data());
  const Digest client = keyed(salted, "Client Key"), server = keyed(salted, "Server Key");
  Digest stored{};
  SHA256(client.data(), client.size(), stored.data());
  return fmt::format("SCRAM-SHA-256${}:{}${}:{}", kIterations, base64(kSalt), base64(stored),
                     base64(server));
}

}  // namespace lockbench::testbed
