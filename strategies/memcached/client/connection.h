#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/memcached/client/endpoint.h"
#include "strategies/memcached/client/replies.h"
#include "strategies/store.h"
#include "strategies/timeouts.h"
#include "strategies/transport/socket.h"

namespace lockbench::memcached {

/// One connection to one memcached server, in the text protocol; used by one thread. Constructing
/// it does not connect; a command connects first if there is no connection, within the command
/// timeout. After a failure the connection is closed, and the next command reconnects. Reports
/// every command to its Env. A stop gives up an answer that does not come within 50 ms.
class Connection {
 public:
  Connection(Endpoint endpoint, const Timeouts& timeouts, Env& env);

  StoreResult<void> connect(const std::stop_token& stop = {});

  /// False: the item exists already.
  StoreResult<bool> add(std::string_view key, std::string_view value, std::int64_t seconds,
                        const std::stop_token& stop = {});
  /// Nothing: the item does not exist.
  StoreResult<std::optional<Item>> gets(std::string_view key, const std::stop_token& stop = {});
  /// False: the item does not exist or has another version. With negative `seconds` the new item
  /// has expired already.
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
  // `parse` returns a ParseResult<T> for what has come.

  /// One command, reported to the Env.
  template <class T, class Parse>
  StoreResult<T> call(std::string_view name, std::string_view key, std::string_view request,
                      const std::stop_token& stop, const Parse& parse);
  /// A part of what a new connection begins with.
  template <class T, class Parse>
  StoreResult<void> greet(std::string_view name, std::string_view request, TimePoint end,
                          const std::stop_token& stop, const Parse& parse);
  /// Sends the request and takes its only reply.
  template <class T, class Parse>
  StoreResult<T> exchange(std::string_view request, Duration timeout, const std::stop_token& stop,
                          const Parse& parse);
  template <class T, class Parse>
  StoreResult<T> receive(Duration timeout, const std::stop_token& stop, const Parse& parse);

  CommandInfo info(std::string_view name, std::string_view key) const;
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const;

  const Endpoint endpoint_;
  const std::string display_;
  const Timeouts timeouts_;
  Env& env_;
  std::unique_ptr<Transport> transport_;
  std::string received_;  ///< and not used yet
};

}  // namespace lockbench::memcached
