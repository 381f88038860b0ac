// Preloaded into one server process: resolves the names in LOCKBENCH_HOSTS ("ADDRESS NAME", one per
// line) to those addresses, and redirects a connection to "IPV4:PORT" to the address listed for it.
// /etc/hosts and a firewall would affect all processes of the machine.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kLongest = 64;

/// Copies the name's address and returns it; null if the name is not listed.
const char* address_of(const char* name, char (&address)[kLongest]) {
  const char* line = std::getenv("LOCKBENCH_HOSTS");
  while (line != nullptr && *line != '\0') {
    const std::size_t length = std::strcspn(line, "\n");
    const std::size_t end = std::strcspn(line, " \n");
    const bool fits = end + 1 < length && end < kLongest;
    if (fits && std::strlen(name) == length - end - 1 &&
        std::strncmp(line + end + 1, name, length - end - 1) == 0) {
      std::memcpy(address, line, end);
      address[end] = '\0';
      return address;
    }
    line += length;
    if (*line == '\n') ++line;
  }
  return nullptr;
}

/// The IPv4 address in it, also in IPv6 form (::ffff:a.b.c.d), and the port; null if it has none.
in_addr* ipv4_of(sockaddr_storage& to, in_port_t& port) {
  if (to.ss_family == AF_INET) {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(to);
    port = ipv4.sin_port;
    return &ipv4.sin_addr;
  }
  if (to.ss_family != AF_INET6) return nullptr;
  auto& ipv6 = reinterpret_cast<sockaddr_in6&>(to);
  if (!IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) return nullptr;
  port = ipv6.sin6_port;
  return reinterpret_cast<in_addr*>(&ipv6.sin6_addr.s6_addr[12]);
}

void lead_elsewhere(sockaddr_storage& to) {
  in_port_t port = 0;
  in_addr* const ip = ipv4_of(to, port);
  char name[kLongest], address[kLongest];  // NOLINT: there is no C++ run time
  if (ip == nullptr || inet_ntop(AF_INET, ip, name, sizeof name) == nullptr) return;
  const std::size_t length = std::strlen(name);
  std::snprintf(name + length, sizeof name - length, ":%d", ntohs(port));
  if (address_of(name, address) != nullptr) inet_pton(AF_INET, address, ip);
}

}  // namespace

// The C library's names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" __attribute__((visibility("default"))) int connect(int socket, const sockaddr* to,
                                                              socklen_t size) {
  const auto real = reinterpret_cast<decltype(&connect)>(dlsym(RTLD_NEXT, "connect"));
  sockaddr_storage copy;
  if (to == nullptr || size > sizeof copy) return real(socket, to, size);
  std::memcpy(&copy, to, size);
  if (size >= sizeof(sockaddr_in)) lead_elsewhere(copy);
  return real(socket, reinterpret_cast<const sockaddr*>(&copy), size);
}

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** result) {
  const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  char address[kLongest];  // NOLINT: there is no C++ run time
  const char* const listed = node == nullptr ? nullptr : address_of(node, address);
  return real(listed == nullptr ? node : listed, service, hints, result);
}
// NOLINTEND(readability-identifier-naming)
