// Servers that give wrong answers, at each point of every lock on NATS.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "strategies/env.h"
#include "strategies/nats/client/connection.h"
#include "strategies/registry.h"
#include "tests/integration/watch/sightings.h"
#include "tests/support/eventually.h"
#include "tests/support/fiber_lock.h"
#include "tests/support/hostile_life.h"
#include "tests/support/nats_replies.h"
#include "tests/support/test_names.h"

namespace lockbench::test {
namespace {

using Json = nlohmann::json;

/// The streams shared by all connections to one server.
struct NatsStreams {
  struct Entry {
    std::uint64_t sequence = 0;
    std::string headers, value;
  };
  std::map<std::string, Json> configurations;
  std::set<std::string> made;            ///< of these; a real server panics if others are asked
  std::map<std::string, Entry> entries;  ///< by subject
  std::uint64_t sequence = 0;
  int unserved = 0;  ///< messages for keys that nobody takes yet
};

/// HPUB subject reply headers size
struct Published {
  explicit Published(std::string_view request) {
    const std::size_t end = request.find("\r\n");
    std::istringstream line{std::string(request.substr(0, end))};
    std::string name;
    std::size_t begin = 0, size = 0;
    line >> name >> subject >> reply >> begin >> size;
    headers = request.substr(end + 2, begin);
    value = request.substr(end + 2 + begin, size - begin);
  }
  std::string subject, reply, headers, value;
};

std::string last_word_of(std::string_view text) {
  return std::string(text.substr(text.rfind('.') + 1));
}

/// The parts of NATS that the locks use.
class NatsSpeaker : public Speaker {
 public:
  explicit NatsSpeaker(std::shared_ptr<NatsStreams> streams) : streams_(std::move(streams)) {}

  std::string opening() override {
    return "INFO {\"server_id\":\"N\",\"version\":\"2.9.10\",\"headers\":true} \r\n";
  }

  std::size_t request_length(std::string_view received) override {
    const std::size_t end = received.find("\r\n");
    if (end == std::string_view::npos) return 0;
    std::size_t length = end + 2;
    if (received.starts_with("HPUB ")) {
      const std::string line(received.substr(0, end));
      length += std::stoul(line.substr(line.rfind(' ') + 1)) + 2;
    }
    return received.size() < length ? 0 : length;
  }

  std::string answer(std::string_view request) override {
    if (request.starts_with("PING")) return "PONG\r\n";
    if (!request.starts_with("HPUB ")) return {};
    const Published published(request);
    if (published.subject.starts_with("$KV.") && streams_->unserved > 0) {
      --streams_->unserved;
      return addressed("HMSG INBOX 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", request);
    }
    return addressed(nats_message(answer_to(published)), request);
  }

  bool is_prelude(std::string_view request) const override { return !request.starts_with("HPUB "); }

  std::string addressed(std::string bytes, std::string_view request) const override {
    const std::string inbox = Published(request).reply;
    if (const std::size_t at = bytes.find(kInbox); at != std::string::npos) {
      bytes.replace(at, kInbox.size(), inbox);
    }
    return bytes;
  }

 private:
  std::string answer_to(const Published& asked) {
    constexpr int kNoStream = 10059;
    auto& configurations = streams_->configurations;
    const std::string stream = last_word_of(asked.subject);
    constexpr int kPanic = 10025;
    if (asked.subject.starts_with("$KV.")) {
      return streams_->made.empty() ? nats_error(kPanic) : store(asked);
    }
    const bool creates = asked.subject.starts_with("$JS.API.STREAM.CREATE.");
    if (creates) configurations[stream] = Json::parse(asked.value);
    const auto found = configurations.find(stream);
    if (found == configurations.end()) return nats_error(kNoStream);
    if (asked.subject.starts_with("$JS.API.STREAM.MSG.GET.")) {
      return streams_->made.contains(stream) ? latest(asked) : nats_error(kPanic);
    }
    // As if another client's request were still making it.
    constexpr int kSubjectsOverlap = 10065;
    if (creates) return nats_error(kSubjectsOverlap);
    const bool is_made = !streams_->made.insert(stream).second;
    return Json{{"config", found->second},
                {"created", is_made ? "2026-11-30T13:01:06.3Z" : "0001-01-01T00:00:00Z"}}
        .dump();
  }

