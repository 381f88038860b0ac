#include "testbed/servers/authority.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <utility>

#include "testbed/failure.h"
#include "testbed/servers/testbed.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;

constexpr long kDay = 24L * 60 * 60;
/// A run may last for weeks, and the clock of a client may be behind.
constexpr long kFrom = -kDay, kUntil = 366 * kDay;
/// The wildcard: members of a Mesh.
constexpr const char* kLoopback = "DNS:localhost,DNS:*.lockbench,IP:127.0.0.1,IP:::1";
constexpr const char* kElsewhere = "DNS:elsewhere.invalid";

/// The contents of a certificate, without its key.
struct Contents {
  std::string name;
  long from = kFrom, until = kUntil;  ///< seconds from now
  /// By the number of the extension's kind.
  std::vector<std::pair<int, const char*>> extensions{};
};

/// So large that it never repeats: authorities with the same name would be indistinguishable.
std::uint64_t random_number() {
  std::random_device random;
  return std::uniform_int_distribution<std::uint64_t>(1, INT64_MAX)(random);
}

bool add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

/// `issuer` null: self-signed. Returns null if OpenSSL fails, as without memory.
std::shared_ptr<X509> sign(const Contents& contents, EVP_PKEY* key, const X509* issuer,
                           EVP_PKEY* issuers_key) {
  const std::shared_ptr<X509> owned(X509_new(), X509_free);
  X509* const made = owned.get();
  const auto* const name = reinterpret_cast<const unsigned char*>(contents.name.c_str());
  X509_NAME* const subject = made == nullptr ? nullptr : X509_get_subject_name(made);
  bool good = subject != nullptr && X509_set_version(made, X509_VERSION_3) == 1 &&
              ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), random_number()) == 1 &&
              X509_gmtime_adj(X509_getm_notBefore(made), contents.from) != nullptr &&
              X509_gmtime_adj(X509_getm_notAfter(made), contents.until) != nullptr &&
              X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0) == 1 &&
              X509_set_issuer_name(
                  made, issuer == nullptr ? subject : X509_get_subject_name(issuer)) == 1 &&
              X509_set_pubkey(made, key) == 1;
  for (const auto& [kind, value] : contents.extensions) {
    good = good && add_extension(made, kind, value);
  }
  return good && X509_sign(made, issuers_key, EVP_sha256()) > 0 ? owned : nullptr;
}

/// Writes the output of `write` to a file.
void write_pem(const fs::path& path, const Account& account,
               const std::function<int(BIO*)>& write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  std::string text;
  if (memory != nullptr && write(memory) == 1) {
    text.resize(static_cast<std::size_t>(BIO_pending(memory)));
    BIO_read(memory, text.data(), static_cast<int>(text.size()));
  }
  BIO_free(memory);
  if (text.empty()) throw Failure(fmt::format("OpenSSL cannot write {}", path.string()));
  need(account.write_file(path, text));
}

void write_certificate(const fs::path& path, const Account& account, const X509* certificate) {
  write_pem(path, account, [&](BIO* memory) { return PEM_write_bio_X509(memory, certificate); });
}

std::shared_ptr<EVP_PKEY> make_key() {
  return {EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), EVP_PKEY_free};
}

constexpr const char* kNoCertificate = "OpenSSL cannot make a certificate";

}  // namespace

std::string TlsFiles::query(std::string_view before) const {
  std::string text(before);
  for (const char c : ca.string()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || c == '/' || c == '-' || c == '_' || c == '.';
    text += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return text;
}

tl::expected<std::unique_ptr<Authority>, std::string> Authority::make(fs::path folder,
                                                                      Account account) {
  std::unique_ptr<Authority> made(new Authority(std::move(folder), std::move(account)));
  made->key_ = make_key();
  const Contents contents{.name = fmt::format("lockbench {:016x}", random_number()),
                          .extensions = {{NID_basic_constraints, "critical,CA:TRUE"},
                                         {NID_key_usage, "critical,keyCertSign,cRLSign"}}};
  if (made->key_) {
    made->certificate_ = sign(contents, made->key_.get(), nullptr, made->key_.get());
  }
  return attempt([&] {
    if (!made->certificate_) throw Failure(kNoCertificate);
    const fs::path& its = made->folder_;
    if (mkdir(its.c_str(), 0700) != 0) {
      throw Failure(fmt::format("cannot make {}: {}", its.string(), std::strerror(errno)));
    }
    need(made->account_.own(its));
    write_certificate(made->ca(), made->account_, made->certificate_.get());
    return std::move(made);
  });
}

tl::expected<TlsFiles, std::string> Authority::issue(std::string_view name, Flaw flaw) const {
  Contents contents{
      .name = fmt::format("lockbench {}", name),
      .extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                     {NID_ext_key_usage, "serverAuth,clientAuth"},
                     {NID_subject_alt_name, flaw == Flaw::wrong_name ? kElsewhere : kLoopback}}};
  if (flaw == Flaw::expired) {
    contents.from = -2 * kDay;
    contents.until = -kDay;
  }
  return attempt([&] {
    const std::shared_ptr<EVP_PKEY> key = make_key();
    if (!key) throw Failure(kNoCertificate);
    const bool alone = flaw == Flaw::self_signed;
    const auto certificate = sign(contents, key.get(), alone ? nullptr : certificate_.get(),
                                  alone ? key.get() : key_.get());
    if (!certificate) throw Failure(kNoCertificate);
    TlsFiles files{.ca = ca(),
                   .certificate = folder_ / fmt::format("{}.pem", name),
                   .key = folder_ / fmt::format("{}.key", name)};
    write_certificate(files.certificate, account_, certificate.get());
    write_pem(files.key, account_, [&](BIO* memory) {
      return PEM_write_bio_PrivateKey(memory, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    return files;
  });
}

tl::expected<std::vector<TlsFiles>, std::string> certify_members(Testbed& testbed,
                                                                 std::string_view what,
                                                                 std::size_t count) {
  return attempt([&] {
    const fs::path folder = need(testbed.make_server_folder(what)) / "authority";
    const auto authority = need(Authority::make(folder, testbed.account()));
    std::vector<TlsFiles> all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(need(authority->issue(fmt::format("member-{}", i + 1))));
    }
    return all;
  });
}

}  // namespace lockbench::testbed
