#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "strategies/carrier.h"
#include "strategies/env.h"

namespace lockbench::program {

using Json = nlohmann::json;

/// A hello, the first request: how many clients the process carries, the URLs by store, the TTL.
Json hello_of(int clients, Json stores, Duration ttl);

/// How a client program is started.
struct Launch {
  std::string command;  ///< for /bin/sh
  Json hello;           ///< the first request, without its id; may hold URLs with passwords
  /// False: it stays in the caller's process group, whose signals then reach it too.
  bool own_group = true;
};

class Process;

/// One request to a client program, from its sending to its answer. For one caller, on its carrier.
/// After its end an answer to it is ignored.
class Call {
 public:
  /// Sends the request, without waiting.
  Call(Process& process, Json request);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  std::uint64_t id() const { return id_; }
  /// False: the program had failed before, so it never saw the request.
  bool sent() const { return sent_; }
  /// Set once the request is answered, or never will be.
  Event& event() { return *event_; }
  /// Waits on the caller's carrier until the request is done, the deadline or a stop. Whether it is
  /// done.
  bool await(TimePoint deadline, const std::stop_token& stop = {});
  bool done() const;
  /// Null without an answer.
  const Json* answer() const;
  /// Why there is no answer and will be none; empty otherwise.
  std::string failure() const;

 private:
  friend class Process;

  Process& process_;
  const std::unique_ptr<Event> event_;
  std::uint64_t id_ = 0;
  bool sent_ = false;
  std::optional<Json> answer_;  ///< under the process's mutex, like `failure_`
  std::string failure_;
};

/// A client program that runs: requests to it, its answers by their ids, and the end of what it
/// wrote to stderr. It fails, and is killed, if it ends, writes something that is no answer, or
/// does not read its requests. Thread-safe. Its reader runs beside the caller of start().
class Process {
 public:
  /// The longest line.
  static constexpr std::size_t kLongestLine = std::size_t{64} << 10;

  /// Starts it and sends its hello. The error says why there is no process.
  static tl::expected<std::unique_ptr<Process>, std::string> start(const Launch& launch);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Kills it and all of its group.
  ~Process();

  /// Its answer to the hello; waits for it on the caller's carrier. The error says why there is
  /// none.
  tl::expected<Json, std::string> about(Duration within, const std::stop_token& stop = {});
  /// Of its shell; the program may be a child.
  pid_t pid() const { return pid_; }
  /// Signals its group, or without one the process.
  void signal(int number) const noexcept;
  /// Closes its stdin.
  void close_input();
  /// Whether its process has ended.
  bool ended() const;
  /// A text of the program for a message: one line, without control characters and passwords.
  std::string presentable(std::string_view text) const;

 private:
  friend class Call;

  Process(pid_t pid, int in, int out, int err, const Launch& launch);

  std::string without_secrets(std::string_view text) const;
  void send(Call* call, Json request);
  void forget(Call& call);
  void read(const std::stop_token& stop);
  /// True if more may follow at once.
  bool read_answers();
  bool read_errors();
  void take_line(std::string_view line);
  void fail(const std::string& why);
  void fail_now(const std::string& why);
  std::string how_it_ended() const;
  std::string with_last_words(std::string why) const;

  const pid_t pid_;
  int in_;  ///< -1: closed
  const int out_, err_;
  const bool own_group_;
  std::vector<std::string> secrets_;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Call*> calls_;  ///< under way
  std::set<std::uint64_t> given_up_;      ///< their answers may still come
  std::uint64_t next_id_ = 0;
  std::string failure_;        ///< empty: it works
  std::string last_words_;     ///< the end of stderr
  std::optional<Json> about_;  ///< its answer to the hello
  std::vector<Event*> await_about_;

  // Of the reader:
  bool over_ = false;  ///< it wrote its last, or was killed for what it wrote
  std::vector<char> buffer_;
  std::string line_;
  std::unique_ptr<Task> reader_;  ///< last: ends before what it uses
};

// Parts of an answer; nothing if it has none of that type.
std::optional<std::string> text_in(const Json& answer, const char* name);
std::optional<double> number_in(const Json& answer, const char* name);
std::optional<bool> flag_in(const Json& answer, const char* name);

}  // namespace lockbench::program
