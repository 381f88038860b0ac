#include "strategies/zookeeper/client/session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/sim_env.h"
#include "tests/support/zookeeper_bytes.h"

namespace lockbench::zookeeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::jute::number;
using test::jute::number_at;
using test::jute::text;
using testing::HasSubstr;
using testing::StartsWith;

/// Servers that share sessions and nodes, on simulated time. By default they answer immediately.
class FakeEnsemble {
 public:
  explicit FakeEnsemble(SimClock& clock) : clock_(clock) {}

  struct Server {
    bool listens = true, answers = true;
  };
  struct Said {
    std::int32_t xid = 0, operation = 0;
    std::string body;
  };

  Connector connector() {
    return [this](const HostPort& server,
                  Duration) -> tl::expected<std::unique_ptr<Connecting>, std::string> {
      host_ = server.host;
      if (!servers_[host_].listens) return std::make_unique<FakeConnecting>(nullptr);
      latest_ = std::make_shared<Wire>(Wire{.host = host_});
      return std::make_unique<FakeConnecting>(std::make_unique<FakeTransport>(*this, latest_));
    };
  }
  Server& server(const std::string& host) { return servers_[host]; }
  /// The server of the latest connection.
  const std::string& host() const { return host_; }

  bool is_over(std::int64_t session) const { return sessions_.at(session).over; }

  /// All requests except greetings, on all connections.
  const std::vector<Said>& said() const { return said_; }
  std::ptrdiff_t count(std::int32_t operation) const {
    return std::ranges::count(said_, operation, &Said::operation);
  }
  /// Number of waits for a server so far.
  int waits() const { return waits_; }

  /// Sends bytes on the latest connection, in a frame or raw.
  void push(const std::string& packet) { push_raw(text(packet)); }
  void push_raw(const std::string& bytes) { latest_->inbox += bytes; }
  void push_event(std::int32_t type, const std::string& path) {
    push(number(-1, 4) + number(-1, 8) + number(0, 4) + number(type, 4) + number(3, 4) +
         text(path));
  }
  void cut() { latest_->open = false; }
  /// What the latest connection sent while its server did not answer.
  void answer_waiting() { serve(*latest_); }
  int greetings() const { return greetings_; }

  static constexpr std::int32_t kExists = 3, kGetData = 4, kPing = 11, kCreate2 = 15, kAuth = 100,
                                kSetWatches = 101, kClose = -11;
  static constexpr std::int32_t kDeleted = 2, kChanged = 3;

 private:
  struct Session {
    Duration timeout{};
    std::string password;
    bool over = false;
  };
  struct Wire {
    std::string host;
    std::string sent;   ///< by the client, not yet handled
    std::string inbox;  ///< not yet read by the client
    bool open = true;
    std::int64_t session = 0;  ///< 0: no greeting yet
  };

  class FakeTransport : public Transport {
   public:
    FakeTransport(FakeEnsemble& ensemble, std::shared_ptr<Wire> wire)
        : ensemble_(ensemble), wire_(std::move(wire)) {}
    ~FakeTransport() override { wire_->open = false; }

    Status send(std::string_view bytes, Duration) override {
      if (!wire_->open) return Status::closed;
      wire_->sent += bytes;
      ensemble_.serve(*wire_);
      return Status::ok;
    }
    Received receive(std::span<char> buffer, Duration timeout,
                     const std::stop_token& stop) override {
      if (timeout > Duration::zero()) ++ensemble_.waits_;
      SimClock& clock = ensemble_.clock_;
      const TimePoint until = clock.now() + std::max(timeout, Duration::zero());
      while (wire_->inbox.empty() && wire_->open && clock.now() < until && !stop.stop_requested()) {
        clock.step(until);
      }
      if (wire_->inbox.empty()) {
        const Status open = stop.stop_requested() ? Status::stopped : Status::timed_out;
        return {wire_->open ? open : Status::closed, 0};
      }
      const std::size_t size = wire_->inbox.copy(buffer.data(), buffer.size());
      wire_->inbox.erase(0, size);
      return {Status::ok, size};
    }
    int descriptor() const override { return -1; }

