#include "exporter/addresses.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockbench::exporter {
namespace {

std::string listened(std::string_view text) {
  const auto address = parse_listen_address(text);
  return address ? address->to_string() : "refused";
}

TEST(ListenAddressTest, IsOnTheLoopbackUnlessToldOtherwise) {
  EXPECT_EQ(listened("9464"), "127.0.0.1:9464");
  EXPECT_EQ(listened(":9464"), "127.0.0.1:9464");
  EXPECT_EQ(listened("localhost:9464"), "127.0.0.1:9464");
  EXPECT_EQ(listened("0.0.0.0:9464"), "0.0.0.0:9464");
  EXPECT_EQ(listened("[::1]:0"), "[::1]:0");
}

TEST(ListenAddressTest, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", ":", "x", "1.2.3.4", "1.2.3:80", "::1:80", "[::1]", "[]:80", "[1.2.3.4]:80", "a:b:c",
        "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:9464x", "example.org:80"}) {
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_NE(address.error().find('"' + std::string(text) + '"'), std::string::npos);
  }
}

TEST(ListenAddressTest, NamesAPortThatIsTaken) {
  ListenAddress first;
  const auto listener = listen_on(first);
  ASSERT_TRUE(listener) << listener.error();
  EXPECT_NE(first.port, 0);
  ListenAddress second = first;
  const auto again = listen_on(second);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().find(first.to_string()), std::string::npos);
  EXPECT_NE(again.error().find("another program listens there"), std::string::npos);
  close(*listener);
}

TEST(ListenAddressTest, SaysWhyAnAddressCannotBeHad) {
  ListenAddress foreign{.host = "192.0.2.1", .port = 9464};
  const auto listener = listen_on(foreign);
  ASSERT_FALSE(listener);
  EXPECT_NE(listener.error().find("192.0.2.1:9464"), std::string::npos);
}

TEST(PushTargetTest, IsTakenApart) {
  const auto target = parse_push_target("https://me:p%40ss%3a@gw.example:9091/prefix/");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->scheme, "https");
  EXPECT_EQ(target->user, "me");
  EXPECT_EQ(target->password, "p@ss:");
  EXPECT_EQ(target->display(), "https://gw.example:9091/prefix");
}

TEST(PushTargetTest, PortsHaveDefaults) {
  EXPECT_EQ(parse_push_target("http://gw")->display(), "http://gw:80");
  EXPECT_EQ(parse_push_target("https://gw")->display(), "https://gw:443");
  EXPECT_EQ(parse_push_target("http://[::1]:9091")->display(), "http://[::1]:9091");
}

TEST(PushTargetTest, RefusesWithoutRepeatingASecret) {
  for (const std::string url :
       {"", "gw:9091", "ftp://me:secret@gw", "http://", "http://me:secret@",
        "http://me:secret@gw:0", "http://me:secret@gw:99999", "http://me:secret%zz@gw",
        "http://me:secret@g w", "http://me:secret@gw/a?b", "http://me:secret%4"}) {
    const auto target = parse_push_target(url);
    ASSERT_FALSE(target) << url;
    EXPECT_EQ(target.error().find("secret"), std::string::npos) << url;
  }
}

}  // namespace
}  // namespace lockbench::exporter
