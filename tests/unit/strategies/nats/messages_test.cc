#include "strategies/nats/client/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "tests/support/nats_replies.h"

namespace lockbench::nats {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

bool is_printable(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

TEST(Messages, AreReadWholeAndOneAfterTheOther) {
  const std::string ping = "PING\r\n";
  const std::string all =
      ping + "HMSG _INBOX.1 7  34 36\r\nNATS/1.0 404 Message Not Found\r\n\r\nhi\r\n" + ping;
  const auto first = parse_message(all);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->kind, Message::Kind::ping);
  const auto second = parse_message(std::string_view(all).substr((*first)->size));
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->kind, Message::Kind::payload);
  EXPECT_EQ((*second)->subject, "_INBOX.1");
  EXPECT_EQ((*second)->headers, "NATS/1.0 404 Message Not Found\r\n\r\n");
  EXPECT_EQ((*second)->text, "hi");
  EXPECT_EQ((*first)->size + (*second)->size + ping.size(), all.size());
  const auto error = parse_message("-ERR 'Authorization Violation'\r\n");
  ASSERT_TRUE(error && *error);
  EXPECT_EQ((*error)->text, "'Authorization Violation'");
}

TEST(Messages, AreNeverReadFromAPartOrWithoutABound) {
  for (const std::string& reply : test::nats_replies("S", "s")) {
    const auto whole = parse_message(reply);
    if (!whole) {
      EXPECT_TRUE(is_printable(whole.error())) << whole.error();
    } else if (*whole) {
      EXPECT_LE((*whole)->size, reply.size());
    }
    if (!whole || !*whole || (*whole)->size != reply.size()) continue;
    for (std::size_t length = 0; length < reply.size(); ++length) {
      const auto part = parse_message(reply.substr(0, length));
      EXPECT_TRUE(part && !*part) << reply << " cut at " << length;
    }
  }
  EXPECT_FALSE(parse_message(std::string(16 << 10, 'x')));
  EXPECT_TRUE(parse_message("MSG a 1 1048576\r\n"));
  EXPECT_FALSE(parse_message("MSG a 1 1048577\r\n"));
  EXPECT_FALSE(parse_message("MSG a 1 2\r\n{}x\r\n"));
  EXPECT_FALSE(parse_message("HMSG a 1 9 2\r\n{}\r\n"));
}

TEST(ServerInfos, TellVersionInstanceAndTls) {
  const auto plain = parse_info(R"({"server_id":"N7","version":"2.9.10","headers":true})");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->version, "2.9.10");
  EXPECT_EQ(plain->id, "N7");
  EXPECT_FALSE(plain->tls);
  const auto either = parse_info(R"({"server_id":"N","version":"2","tls_available":true})");
  EXPECT_TRUE(either->tls && !either->requires_tls);
  const auto only = parse_info(R"({"server_id":"N","version":"2","tls_required":true})");
  EXPECT_TRUE(only->tls && only->requires_tls);
  for (const char* wrong :
       {"", "{}", "[]", R"({"version":"2"})", R"({"server_id":1,"version":2})"}) {
    EXPECT_FALSE(parse_info(wrong)) << wrong;
  }
}

TEST(Answers, ToAPutTellItsNumber) {
  const auto stored = parse_answer(R"({"stream":"KV_b", "seq":18446744073709551615})");
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->stream, "KV_b");
  EXPECT_EQ(stored->sequence, 18446744073709551615U);
  const auto changed = parse_answer(
      R"({"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 1"},"seq":0})");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->refusal, Refusal::changed);
  EXPECT_EQ(changed->why, "wrong last sequence: 1");
  EXPECT_EQ(parse_answer(test::nats_error(10164))->refusal, Refusal::changed) << "of replicas";
}

TEST(Answers, TellTheLatestMessageOfAKey) {
  for (const std::string value : {"", "a", "ab", "abc", "abcd\r\n"}) {
    const auto found = parse_answer(test::nats_entry("$KV.b.k", 7, "", value));
    ASSERT_TRUE(found) << found.error();
    EXPECT_EQ(found->value, value);
    EXPECT_EQ(found->subject, "$KV.b.k");
    EXPECT_EQ(found->sequence, 7U);
    EXPECT_FALSE(found->deleted);
  }
  for (const char* mark : {"KV-Operation: DEL\r\n", "KV-Operation: PURGE\r\n"}) {
    EXPECT_TRUE(parse_answer(test::nats_entry("$KV.b.k", 7, mark, ""))->deleted) << mark;
  }
}

TEST(Answers, TellAStreamsAgeAndWhenItWasUsed) {
  EXPECT_EQ(parse_answer(R"({"config":{"max_age":2000000000}})")->max_age, 2s);
  EXPECT_EQ(parse_answer(R"({"config":{"max_age":0}})")->max_age, Duration::max());
  EXPECT_THAT(parse_answer(R"({"config":{"max_age":0,"num_replicas":3}})")->configuration,
              HasSubstr(R"("num_replicas":3)"));
  EXPECT_EQ(parse_answer(R"({"config":{},"state":{"last_seq":7}})")->sequence, 7U);
  EXPECT_EQ(parse_answer(R"({"num_pending":2,"delivered":{"consumer_seq":3}})")->pending, 5U);
  const auto listed = parse_answer(
      R"({"total":5,"streams":[)"
      R"({"config":{"name":"A"},"created":"2026-11-30T13:01:06.3Z","state":{"last_ts":"0001-01-01T00:00:00Z"}},)"
      R"({"config":{"name":"B"},"created":"2026-11-30T13:01:06.3Z","state":{"last_ts":"2026-12-01T00:00:00Z"}}]})");
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->all_streams, 5U);
  ASSERT_EQ(listed->streams.size(), 2U);
  EXPECT_EQ(listed->streams[0].name, "A");
  EXPECT_EQ(listed->streams[0].last_used, "2026-11-30T13:01:06.3Z");
  EXPECT_EQ(listed->streams[1].last_used, "2026-12-01T00:00:00Z");
}

