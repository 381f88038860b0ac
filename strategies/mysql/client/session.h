#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "strategies/mysql/client/endpoint.h"
#include "strategies/sql/session.h"

struct st_mysql;

namespace lockbench::mysql {

using sql::Answer;
using sql::Limits;
using sql::Patience;
using sql::Statement;

/// Through libmariadb's non-blocking calls, each of which runs on a stack of the library's own
/// until it must wait. In a statement, ? stands for the next parameter, a string of bytes. Nothing
/// is prepared. Answer::tag is SELECT for an answer with columns, otherwise the statement's name.
class Session : public sql::Session {
 public:
  Session(Endpoint endpoint, const Timeouts& timeouts, Env& env);
  ~Session() override;

  StoreResult<void> connect(const std::stop_token& stop = {}) override;
  /// Also sets what statements rely on: isolation, time zone, and how long a statement waits for a
  /// row by default, which is less than the command timeout if that is more than a second.
  StoreResult<void> use_schema(const std::string& schema, std::string_view key,
                               const std::stop_token& stop) override;
  void close() noexcept override;
  /// "10.11.19-MariaDB-0+deb12u1"; empty without a connection.
  std::string version() const;

 protected:
  StoreResult<Answer> exchange(const Statement& statement, std::string_view key,
                               std::span<const std::string> parameters,
                               const Patience& patience) override;
  void cancel(std::string_view key, const std::stop_token& stop) override;

 private:
  struct Close {
    void operator()(st_mysql* connection) const noexcept;
  };
  using Connection = std::unique_ptr<st_mysql, Close>;
  /// Continues a call of the library with the events that occurred; returns those to wait for, or 0
  /// once it has returned.
  using Continue = std::function<int(int occurred)>;
  /// Waits for these events of the socket.
  using Await = std::function<StoreResult<void>(int descriptor, short events)>;

  /// With these settings, not yet connected.
  Connection make_connection() const;
  StoreResult<void> connect_to(const std::string& address, TimePoint give_up_at,
                               const std::stop_token& stop);
  /// Sets what all statements rely on, whatever the server's or the user's defaults are. Part of
  /// connecting: not reported to the Env.
  StoreResult<void> override_defaults(const std::stop_token& stop);
  /// Why the connection was not made.
  std::string why_not_connected() const;
  /// Carries out a call of the library that has returned `events`. After a failure the library has
  /// given it up.
  StoreResult<void> finish(int events, const Continue& go_on, const Await& await);
  /// Reads a result; several rows count, the first one's column is the value.
  StoreResult<void> read_result(Answer& answer, const Await& await);
  /// What the library's error means.
  StoreResult<Answer> failed(const Statement& statement, const Limits& limits);
  /// Whether the server has closed the connection while nothing was asked.
  bool is_over() const;

  const Endpoint endpoint_;
  const std::string server_name_;  ///< of its certificate
  Connection connection_;
  std::string schema_;  ///< in use
};

/// Of a row, in bytes.
inline constexpr std::size_t kLongestKey = 700;
/// Refuses a key for which rows have no room: the server might cut it.
StoreResult<void> check_row_key(const sql::Session& session, std::string_view key);

/// The text with these parameters in place of each ?; the last one also in place of all further
/// ones.
std::string with_parameters(std::string_view text, std::span<const std::string> parameters);

}  // namespace lockbench::mysql
