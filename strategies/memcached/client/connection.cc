#include "strategies/memcached/client/connection.h"

#include <fmt/format.h>
#include <libmemcached/memcached.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <new>

namespace lockbench::memcached {
namespace {

constexpr std::size_t kLongestKey = 250;

bool fits(std::string_view key) {
  return !key.empty() && key.size() <= kLongestKey &&
         std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c != 0x7f; });
}

std::uint64_t whole_milliseconds(Duration timeout) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(ceil_milliseconds(timeout), 1));
}

/// The server understood and refused.
bool is_no(memcached_return_t code) {
  return code == MEMCACHED_NOTSTORED || code == MEMCACHED_DATA_EXISTS || code == MEMCACHED_NOTFOUND;
}

/// For errors on a socket the library's code is just "some errors".
std::string reason_of(memcached_st& client, memcached_return_t code) {
  return memcached_strerror(&client,
                            code == MEMCACHED_SOME_ERRORS ? memcached_last_error(&client) : code);
}

bool is_refusal(memcached_return_t code) {
  return code == MEMCACHED_CLIENT_ERROR || code == MEMCACHED_SERVER_ERROR ||
         code == MEMCACHED_E2BIG || code == MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE;
}

std::unique_ptr<memcached_st, void (*)(memcached_st*)> new_client(const Endpoint& endpoint,
                                                                  Duration timeout) {
  std::unique_ptr<memcached_st, void (*)(memcached_st*)> client(memcached_create(nullptr),
                                                                memcached_free);
  if (!client) throw std::bad_alloc();
  memcached_server_add(client.get(), endpoint.host.c_str(), endpoint.port);
  const std::uint64_t limit = whole_milliseconds(timeout);
  memcached_behavior_set(client.get(), MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
  memcached_behavior_set(client.get(), MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
  memcached_behavior_set(client.get(), MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, limit);
  memcached_behavior_set(client.get(), MEMCACHED_BEHAVIOR_POLL_TIMEOUT, limit);
  return client;
}

}  // namespace

void Connection::Free::operator()(memcached_st* client) const noexcept { memcached_free(client); }

Connection::Connection(Endpoint endpoint, Duration command_timeout, Env& env)
    : endpoint_(std::move(endpoint)),
      display_(endpoint_.display()),
      timeout_(command_timeout),
      env_(env) {}

Connection::~Connection() { close(); }

void Connection::close() noexcept {
  socket_.release();
  client_.reset();
}

tl::unexpected<StoreError> Connection::fail(StoreError::Kind kind, std::string_view why) const {
  return tl::unexpected(StoreError{kind, fmt::format("{}: {}", display_, why)});
}

StoreResult<void> Connection::connect(const std::stop_token& stop) {
  if (client_) return {};
  if (stop.stop_requested()) return fail(StoreError::Kind::not_sent, "stopped while connecting");
  const CommandInfo info{.store = "memcached", .endpoint = display_, .name = "version", .key = {}};
  auto client = new_client(endpoint_, timeout_);
  // libmemcached connects with the first command.
  const bool cut = env_.before_command(info) == CommandFate::drop;
  const memcached_return_t code = cut ? MEMCACHED_FAILURE : memcached_version(client.get());
  env_.after_command(info, code == MEMCACHED_SUCCESS ? CommandEnd::answered : CommandEnd::lost);
  if (code != MEMCACHED_SUCCESS) {
    return fail(StoreError::Kind::not_sent,
                "no memcached server answers: " + reason_of(*client, code));
  }
  const auto own_port =
      memcached_server_srcport(memcached_server_instance_by_position(client.get(), 0));
  if (socket_.seize(own_port, endpoint_.port, timeout_)) {
    // The socket's own timeout has passed by the time libmemcached polls.
    memcached_behavior_set(client.get(), MEMCACHED_BEHAVIOR_POLL_TIMEOUT, 1);
  }
  client_.reset(client.release());
  return {};
}

StoreResult<bool> Connection::exchange(const std::stop_token& stop,
                                       const std::function<Code(memcached_st&)>& send) {
  socket_.begin(stop);
  const auto code = static_cast<memcached_return_t>(send(*client_));
  socket_.end();
  if (code == MEMCACHED_SUCCESS) return true;
  if (is_no(code)) return false;
  std::string why(memcached_strerror(client_.get(), code));
  if (is_refusal(code)) return fail(StoreError::Kind::rejected, why);
  if (code == MEMCACHED_TIMEOUT) why = "no answer within " + format_duration(timeout_);
  if (stop.stop_requested()) why = "stopped while waiting for the answer";
  return fail(StoreError::Kind::unanswered, why);
}

StoreResult<bool> Connection::call(std::string_view name, std::string_view key,
                                   const std::stop_token& stop,
                                   const std::function<Code(memcached_st&)>& send) {
  if (!fits(key)) {
    return fail(StoreError::Kind::not_sent,
                "a key must have 1 to 250 characters, without spaces and control characters");
  }
  const CommandInfo info{.store = "memcached", .endpoint = display_, .name = name, .key = key};
  StoreResult<bool> answer = fail(StoreError::Kind::not_sent, "the connection was cut");
  if (env_.before_command(info) == CommandFate::drop) {
    close();
  } else if (auto connected = connect(stop); !connected) {
    answer = tl::unexpected(std::move(connected.error()));
  } else {
    answer = exchange(stop, send);
  }
  const bool answered = answer || answer.error().kind == StoreError::Kind::rejected;
  const CommandFate fate =
      env_.after_command(info, answered ? CommandEnd::answered : CommandEnd::lost);
  if (!answered) close();
  if (answered && fate == CommandFate::drop) {
    close();
    return fail(StoreError::Kind::unanswered, "the answer was lost");
  }
  return answer;
}

StoreResult<bool> Connection::add(std::string_view key, std::string_view value,
                                  std::int64_t seconds, const std::stop_token& stop) {
  return call("add", key, stop, [&](memcached_st& client) {
    return memcached_add(&client, key.data(), key.size(), value.data(), value.size(), seconds, 0);
  });
}

StoreResult<std::optional<Item>> Connection::gets(std::string_view key,
                                                  const std::stop_token& stop) {
  Item item;
  const StoreResult<bool> found = call("gets", key, stop, [&](memcached_st& client) {
    const char* const name = key.data();
    const std::size_t size = key.size();
    memcached_return_t code = memcached_mget(&client, &name, &size, 1);
    if (code != MEMCACHED_SUCCESS) return code;
    bool there = false;
    // One item and the end of the list.
    while (memcached_result_st* result = memcached_fetch_result(&client, nullptr, &code)) {
      item.value.assign(memcached_result_value(result), memcached_result_length(result));
      item.version = memcached_result_cas(result);
      there = true;
      memcached_result_free(result);
    }
    // libmemcached's codes for the end of the list.
    const bool complete =
        code == MEMCACHED_SUCCESS || code == MEMCACHED_END || code == MEMCACHED_NOTFOUND;
    if (!complete) return code;
    return there ? MEMCACHED_SUCCESS : MEMCACHED_NOTFOUND;
  });
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::nullopt;
  return std::optional(std::move(item));
}

StoreResult<bool> Connection::cas(std::string_view key, std::string_view value,
                                  std::int64_t seconds, std::uint64_t version,
                                  const std::stop_token& stop) {
  return call("cas", key, stop, [&](memcached_st& client) {
    return memcached_cas(&client, key.data(), key.size(), value.data(), value.size(), seconds, 0,
                         version);
  });
}

StoreResult<bool> Connection::remove(std::string_view key, const std::stop_token& stop) {
  return call("delete", key, stop, [&](memcached_st& client) {
    return memcached_delete(&client, key.data(), key.size(), 0);
  });
}

StoreResult<bool> Connection::touch(std::string_view key, std::int64_t seconds) {
  return call("touch", key, {}, [&](memcached_st& client) {
    return memcached_touch(&client, key.data(), key.size(), seconds);
  });
}

StoreResult<StoreFacts> Connection::facts() {
  std::map<std::string, std::string, std::less<>> stats;
  const auto note = [](const memcached_instance_st*, const char* name, std::size_t name_size,
                       const char* value, std::size_t value_size, void* into) {
    static_cast<decltype(stats)*>(into)->emplace(std::string(name, name_size),
                                                 std::string(value, value_size));
    return MEMCACHED_SUCCESS;
  };
  if (auto connected = connect(); !connected) return tl::unexpected(connected.error());
  const memcached_return_t code = memcached_stat_execute(client_.get(), nullptr, note, &stats);
  if (code != MEMCACHED_SUCCESS) {
    close();
    return fail(StoreError::Kind::unanswered, memcached_strerror(nullptr, code));
  }
  const auto number = [&](const char* name) { return std::strtod(stats[name].c_str(), nullptr); };
  // Both are from one clock; the difference is the start time.
  return StoreFacts{
      .version = stats["version"],
      .instance = fmt::format("{}@{}", stats["pid"], number("time") - number("uptime")),
      .cpu_seconds = number("rusage_user") + number("rusage_system")};
}

}  // namespace lockbench::memcached