  std::string latest(const Published& asked) {
    constexpr int kNoMessage = 10037;
    const std::string subject = Json::parse(asked.value).at("last_by_subj");
    const auto found = streams_->entries.find(subject);
    if (found == streams_->entries.end() || found->second.sequence == 0)
      return nats_error(kNoMessage);
    const NatsStreams::Entry& entry = found->second;
    return nats_entry(subject, entry.sequence, entry.headers, entry.value);
  }

  std::string store(const Published& asked) {
    constexpr int kChanged = 10071;
    constexpr std::string_view kExpected = "Sequence: ";
    NatsStreams::Entry& entry = streams_->entries[asked.subject];
    const std::size_t at = asked.headers.find(kExpected) + kExpected.size();
    if (std::stoull(asked.headers.substr(at)) != entry.sequence) return nats_error(kChanged);
    const bool deletes = asked.headers.find("KV-Operation: DEL") != std::string::npos;
    entry = {++streams_->sequence, deletes ? "KV-Operation: DEL\r\n" : "", asked.value};
    std::string bucket = asked.subject.substr(std::string_view("$KV.").size());
    bucket.resize(bucket.find('.'));
    return fmt::format(R"({{"stream":"KV_{}", "seq":{}}})", bucket, entry.sequence);
  }

  const std::shared_ptr<NatsStreams> streams_;
};

/// Without room for a further connection.
class FullNats : public NatsSpeaker {
 public:
  FullNats() : NatsSpeaker(std::make_shared<NatsStreams>()) {}
  std::string answer(std::string_view request) override {
    return request.starts_with("PING") ? "-ERR 'maximum connections exceeded'\r\n" : "";
  }
};

TEST(AFullNats, IsNotSaidToRefuseTheLogin) {
  const HostileServer server([] { return std::make_unique<FullNats>(); }, {});
  const auto env = make_system_env(random_seed());
  nats::Connection connection(nats::parse_endpoint(server.address()).value(), kPatience, *env);
  const auto connected = connection.connect();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().message, server.address() + ": maximum connections exceeded");
}

/// The last message for the lock decides: it was acknowledged, with a number of its own.
bool was_granted(const std::vector<HostileServer::Exchange>& exchanges) {
  for (auto exchange = exchanges.rbegin(); exchange != exchanges.rend(); ++exchange) {
    if (!exchange->request.starts_with("HPUB $KV.")) continue;
    const std::string& sent = exchange->sent;
    return sent.ends_with("\r\n") &&
           sent.find(R"("stream":"KV_lockbench-hostile-k)") != sent.npos &&
           sent.find(R"("seq":)") != sent.npos && sent.find("error") == sent.npos &&
           sent.find(R"("seq":0)") == sent.npos && sent.find(R"("seq":-)") == sent.npos;
  }
  return false;
}

class HostileNats : public testing::TestWithParam<const Descriptor*> {};

TEST_P(HostileNats, GetsNoLockGrantedThatItDidNotGrant) {
  const bool observed = GetParam()->traits.observed;
  const std::string bucket = std::string("lockbench-hostile-k") + (observed ? "_records" : "");
  expect_no_false_grants(
      *GetParam(),
      misdeeds(nats_replies("KV_" + bucket, "$KV." + bucket + ".lockbench=3Ahostile=3A=7Bk=7D"),
               {"PING\r\n", "+OK\r\n", "x", "MSG INBOX 1 2\r\n{}\r\n", "\r\n"}),
      [] {
        const auto streams = std::make_shared<NatsStreams>();
        return Honest{[streams] { return std::make_unique<NatsSpeaker>(streams); }, was_granted};
      });
}

INSTANTIATE_TEST_SUITE_P(All, HostileNats, testing::ValuesIn(strategies_of("nats")),
                         [](const auto& tested) { return test_name_of(tested.param->name); });

/// A client that does not wait between its attempts.
class HastyEnv : public ForwardingEnv {
 public:
  using ForwardingEnv::ForwardingEnv;
  WaitResult wait(Event* /*event*/, TimePoint /*deadline*/,
                  const std::stop_token& /*stop*/) override {
    return WaitResult::timed_out;
  }
};

/// Tries to take a lock whose bucket's subjects are not served until so many messages were sent.
/// Counts the messages.
AcquireResult acquire_unserved(int unserved, std::ptrdiff_t& messages) {
  const auto streams = std::make_shared<NatsStreams>();
  streams->unserved = unserved;
  const HostileServer server([&] { return std::make_unique<NatsSpeaker>(streams); }, {});
  const Descriptor& strategy = *find_strategy("nats-kv");
  const auto env = make_system_env(random_seed());
  HastyEnv hasty(*env);
  Services services;
  const Endpoints endpoints{{server_set(strategy), {server.address()}}};
  const StrategyOptions options{.command_timeout = kPatience};
  const auto lock = make_carried(strategy, {.endpoints = endpoints,
                                            .options = options,
                                            .env = hasty,
                                            .services = services,
                                            .client = 3});
  AcquireResult result = lock->acquire({.key = "lockbench:hostile:{k}",
                                        .ttl = std::chrono::seconds(10),
                                        .deadline = TimePoint{},
                                        .stop = {}});
  const auto exchanges = server.exchanges();
  messages = std::ranges::count_if(exchanges, [](const HostileServer::Exchange& one) {
    return one.request.starts_with("HPUB $KV.");
  });
  return result;
}

TEST(UnservedNats, IsAskedAgainUntilTheBucketIsThere) {
  std::ptrdiff_t messages = 0;
  EXPECT_EQ(acquire_unserved(3, messages).outcome, AcquireOutcome::acquired);
  EXPECT_EQ(messages, 4);
}

TEST(UnservedNats, IsGivenUpInTheEnd) {
  std::ptrdiff_t messages = 0;
  const AcquireResult result = acquire_unserved(1'000'000, messages);
  EXPECT_EQ(result.outcome, AcquireOutcome::failed);
  EXPECT_NE(result.reason.find("nobody serves $KV."), std::string::npos) << result.reason;
  EXPECT_LE(messages, 100);
}

/// A server whose consumer of the one bucket sends some messages at once, and others only after the
/// next question about the stream, which stores all of them.
class ConsumedNats : public NatsSpeaker {
 public:
  ConsumedNats(std::string at_once, std::string later, int stored)
      : NatsSpeaker(nullptr),
        at_once_(std::move(at_once)),
        later_(std::move(later)),
        stored_(stored) {}

