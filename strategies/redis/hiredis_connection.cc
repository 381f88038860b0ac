#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <array>
#include <new>

#include "strategies/redis/connection.h"
#include "strategies/redis/socket.h"

namespace lockbench::redis {
namespace {

/// hiredis reads and writes the protocol; the bytes travel over a Transport, as a hiredis context
/// is dead after a time-out and knows neither stops nor deadlines.
struct ReaderDeleter {
  void operator()(redisReader* reader) const { redisReaderFree(reader); }
};
using ReaderPtr = std::unique_ptr<redisReader, ReaderDeleter>;

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using ReplyPtr = std::unique_ptr<redisReply, ReplyDeleter>;

Reply to_reply(const redisReply& raw) {
  Reply reply;
  switch (raw.type) {
    case REDIS_REPLY_INTEGER:
      reply.type = Reply::Type::integer;
      reply.integer = raw.integer;
      break;
    case REDIS_REPLY_STATUS:
      reply.type = Reply::Type::status;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_ERROR:
      reply.type = Reply::Type::error;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_STRING:
      reply.type = Reply::Type::string;
      reply.text.assign(raw.str, raw.len);
      break;
    case REDIS_REPLY_ARRAY:
      reply.type = Reply::Type::array;
      reply.elements.reserve(raw.elements);
      for (std::size_t i = 0; i < raw.elements; ++i)
        reply.elements.push_back(to_reply(*raw.element[i]));
      break;
    default:
      break;
  }
  return reply;
}

void append_formatted(std::string& out, Command command) {
  fmt::format_to(std::back_inserter(out), "*{}\r\n", command.size());
  for (const std::string_view word : command) {
    fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", word.size(), word);
  }
}

/// The word that is the command's key: what meters and faults may want to know.
std::string_view key_of(Command command) {
  const std::size_t place = command[0].starts_with("EVAL") ? 3 : 1;
  return place < command.size() ? command[place] : std::string_view();
}

class HiredisConnection : public Connection {
 public:
  HiredisConnection(Endpoint endpoint, Duration timeout, Env& env)
      : endpoint_(std::move(endpoint)),
        display_(endpoint_.display()),
        timeout_(timeout),
        env_(env) {}

  StoreResult<void> connect(const std::stop_token& stop) override {
    if (transport_) return {};
    auto transport = connect_socket(endpoint_, timeout_, stop);
    if (!transport) return fail(StoreError::Kind::not_sent, transport.error());
    transport_ = std::move(*transport);
    reader_.reset(redisReaderCreate());
    if (!reader_) throw std::bad_alloc();
    if (auto greeted = greet(stop); !greeted) {
      close();
      return greeted;
    }
    return {};
  }

  void queue(Command command, std::string_view name) override {
    // Behind a failure that has not been fetched yet: the rest of a pipeline must not run on a new
    // connection, without what came before it.
    const bool broken = first_ != end_ && pendings_[end_ - 1].broken();
    Pending& pending = push_pending();
    pending.name = name.empty() ? command[0] : name;
    pending.key = key_of(command);
    pending.state = broken ? Pending::State::never_sent : Pending::State::queued;
    if (env_.before_command(info(pending)) == CommandFate::drop) {
      // As if the connection had broken under it.
      break_connection("the connection was cut");
      return;
    }
    if (!broken) append_formatted(out_, command);
  }

  void flush(const std::stop_token& stop) override {
    if (out_.empty()) return;
    // Interrupted by a stop, and nothing is due any more: what comes now, a clean-up, needs
    // another.
    const bool idle = first_ == end_ || pendings_[first_].state == Pending::State::queued;
    if (transport_ && !transport_->usable() && idle) transport_.reset();
    if (auto connected = connect(stop); !connected) {
      break_connection(std::move(connected.error().message));
      return;
    }
    // From here on a command may have arrived, whatever happens.
    for_each_pending(Pending::State::queued, [](Pending& p) { p.state = Pending::State::sent; });
    const Transport::Status status = transport_->send(out_, timeout_);
    out_.clear();
    if (status != Transport::Status::ok) break_connection(describe(status));
  }

  StoreResult<Reply> receive(const std::stop_token& stop) override {
    flush(stop);
    Pending& pending = pendings_.at(first_);
    StoreResult<Reply> reply = pending.state == Pending::State::sent
                                   ? read_reply(stop)
                                   : fail(kind_of(pending), broken_reason_);
    if (!reply && pending.state == Pending::State::sent &&
        reply.error().kind == StoreError::Kind::unanswered) {
      break_connection(reply.error().message);
    }
    const bool answered = reply || reply.error().kind == StoreError::Kind::rejected;
    const CommandFate fate =
        env_.after_command(info(pending), answered ? CommandEnd::answered : CommandEnd::lost);
    pop_pending();
    if (answered && fate == CommandFate::drop) {
      break_connection("the answer was lost");
      return fail(StoreError::Kind::unanswered, "the answer was lost");
    }
    return reply;
  }

  void close() noexcept override { break_connection("closed"); }

 private:
  /// A command without its answer. The slots and their strings are used again and again, as a
  /// command should cost no allocation.
  struct Pending {
    enum class State { queued, sent, never_sent, unanswered };
    std::string name, key;
    State state = State::queued;

    bool broken() const { return state == State::never_sent || state == State::unanswered; }
  };

  static StoreError::Kind kind_of(const Pending& pending) {
    return pending.state == Pending::State::unanswered ? StoreError::Kind::unanswered
                                                       : StoreError::Kind::not_sent;
  }

  CommandInfo info(const Pending& pending) const {
    return {.store = "redis", .endpoint = display_, .name = pending.name, .key = pending.key};
  }