   private:
    FakeEnsemble& ensemble_;
    std::shared_ptr<Wire> wire_;
  };

  class FakeConnecting : public Connecting {
   public:
    explicit FakeConnecting(std::unique_ptr<Transport> transport)
        : transport_(std::move(transport)) {}
    tl::expected<std::unique_ptr<Transport>, std::string> get(Duration,
                                                              const std::stop_token&) override {
      if (!transport_) return tl::unexpected<std::string>("Connection refused");
      return std::move(transport_);
    }

   private:
    std::unique_ptr<Transport> transport_;
  };

  void serve(Wire& wire) {
    constexpr std::size_t kLength = 4;
    while (wire.sent.size() >= kLength && servers_[wire.host].answers) {
      const auto size = static_cast<std::size_t>(number_at(wire.sent, 0, 4));
      if (wire.sent.size() < kLength + size) return;
      const std::string packet = wire.sent.substr(kLength, size);
      wire.sent.erase(0, kLength + size);
      if (wire.session == 0) {
        greet(wire, packet);
      } else {
        said_.push_back({static_cast<std::int32_t>(number_at(packet, 0, 4)),
                         static_cast<std::int32_t>(number_at(packet, 4, 4)), packet.substr(8)});
        answer(wire, said_.back());
      }
    }
  }

  void greet(Wire& wire, const std::string& packet) {
    ++greetings_;
    std::int64_t id = number_at(packet, 16, 8);
    const Duration asked = std::chrono::milliseconds(number_at(packet, 12, 4));
    const bool begins = id == 0;
    if (begins) {
      id = 0x1000 + static_cast<std::int64_t>(sessions_.size());
      sessions_[id] = {.timeout = asked, .password = fmt::format("secret of {:x}", id)};
    }
    const Session& session = sessions_[id];
    const bool right =
        !session.over && (begins || packet.find(session.password) != std::string::npos);
    wire.session = id;
    wire.inbox += text(number(0, 4) + number(right ? ceil_milliseconds(session.timeout) : 0, 4) +
                       number(right ? id : 0, 8) + text(right ? session.password : "") +
                       std::string(1, '\0'));
    if (!right) wire.open = false;
  }

  void answer(Wire& wire, const Said& said) {
    const std::string stat = number(transactions_, 8) + std::string(36, '\0') +
                             number(wire.session, 8) + std::string(16, '\0');
    std::string body;
    if (said.operation == kCreate2) {
      body = text(said.body.substr(4, static_cast<std::size_t>(number_at(said.body, 0, 4)))) + stat;
    }
    if (said.operation == kGetData) body = number(-1, 4) + stat;
    if (said.operation == kExists) body = stat;
    wire.inbox += text(number(said.xid, 4) + number(++transactions_, 8) + number(0, 4) + body);
    if (said.operation == kClose) {
      sessions_[wire.session].over = true;
      wire.open = false;
    }
  }

  SimClock& clock_;
  std::map<std::string, Server> servers_;
  std::map<std::int64_t, Session> sessions_;
  std::vector<Said> said_;
  std::shared_ptr<Wire> latest_;
  std::string host_;
  std::int64_t transactions_ = 100;
  int waits_ = 0, greetings_ = 0;
};

/// A session on simulated time; between its calls the test acts as its keeper.
class SessionTest : public testing::Test {
 protected:
  static constexpr seconds kTtl{6};
  static constexpr seconds kCommandTimeout{3};

  ~SessionTest() override { session_->close(); }

