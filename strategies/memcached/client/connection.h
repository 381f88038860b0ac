#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "strategies/env.h"
#include "strategies/errors.h"
#include "strategies/memcached/client/endpoint.h"
#include "strategies/memcached/client/hidden_socket.h"
#include "strategies/store.h"

struct memcached_st;

namespace lockbench::memcached {

struct Item {
  std::string value;
  std::uint64_t version = 0;  ///< changes with every change of the item ("cas unique")
};

/// One connection to one memcached server, through libmemcached and the text protocol; used by one
/// thread. Constructing it does not connect; a command connects first if there is no connection.
/// After a failure the connection is closed, and the next command reconnects. Reports every command
/// to its Env. A stop gives up an answer that does not come within about 50 ms; while connecting,
/// only the command timeout applies.
class Connection {
 public:
  Connection(Endpoint endpoint, Duration command_timeout, Env& env);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

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

  StoreResult<StoreFacts> facts();
  void close() noexcept;
  const std::string& display() const { return display_; }

 private:
  struct Free {
    void operator()(memcached_st* client) const noexcept;
  };

  /// One of libmemcached's return codes.
  using Code = int;
  /// True if the server did it, false if it refused.
  StoreResult<bool> call(std::string_view name, std::string_view key, const std::stop_token& stop,
                         const std::function<Code(memcached_st&)>& send);
  StoreResult<bool> exchange(const std::stop_token& stop,
                             const std::function<Code(memcached_st&)>& send);
  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const;

  const Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  std::unique_ptr<memcached_st, Free> client_;
  HiddenSocket socket_;
};

}  // namespace lockbench::memcached