  tl::unexpected<StoreError> fail(StoreError::Kind kind, std::string_view why) const {
    return tl::unexpected(StoreError{
        kind, why.starts_with(display_) ? std::string(why) : fmt::format("{}: {}", display_, why)});
  }

  std::string describe(Transport::Status status) const {
    switch (status) {
      case Transport::Status::timed_out:
        return "no answer within " + format_duration(timeout_);
      case Transport::Status::stopped:
        return "stopped while waiting for the answer";
      default:
        return "the connection was closed";
    }
  }

  /// AUTH and SELECT, before anything else on a new connection.
  StoreResult<void> greet(const std::stop_token& stop) {
    if (!endpoint_.password.empty()) {
      std::vector<std::string_view> auth{"AUTH"};
      if (!endpoint_.user.empty()) auth.push_back(endpoint_.user);
      auth.push_back(endpoint_.password);
      if (auto done = greet_with(auth, stop); !done) return done;
    }
    if (endpoint_.database != 0) {
      return greet_with(
          std::array<std::string_view, 2>{"SELECT", std::to_string(endpoint_.database)}, stop);
    }
    return {};
  }

  /// Past the queue, which holds what waits for the connection. The words may be secret: nobody is
  /// told more than the first.
  StoreResult<void> greet_with(Command command, const std::stop_token& stop) {
    const CommandInfo told{.store = "redis", .endpoint = display_, .name = command[0], .key = {}};
    std::string bytes;
    append_formatted(bytes, command);
    if (env_.before_command(told) == CommandFate::drop) {
      env_.after_command(told, CommandEnd::lost);
      return fail(StoreError::Kind::not_sent, "the connection was cut");
    }
    const Transport::Status sent = transport_->send(bytes, timeout_);
    StoreResult<Reply> reply = sent == Transport::Status::ok
                                   ? read_reply(stop)
                                   : fail(StoreError::Kind::not_sent, describe(sent));
    env_.after_command(told, reply ? CommandEnd::answered : CommandEnd::lost);
    if (reply) return {};
    if (command[0] == "AUTH" && reply.error().kind == StoreError::Kind::rejected) {
      // A server may quote the command in its refusal, secrets included: only the error's name is
      // told.
      const std::string_view said =
          std::string_view(reply.error().message).substr(display_.size() + 2);
      return fail(StoreError::Kind::rejected,
                  fmt::format("AUTH was refused: {}", said.substr(0, said.find(' '))));
    }
    return tl::unexpected(std::move(reply.error()));
  }

  StoreResult<Reply> read_reply(const std::stop_token& stop) {
    std::array<char, 4096> buffer;
    TimePoint give_up_at = TimePoint::max();
    for (int pieces = 0;; ++pieces) {
      void* parsed = nullptr;
      if (redisReaderGetReply(reader_.get(), &parsed) != REDIS_OK) {
        return fail(StoreError::Kind::unanswered, reader_->errstr);
      }
      if (parsed != nullptr) return checked(ReplyPtr(static_cast<redisReply*>(parsed)));
      // An answer that comes in pieces gets no more time for them all. The clock is not read for
      // those that come whole, which is nearly all.
      if (pieces == 1) give_up_at = env_.now() + timeout_;
      if (pieces > 1 && env_.now() > give_up_at) {
        return fail(StoreError::Kind::unanswered, describe(Transport::Status::timed_out));
      }
      const auto [status, bytes] = transport_->receive(buffer, timeout_, stop);
      if (status != Transport::Status::ok) {
        return fail(StoreError::Kind::unanswered, describe(status));
      }
      redisReaderFeed(reader_.get(), buffer.data(), bytes);
    }
  }

  StoreResult<Reply> checked(const ReplyPtr& raw) const {
    Reply reply = to_reply(*raw);
    if (reply.type == Reply::Type::error) return fail(StoreError::Kind::rejected, reply.text);
    return reply;
  }

  void break_connection(std::string_view why) {
    broken_reason_ = why;
    transport_.reset();
    reader_.reset();
    out_.clear();
    for_each_pending(Pending::State::queued,
                     [](Pending& p) { p.state = Pending::State::never_sent; });
    for_each_pending(Pending::State::sent,
                     [](Pending& p) { p.state = Pending::State::unanswered; });
  }

  template <class Change>
  void for_each_pending(Pending::State state, Change&& change) {
    for (std::size_t i = first_; i < end_; ++i) {
      if (pendings_[i].state == state) change(pendings_[i]);
    }
  }

  Pending& push_pending() {
    if (end_ == pendings_.size()) pendings_.emplace_back();
    return pendings_[end_++];
  }

  void pop_pending() {
    if (++first_ == end_) first_ = end_ = 0;
  }

  const Endpoint endpoint_;
  const std::string display_;
  const Duration timeout_;
  Env& env_;
  std::unique_ptr<Transport> transport_;
  ReaderPtr reader_;
  std::string out_;
  std::vector<Pending> pendings_;  ///< [first_, end_) are waiting for an answer, oldest first
  std::size_t first_ = 0, end_ = 0;
  std::string broken_reason_;
};

class HiredisFactory : public ConnectionFactory {
 public:
  std::unique_ptr<Connection> make(const Endpoint& endpoint, Duration command_timeout,
                                   Env& env) override {
    return std::make_unique<HiredisConnection>(endpoint, command_timeout, env);
  }
};

}  // namespace

std::unique_ptr<ConnectionFactory> make_hiredis_factory() {
  return std::make_unique<HiredisFactory>();
}

}  // namespace lockbench::redis