  /// Starts again with these servers.
  void begin_anew(std::string_view servers) {
    if (session_) session_->close();
    session_ = std::make_unique<Session>(*parse_endpoint(servers), kCommandTimeout, env_, nullptr,
                                         ensemble_.connector());
  }
  void connect() {
    const auto connected = session_->connect(kTtl);
    ASSERT_TRUE(connected) << connected.error().message;
  }
  StoreResult<std::vector<Reply>> call(Request::Kind kind, const std::string& path) {
    const Request request{kind, path};
    return session_->call({&request, 1}, "key");
  }
  std::shared_ptr<LeaseState> lease_on(const std::string& path) {
    EXPECT_TRUE(call(Request::Kind::make_ephemeral, path));
    return session_->bind(path);
  }
  /// Lets time pass and the keeper work.
  void keep_for(Duration duration) {
    const TimePoint until = clock_.now() + duration;
    while (clock_.now() < until) {
      clock_.advance(std::min<Duration>(session_->keep(keepers_), until - clock_.now()));
    }
    session_->keep(keepers_);
  }

  SimClock clock_;
  SimEnv env_{clock_, 1}, keepers_{clock_, 2};
  FakeEnsemble ensemble_{clock_};
  std::unique_ptr<Session> session_ = std::make_unique<Session>(
      *parse_endpoint("one"), kCommandTimeout, env_, nullptr, ensemble_.connector());
};

TEST_F(SessionTest, PingsAtAThirdOfItsTimeout) {
  connect();
  const auto lease = lease_on("/l");
  keep_for(kTtl / 3 - seconds(1));
  EXPECT_EQ(ensemble_.count(FakeEnsemble::kPing), 0) << "an answer is as good";
  keep_for(seconds(1));
  EXPECT_EQ(ensemble_.count(FakeEnsemble::kPing), 1);
  keep_for(10 * kTtl);
  EXPECT_GE(ensemble_.count(FakeEnsemble::kPing), 30);
  EXPECT_LE(ensemble_.count(FakeEnsemble::kPing), 45);
  EXPECT_GE(lease->valid_until(), clock_.now() + kTtl / 2);
  EXPECT_FALSE(lease->lost_at());
  EXPECT_THAT(keepers_.commands(), testing::Contains("after ping"));
}

TEST_F(SessionTest, SilentServerIsLeftForAnotherWithinTheSameSession) {
  begin_anew("one,two");
  connect();
  const auto lease = lease_on("/l");
  const std::int64_t id = session_->id();
  const std::string first = ensemble_.host();
  ensemble_.server(first).answers = false;
  keep_for(kTtl * 2 / 3 + milliseconds(500));
  EXPECT_NE(ensemble_.host(), first);
  EXPECT_EQ(session_->id(), id);
  EXPECT_TRUE(session_->connected());
  EXPECT_FALSE(lease->lost_at());
  EXPECT_GT(lease->valid_until(), clock_.now() + kTtl / 2);
  EXPECT_TRUE(call(Request::Kind::remove, "/l"));
}

TEST_F(SessionTest, IsLostWhenNoServerHasAnsweredForItsTimeout) {
  begin_anew("one,two");
  connect();
  const TimePoint asked = clock_.now();
  const auto lease = lease_on("/l");
  for (const char* host : {"one", "two"}) ensemble_.server(host).answers = false;
  keep_for(kTtl - milliseconds(1));
  EXPECT_FALSE(lease->lost_at()) << "the server may still hear of it";
  keep_for(seconds(1));
  ASSERT_TRUE(lease->lost_at());
  EXPECT_GE(*lease->lost_at(), asked + kTtl);
  EXPECT_TRUE(session_->is_over(session_->number()));
  EXPECT_EQ(session_->bind("/m"), nullptr);
}

TEST_F(SessionTest, AfterATimeAsleepItsBeliefIsOver) {
  connect();
  const auto lease = lease_on("/l");
  clock_.advance(kTtl);
  EXPECT_FALSE(lease->valid_at(clock_.now()));
  EXPECT_EQ(session_->bind("/l"), nullptr) << "it may have ended meanwhile";
}

