#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/store.h"
#include "strategies/transport/socket.h"
#include "strategies/url.h"

namespace lockbench::memcached {

/// One memcached server. memcaches:// means TLS, with a query as in TlsSettings.
using Endpoint = Url;
/// As parse_url().
tl::expected<Endpoint, std::string> parse_endpoint(std::string_view text);

/// memcached takes larger numbers for absolute times.
inline constexpr std::int64_t kLongestExpiry = 60LL * 60 * 24 * 30;

/// memcached reads its clock once a second, a little late each time, and so now and then counts two
/// seconds in one step. An item may live this much less than asked, so we ask for this much more.
inline constexpr std::chrono::seconds kKeptLonger{2};

/// The requested expiry, and how long the lock is valid.
struct ItemTtl {
  std::int64_t asked = 0;  ///< seconds
  Duration kept{};

  static tl::expected<ItemTtl, StoreError> of(Duration ttl) {
    const std::chrono::seconds kept(ceil_seconds(ttl));
    const std::int64_t asked = (kept + kKeptLonger).count();
    if (asked > kLongestExpiry) {
      return tl::unexpected(StoreError{StoreError::Kind::not_sent,
                                       "memcached: a TTL can be at most 30 days less 2 s"});
    }
    return ItemTtl{.asked = asked, .kept = kept};
  }
};

// The replies of memcached's text protocol (protocol.txt). Each function reads one reply from the
// front of the received bytes, which may be broken, and changes nothing.

struct Item {
  std::string value;
  std::uint64_t version = 0;  ///< changes with every change of the item ("cas unique")
};

/// A reply and its size in bytes.
template <class T>
struct Parsed {
  T value;
  std::size_t size = 0;
};

struct BadReply {
  std::string why;  ///< printable
  /// The server answered that it did nothing. If false, it does not say so, or the reply does not
  /// fit the command.
  bool refused = false;
};

/// Nothing if the reply is not complete.
template <class T>
using ParseResult = tl::expected<std::optional<Parsed<T>>, BadReply>;

/// An answer of one line: `yes` if it was done, one of the others if not.
struct Choice {
  std::string_view yes;
  std::string_view no{}, or_no{};
};

ParseResult<bool> parse_choice(std::string_view bytes, const Choice& choice);
/// The answer to "gets key": the item, or nothing.
ParseResult<std::optional<Item>> parse_item(std::string_view bytes, std::string_view key);
/// The answer to "version".
ParseResult<std::string> parse_version(std::string_view bytes);
using Stats = std::map<std::string, std::string, std::less<>>;
/// The answer to "stats".
ParseResult<Stats> parse_stats(std::string_view bytes);

/// One connection to one memcached server, in the text protocol; used by one thread. Constructing
/// it does not connect; a command connects first if there is no connection, within the command
/// timeout. After a failure the connection is closed, and the next command reconnects; so it does
/// if the server has closed a connection that was idle for more than a second. Reports every
/// command to its Env. After a stop, an answer has a part of Timeouts::after_stop to come. `dialer`
/// outlives it.
class Connection {
 public:
  Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env,
             Dialer& dialer = Dialer::real());

  StoreResult<void> connect(const std::stop_token& stop = {});

  /// False: the item exists already.
  StoreResult<bool> add(std::string_view key, std::string_view value, std::int64_t seconds,
                        const std::stop_token& stop = {});
  /// Nothing: the item does not exist.
  StoreResult<std::optional<Item>> gets(std::string_view key, const std::stop_token& stop = {});
  /// False: the item does not exist or has another version. With negative `seconds` the new item is
  /// expired from the start.
  StoreResult<bool> cas(std::string_view key, std::string_view value, std::int64_t seconds,
                        std::uint64_t version, const std::stop_token& stop = {});
  /// False: the item does not exist.
  StoreResult<bool> remove(std::string_view key, const std::stop_token& stop = {});
  StoreResult<bool> touch(std::string_view key, std::int64_t seconds);

  /// In one round trip; returns how many existed.
  StoreResult<std::size_t> remove_all(std::span<const std::string> keys,
                                      const std::stop_token& stop);
  StoreResult<StoreFacts> facts();
  void close() noexcept { transport_.reset(); }
  const std::string& display() const { return display_; }

 private:
  // `parse` makes a ParseResult<T> of the received bytes.

  /// Sends one command per key, all together, and reports each to the Env.
  template <class T, class Parse>
  StoreResult<T> call(std::string_view name, std::span<const std::string_view> keys,
                      std::string_view request, const std::stop_token& stop, const Parse& parse);
  /// Sends one of the commands that begin a new connection.
  template <class T, class Parse>
  StoreResult<void> greet(std::string_view name, std::string_view request, TimePoint end,
                          const std::stop_token& stop, const Parse& parse);
  /// Sends the request and takes its only reply.
  template <class T, class Parse>
  StoreResult<T> exchange(std::string_view request, Duration timeout, const std::stop_token& stop,
                          const Parse& parse);

  CommandInfo info(std::string_view name, std::string_view key) const {
    return {.store = "memcached", .endpoint = display_, .name = name, .key = key};
  }
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return failure_at(display_, kind, why);
  }

  const Endpoint endpoint_;
  const std::string display_;
  const Timeouts timeouts_;
  Env& env_;
  Dialer& dialer_;
  std::unique_ptr<Transport> transport_;
  LastUse last_use_;
  std::string received_;  ///< bytes not used yet
};

}  // namespace lockbench::memcached
