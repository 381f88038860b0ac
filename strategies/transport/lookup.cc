#include "strategies/transport/lookup.h"

#include <fmt/format.h>
#include <netdb.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <map>
#include <system_error>
#include <thread>

#include "strategies/carrier.h"

namespace lockbench {
namespace {

// Of one name; further ones are not worth a timeout each.
constexpr std::size_t kMaxAddresses = 8;

PeerAddresses addresses_of(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (failure != 0) {
    return tl::unexpected(fmt::format("its name cannot be looked up: {}",
                                      failure == EAI_SYSTEM
                                          ? std::system_category().message(errno)
                                          : std::string(::gai_strerror(failure))));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  std::vector<PeerAddress> addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    PeerAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    if (addresses.size() == kMaxAddresses) break;
  }
  return addresses;
}

/// The look-ups under way, so that each host takes at most one thread.
struct Board {
  std::mutex mutex;
  std::map<std::pair<std::string, int>, std::shared_ptr<Lookup>> under_way;
};

/// Never destroyed: a thread whose resolver hangs may outlive main().
Board& board() {
  static Board& one = *new Board;
  return one;
}

void run(const Resolver& resolver, const std::pair<std::string, int>& place) {
  PeerAddresses addresses;
  try {
    addresses = resolver(place.first, place.second);
  } catch (const std::exception& failure) {
    addresses = tl::unexpected(fmt::format("its name cannot be looked up: {}", failure.what()));
  }
  std::shared_ptr<Lookup> lookup;
  {
    const std::scoped_lock lock(board().mutex);
    lookup = std::move(board().under_way.extract(place).mapped());
  }
  lookup->finish(std::move(addresses));
}

}  // namespace

std::string PeerAddress::display() const {
  std::array<char, NI_MAXHOST> text{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the API of sockets
  const auto* const address = reinterpret_cast<const sockaddr*>(&storage);
  const int failure =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failure == 0 ? text.data() : "?";
}

std::optional<PeerAddresses> Lookup::get(Duration longest, const std::stop_token& stop) {
  Carrier& carrier = Carrier::current();
  std::unique_ptr<Event> done;
  {
    const std::scoped_lock lock(mutex_);
    if (addresses_ || longest <= Duration::zero()) return addresses_;
    done = carrier.make_event();
    waiting_.push_back(done.get());
  }
  carrier.wait(done.get(), carrier.now() + longest, stop);
  const std::scoped_lock lock(mutex_);
  std::erase(waiting_, done.get());
  return addresses_;
}

void Lookup::finish(PeerAddresses addresses) {
  const std::scoped_lock lock(mutex_);
  addresses_ = std::move(addresses);
  for (Event* const done : waiting_) done->set();
}

PeerAddresses resolve(const std::string& host, int port) { return addresses_of(host, port, 0); }

std::shared_ptr<Lookup> look_up(const std::string& host, int port, const Resolver& resolver) {
  if (auto numeric = addresses_of(host, port, AI_NUMERICHOST)) {
    return std::make_shared<Lookup>(std::move(numeric));
  }
  const std::pair<std::string, int> place(host, port);
  const std::scoped_lock lock(board().mutex);
  const auto [found, added] = board().under_way.try_emplace(place);
  if (!added) return found->second;
  found->second = std::make_shared<Lookup>();
  std::shared_ptr<Lookup> lookup = found->second;
  try {
    std::thread([resolver, place] { run(resolver, place); }).detach();
  } catch (const std::system_error& failure) {
    board().under_way.erase(found);
    return std::make_shared<Lookup>(
        tl::unexpected(fmt::format("no thread to look up its name: {}", failure.code().message())));
  }
  return lookup;
}

}  // namespace lockbench
