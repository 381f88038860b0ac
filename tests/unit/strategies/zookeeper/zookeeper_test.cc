#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/zookeeper/client/link.h"
#include "strategies/zookeeper/client/messages.h"

namespace lockbench::zookeeper {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ZookeeperEndpoint, IsShownWithoutItsCredentials) {
  struct Case {
    const char *text, *display, *user, *password;
  };
  for (const auto& [text, display, user, password] :
       {Case{"zoo", "zoo:2181", "", ""},
        {"10.0.0.1:2182,[::1]:2183,zoo/locks/of/ours",
         "10.0.0.1:2182,[::1]:2183,zoo:2181/locks/of/ours", "", ""},
        {"zk://zoo/", "zoo:2181", "", ""},
        {"zk://ann:hunter%2F2%40@a:1,b:2/app", "a:1,b:2/app", "ann", "hunter/2@"},
        {"zks://ann:pw@a,b:1/app?server-name=zoo", "a:2281,b:1/app", "ann", "pw"}}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint) << endpoint.error();
    EXPECT_EQ(endpoint->display(), display);
    EXPECT_EQ(endpoint->user, user);
    EXPECT_EQ(endpoint->password, password);
    EXPECT_EQ(endpoint->tls != nullptr, std::string_view(text).starts_with("zks"));
  }
}

TEST(ZookeeperEndpoint, RefusesOtherTextWithoutRepeatingIt) {
  for (const char* text : {"", "http://a", "a//b", "a/b/", "a/b c", "ann:hunter2@a",
                           "zk://hunter2@a", "zk://ann:@a", "zk://a?server-name=hunter"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_THAT(endpoint.error(), HasSubstr("allowed: [zk://[user:password@]]host")) << text;
    EXPECT_THAT(endpoint.error(), Not(HasSubstr("hunter"))) << text;
  }
}

TEST(ZookeeperPaths, EveryKeyHasANodeBelowItsRun) {
  EXPECT_EQ(run_path("20261121T0125Z-4f3a"), "/lockbench/20261121T0125Z-4f3a");
  EXPECT_EQ(node_of_key("lockbench:20261121T0125Z-4f3a:{7}"), "/lockbench/20261121T0125Z-4f3a/{7}");
  EXPECT_EQ(node_of_key("lockbench:r:{a}:b"), "/lockbench/r/{a}:b");
  EXPECT_EQ(node_of_key("somebody's"), "/lockbench/-/somebody's");
  EXPECT_EQ(node_of_key("lockbench:"), "/lockbench/-/lockbench:");
}

TEST(ZookeeperPaths, AnyKeyIsOneNode) {
  EXPECT_EQ(node_of_key("a/b"), "/lockbench/-/a%2Fb");
  EXPECT_NE(node_of_key("a/b"), node_of_key("a%2Fb"));
  EXPECT_EQ(node_of_key(std::string("\0\n", 2)), "/lockbench/-/%00%0A");
  EXPECT_EQ(node_of_key(".."), "/lockbench/-/%..");
  EXPECT_EQ(node_of_key(""), "/lockbench/-/%");
}

TEST(ZookeeperPaths, ParentsEndAtTheRoot) {
  EXPECT_EQ(parent_of("/a/b/c"), "/a/b");
  EXPECT_EQ(parent_of("/a"), "");
}

TEST(ZookeeperQueue, NumbersAreTheLastTenDigits) {
  EXPECT_EQ(sequence_of("x-0000000042"), 42);
  EXPECT_EQ(sequence_of("x-92147483647"), 2147483647) << "what is before them is the name's";
  EXPECT_EQ(sequence_of("0000000000"), 0);
  for (const char* name : {"", "x", "x-000000004", "x-00000000x2", "x--000000001", "x-+00000001"}) {
    EXPECT_FALSE(sequence_of(name)) << name;
  }
}

TEST(ZookeeperQueue, GoesByNumberAndNotByName) {
  const std::vector<std::string> children{"c-0000000010", "a-0000000012", "b-0000000009",
                                          "config",       "z-0000000002", "a-0000000011"};
  const auto of = [&](std::string_view own) { return place_among(children, own); };
  EXPECT_TRUE(of("z-0000000002").there);
  EXPECT_FALSE(of("z-0000000002").ahead) << "the lowest number, though the last by name";
  EXPECT_EQ(of("b-0000000009").ahead, "z-0000000002");
  EXPECT_EQ(of("c-0000000010").ahead, "b-0000000009") << "9 is before 10";
  EXPECT_EQ(of("a-0000000011").ahead, "c-0000000010");
  EXPECT_EQ(of("a-0000000012").ahead, "a-0000000011");
}

TEST(ZookeeperQueue, AMissingNodeHasNoPlace) {
  const std::vector<std::string> children{"a-0000000001"};
  EXPECT_FALSE(place_among(children, "b-0000000001").there) << "another's number";
  EXPECT_FALSE(place_among({}, "a-0000000001").there);
  EXPECT_FALSE(place_among(children, "a-").there);
}

TEST(ZookeeperVersion, IsReadFromTheAnswer) {
  EXPECT_EQ(version_in("Zookeeper version: 3.8.0-5a02a05e, built on 2022\nLatency"), "3.8.0");
  EXPECT_EQ(version_in("Zookeeper version: 3.9.1--1, built"), "3.9.1");
  EXPECT_FALSE(version_in("srvr is not executed because it is not in the whitelist."));
  EXPECT_FALSE(version_in("Zookeeper version: "));
}

}  // namespace
}  // namespace lockbench::zookeeper