/// A follower answers until it learns that the leader has ended the session.
TEST_F(SessionTest, AfterTwoThirdsOfItsTimeoutOnlyAGreetingProvesIt) {
  connect();
  const auto lease = lease_on("/l");
  const TimePoint ends = lease->valid_until();
  session_->keep(keepers_);
  clock_.advance(kTtl / 3);
  ensemble_.server("one").answers = false;
  session_->keep(keepers_);  // sends a ping
  ensemble_.server("one").answers = true;
  clock_.advance(kTtl / 3);
  ensemble_.answer_waiting();
  ensemble_.server("one").listens = false;
  session_->keep(keepers_);
  EXPECT_FALSE(session_->connected());
  EXPECT_EQ(lease->valid_until(), ends);
  ensemble_.server("one").listens = true;
  keep_for(milliseconds(500));
  EXPECT_TRUE(session_->connected());
  EXPECT_GT(lease->valid_until(), ends);
  clock_.advance(kTtl * 2 / 3);
  EXPECT_TRUE(call(Request::Kind::exists, "/l")) << "in a new connection";
  EXPECT_EQ(ensemble_.greetings(), 3);
}

TEST_F(SessionTest, AWatchedNodeOrALostConnectionWakesTheWaiter) {
  connect();
  session_->listen("/ahead");
  ensemble_.push_event(FakeEnsemble::kDeleted, "/another");
  EXPECT_EQ(session_->wait(clock_.now() + seconds(1), {}), WaitResult::timed_out);
  for (const bool lost : {false, true}) {
    session_->listen("/ahead");
    ASSERT_TRUE(call(Request::Kind::look, "/ahead"));
    const TimePoint woken = clock_.now() + seconds(1);
    clock_.at(woken, [&, lost] {
      lost ? ensemble_.cut() : ensemble_.push_event(FakeEnsemble::kDeleted, "/ahead");
      session_->keep(keepers_);
    });
    EXPECT_EQ(session_->wait(clock_.now() + seconds(2), {}), WaitResult::signalled);
    EXPECT_TRUE(lost || clock_.now() == woken);
  }
}

TEST_F(SessionTest, RemovalOfAHeldNodeIsALoss) {
  connect();
  const auto lease = lease_on("/l"), other = lease_on("/m");
  ensemble_.push_event(FakeEnsemble::kChanged, "/l");
  ensemble_.push_event(FakeEnsemble::kDeleted, "/l");
  session_->keep(keepers_);
  EXPECT_TRUE(lease->lost_at());
  EXPECT_FALSE(session_->is_bound("/l"));
  EXPECT_FALSE(other->lost_at());
}

TEST_F(SessionTest, WatchesOfHeldNodesAreSetAgain) {
  begin_anew("zk://ann:secret@one/app");
  connect();
  ASSERT_TRUE(call(Request::Kind::look, "/l"));
  ASSERT_TRUE(call(Request::Kind::look, "/ahead"));
  const auto lease = lease_on("/l");
  ensemble_.cut();
  keep_for(seconds(1));
  ASSERT_TRUE(session_->connected());
  EXPECT_EQ(ensemble_.count(FakeEnsemble::kAuth), 2) << "on each connection";
  ASSERT_EQ(ensemble_.count(FakeEnsemble::kSetWatches), 1);
  const auto set = std::ranges::find(ensemble_.said(), FakeEnsemble::kSetWatches,
                                     &FakeEnsemble::Said::operation);
  EXPECT_THAT(set->body, HasSubstr("/app/l"));
  EXPECT_THAT(set->body, testing::Not(HasSubstr("ahead"))) << "who waits looks again";
  ensemble_.push_event(FakeEnsemble::kDeleted, "/app/l");
  session_->keep(keepers_);
  EXPECT_TRUE(lease->lost_at());
}