  std::string answer(std::string_view request) override {
    if (!request.starts_with("HPUB ")) return NatsSpeaker::answer(request);
    if (request.find(".CONSUMER.CREATE.") != request.npos) {
      return addressed(nats_message("{}"), request) + at_once_;
    }
    const bool first = std::exchange(first_, false);
    const std::string stream = fmt::format(
        R"({{"config":{{"max_age":100000000}},"state":{{"last_seq":{}}}}})", first ? 0 : stored_);
    return addressed(nats_message(stream), request) + (first ? "" : std::exchange(later_, ""));
  }

 private:
  const std::string at_once_;
  std::string later_;
  const int stored_;
  bool first_ = true;
};

std::string consumed(int sequence, std::string_view value) {
  return fmt::format("MSG $KV.locks.a 1 $JS.ACK.KV_locks.c.1.{}.1.1.0 {}\r\n{}\r\n", sequence,
                     value.size(), value);
}

/// What a watch sees of the lock until it has ended.
std::vector<watch::Sighting> seen_until_expiry(const std::string& at_once, const std::string& later,
                                               int stored) {
  const HostileServer server([=] { return std::make_unique<ConsumedNats>(at_once, later, stored); },
                             {});
  watch::Sightings seen;
  const watch::Running watch("nats", server.address(), {.locks = {"locks/*"}}, seen);
  EXPECT_TRUE(seen.await(
      "locks/a", [](const watch::Sighting& one) { return one.ended == watch::Ending::expired; }));
  return seen.all_of("locks/a");
}

TEST(WatchOfConsumedNats, AwaitsARenewalThatComesAfterTheEnd) {
  const auto seen = seen_until_expiry(consumed(1, "me"), consumed(2, "me"), 2);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[1].holders.size(), 1U);
  EXPECT_EQ(seen[2].ended, watch::Ending::expired);
}

TEST(WatchOfConsumedNats, TakesNoDeletionThatWasLeftOutForATheft) {
  const auto seen = seen_until_expiry(consumed(1, "me") + consumed(3, "you"), "", 3);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].changes, 1U);
  EXPECT_EQ(seen[1].holders.at(0).owner, "you");
  EXPECT_EQ(seen[1].changes, 2U);
}

}  // namespace
}  // namespace lockbench::test