TEST(Deliveries, TellTheMessagesPlaceAndTime) {
  for (const char* reply : {"$JS.ACK.KV_b.c7.1.42.3.1764507666302396105.5",
                            "$JS.ACK.hub.acc.KV_b.c7.1.42.3.1764507666302396105.5",
                            "$JS.ACK.hub.acc.KV_b.c7.1.42.3.1764507666302396105.5.random"}) {
    const auto delivery = parse_delivery(reply);
    ASSERT_TRUE(delivery) << reply;
    EXPECT_EQ(delivery->sequence, 42U);
    EXPECT_EQ(delivery->pending, 5U);
    EXPECT_EQ(delivery->stored_at.time_since_epoch(), Duration(1764507666302396105));
  }
  for (const char* wrong :
       {"", "_INBOX.x", "$JS.ACK", "$JS.FC.KV_b.c7.1.42.3.17.0", "$JS.ACK.KV_b.c7.1.0.3.17.0",
        "$JS.ACK.KV_b.c7.1.42.3.-17.0", "$JS.ACK.KV_b.c7.1.42.3.0", "$JS.ACK.KV_b.c7.1.42.3.17.0.1",
        "$JS.ACK.KV_b.c7.1.99999999999999999999.3.17.0"}) {
    EXPECT_FALSE(parse_delivery(wrong)) << wrong;
  }
  const auto sent = parse_message(
      "HMSG $KV.b.k 1 $JS.ACK.S.c.1.1.1.1.0 31 33\r\nNATS/1.0\r\n"
      "KV-Operation: DEL\r\n\r\nhi\r\n");
  ASSERT_TRUE(sent && *sent);
  EXPECT_EQ((*sent)->reply, "$JS.ACK.S.c.1.1.1.1.0");
  EXPECT_TRUE(is_deletion((*sent)->headers));
}

TEST(Answers, OfAWrongFormSayNothingOrAreRefused) {
  for (const std::string& text : test::nats_answers("S", "s")) {
    const auto answer = parse_answer(text);
    if (!answer) {
      EXPECT_TRUE(is_printable(answer.error())) << answer.error();
    } else {
      EXPECT_TRUE(is_printable(answer->why)) << answer->why;
    }
  }
  for (const char* wrong : {"", "[]", "{", R"({"error":{}})", R"({"error":{"err_code":0}})",
                            R"({"message":7})", R"({"message":{"seq":4,"data":"YQ"}})",
                            R"({"message":{"seq":4,"data":"YQ==","hdrs":"%%%%"}})",
                            R"({"message":{"seq":0,"data":"YQ=="}})"}) {
    EXPECT_FALSE(parse_answer(wrong)) << wrong;
  }
}

TEST(Places, AreBucketsOfTheRunAndKeysThatAnyClientCanRead) {
  const std::string run = "20261121T012530Z-4f3a9c";
  const Place place = place_of("lockbench:" + run + ":{1}", true);
  EXPECT_EQ(place.stream, "KV_lockbench-" + run);
  EXPECT_EQ(place.subject, "$KV.lockbench-" + run + ".lockbench=3A" + run + "=3A=7B1=7D");
  EXPECT_EQ(place_of("lockbench:" + run + "-2:{1}", false).stream,
            "KV_lockbench-" + run + "-2_records");
  EXPECT_EQ(run_of_stream(place.stream), run);
  EXPECT_EQ(run_of_stream("KV_lockbench-" + run + "-2_records"), run + "-2");
  EXPECT_EQ(run_of_stream("KV_lockbench"), "");
  EXPECT_EQ(run_of_stream("KV_other-" + run), "");
}

/// Their TTLs may differ, and a bucket has one.
TEST(Places, OfLocksOutsideARunAreApartByTheirTags) {
  EXPECT_EQ(place_of("orders", true).stream, "KV_lockbench");
  EXPECT_EQ(place_of("orders", true).subject, "$KV.lockbench.orders");
  EXPECT_EQ(place_of("lockbench:plays:{7}:next", true).stream, "KV_lockbench-plays-7");
  EXPECT_EQ(place_of("lockbench:a b_c:x", true).stream, "KV_lockbench-a_20b_5Fc");
  EXPECT_NE(place_of("a=3A", true).subject, place_of("a:", true).subject);
  const std::string tag(200, 't');
  EXPECT_NE(place_of("lockbench:a:{" + tag + "1}", true).stream,
            place_of("lockbench:a:{" + tag + "2}", true).stream);
  EXPECT_LT(place_of("lockbench:" + std::string(200, '!') + ":{" + tag + "}", false).stream.size(),
            255U);
  EXPECT_NE(place_of("lockbench:a:{b-records}", true).stream,
            place_of("lockbench:a:{b}", false).stream);
}

}  // namespace
}  // namespace lockbench::nats