TEST_F(SessionTest, WhatNobodyCanHaveSentCostsTheConnectionAndNothingElse) {
  const std::string header = number(0, 8) + number(0, 4);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {number(99, 4) + header, "out-of-order response"},
      {number(-2, 4) + header, "a ping that nobody sent"},
      {number(-8, 4) + number(0, 8) + number(-101, 4), "no node"},
      {number(-1, 4) + header + number(42, 4), "an event"},
      {number(7, 2), "a header"},
      {"", "a header"},
  };
  for (const auto& [packet, why] : cases) {
    connect();
    const auto lease = lease_on("/l");
    const std::int64_t id = session_->id();
    // After the request, before its answer.
    ensemble_.server("one").answers = false;
    clock_.at(clock_.now() + milliseconds(1), [&, sent = packet] {
      ensemble_.push(sent);
      ensemble_.server("one").answers = true;
    });
    const auto lost = call(Request::Kind::exists, "/l");
    ASSERT_FALSE(lost) << why;
    EXPECT_EQ(lost.error().kind, StoreError::Kind::unanswered) << why;
    EXPECT_THAT(lost.error().message, StartsWith("one:2181: the connection was lost: "));
    EXPECT_THAT(lost.error().message, HasSubstr(why));
    EXPECT_TRUE(call(Request::Kind::exists, "/l")) << why;
    EXPECT_EQ(session_->id(), id) << why;
    EXPECT_FALSE(lease->lost_at()) << why;
    session_->unbind(lease);
  }
}

TEST_F(SessionTest, LateAnswersBelongToTheCallThatWasGivenUp) {
  connect();
  ensemble_.server("one").answers = false;
  ASSERT_FALSE(call(Request::Kind::exists, "/l"));
  ensemble_.server("one").answers = true;
  const auto made = call(Request::Kind::make_ephemeral, "/l");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->front().path, "/l");
}

TEST_F(SessionTest, RefusalsAreKnownAtOnceAndSilenceIsNot) {
  begin_anew("one,two");
  for (const char* host : {"one", "two"}) ensemble_.server(host).listens = false;
  const TimePoint begun = clock_.now();
  const auto refused = session_->connect(kTtl);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, StoreError::Kind::not_sent);
  EXPECT_THAT(refused.error().message, StartsWith("one:2181,two:2181: no ZooKeeper answers: "));
  EXPECT_THAT(refused.error().message, HasSubstr("Connection refused"));
  EXPECT_LT(clock_.now(), begun + seconds(1));
  ensemble_.server("two").listens = true;
  ensemble_.server("two").answers = false;
  const TimePoint again = clock_.now();
  const auto silent = session_->connect(kTtl);
  ASSERT_FALSE(silent);
  EXPECT_THAT(silent.error().message, HasSubstr("no connection within 3s"));
  EXPECT_EQ(clock_.now(), again + kCommandTimeout);
  ensemble_.server("two").answers = true;
  connect();
}

TEST_F(SessionTest, ServersAreTriedInAnOrderOfItsOwn) {
  std::set<std::string> first;
  for (int i = 0; i < 32 && first.size() < 3; ++i) {
    begin_anew("one,two,three");
    connect();
    first.insert(ensemble_.host());
  }
  EXPECT_EQ(first.size(), 3U);
}

TEST_F(SessionTest, ACallWaitsInOnePieceAndAStopLosesNothing) {
  connect();
  const int waits = ensemble_.waits();
  ensemble_.server("one").answers = false;
  std::stop_source source;
  clock_.at(clock_.now() + seconds(1), [&] { source.request_stop(); });
  const TimePoint begun = clock_.now();
  const Request request{Request::Kind::exists, "/l"};
  const auto stopped = session_->call({&request, 1}, "key", source.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message, HasSubstr("stopped"));
  EXPECT_LE(clock_.now() - begun, seconds(1) + milliseconds(100));
  EXPECT_EQ(ensemble_.waits() - waits, 2) << "for the stop, and for an answer under way";
  EXPECT_TRUE(session_->connected());
}

}  // namespace
}  // namespace lockbench::zookeeper
