#include <fmt/format.h>

#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Values of an option, and what the message must say is allowed.
struct Refused {
  std::string option, allowed;
  std::vector<std::string> values;
};

const std::string some_duration = "ns, us, ms, s, m or h, such as 250us";
const std::string distribution =
    "exp(2ms), or uniform(1ms,3ms), or lognormal(2ms,20ms), or quantiles:FILE";

const std::vector<Refused> all_refused{
    {"--clients",
     "1 to 100000",
     {"0", "100001", "-1", "abc", "1.5", "99999999999999999999", "8x", " 8", "0x10", "+8"}},
    {"--keys", "1 to 10000000 nor per-client", {"0", "10000001", "-1", "per-clinet", "1e3", "nan"}},
    {"--load", "alone, demand, saturated, reacquire", {"idle"}},
    {"--threads", "1 to 1024", {"0", "1025", "two"}},
    {"--key-skew", "0 to 10", {"-0.1", "nan", "inf", "1e999", "10.1", "x"}},
    {"--hot-set", "share=50%,keys=2500,move=10s", {"50%", "share=10%,keys=0"}},
    {"--hold", "at most 1h", {"2h", "exp(61m)"}},
    {"--hold", distribution, {"-1ms", "1", "abc", "nan", "exp(1ms", "1e30s", "5 ms x"}},
    {"--hold", "the first must not be above the second", {"uniform(3ms,1ms)"}},
    {"--think", "at most 1h", {"2h"}},
    {"--think", distribution, {"-1s", "inf", "uniform(1ms)"}},
    {"--think", some_duration, {"exp()"}},
    {"--rate",
     "0.001 to 10000000",
     {"0", "-1", "nan", "inf", "-inf", "1e8", "1e-9", "1e999", "5/s"}},
    {"--arrival", "constant, poisson", {"Poisson", "uniform"}},
    {"--duration", "1ms to 168h", {"0s", "169h"}},
    {"--duration", some_duration, {"3", "-3s", "3 seconds", "infs", "nans"}},
    {"--iterations", "1 to 1000000000000", {"0", "-5", "1e6", "18446744073709551616"}},
    {"--warmup", "0s to 1h", {"61m"}},
    {"--contended-grants", "1 to 1000000000", {"0", "-1"}},
    {"--ttl", "1ms to 24h", {"0s", "999us", "25h"}},
    {"--ttl", some_duration, {"10"}},
    {"--acquire-timeout", "0s to 24h", {"25h"}},
    {"--renew", "neither off nor auto nor a duration", {"on", "5", "-1s", "auto:1s"}},
    {"--renew", "1ms to 24h", {"0s", "25h"}},
    {"--renew-cap", "1ms to 168h", {"0s", "169h"}},
    {"--nodes", "whole number from 1 to 15", {"0", "16", "-1", "five", "3.5"}},
    {"--node-timeout", "100us to 1h", {"0s", "2h"}},
    {"--replicas", "0 to 16", {"17", "-1", "two"}},
    {"--wait-replicas", "1 to 16 nor all", {"0", "17", "none", "1.5"}},
    {"--wait-timeout", "1ms to 1h", {"0s", "999us", "2h"}},
    {"--wait",
     "poll:INTERVAL, backoff:MIN..MAX",
     {"poll", "poll:", "poll:-1ms", "backoff:1ms", "spin"}},
    {"--wait", "(0 < MIN <= MAX)", {"backoff:5ms..1ms"}},
    {"--wait", "0s to 1h", {"poll:2h", "backoff:1ms..2h"}},
    {"--resource", "memory, redis, redis-fenced", {"disk"}},
    {"--repeat", "1 to 1000", {"0", "1001", "-1"}},
    {"--seed", "0 to 9223372036854775807", {"-1", "9223372036854775808", "0.5"}},
    {"--store-timeout", "1ms to 1h", {"0s", "2h"}},
    {"--rtt", "0s to 1h", {"2h"}},
    {"--threshold", "close ones: acquire.p90", {"acquire.p98<5ms"}},
    {"--shared-share", "from 0 to 1", {"-0.1", "1.1", "half"}},
    {"--locks-per-section", "1 to 64", {"0", "65", "-1", "two"}},
    {"--lock-order", "sorted, drawn, all-or-nothing", {"random"}},
    {"--deadlock-timeout", "1ms to 1h", {"0s", "2h"}},
    {"--lock-delay", "0s to 1h", {"2h"}},
    {"--format", "table, json, csv, markdown", {"xml", "Table"}},
    {"--metrics-listen", "such as 127.0.0.1:9464", {"x", "127.0.0.1:65536"}},
    {"--linger", "0s to 168h", {"169h"}},
};

TEST(Options, ValuesThatAreRefusedAreNamedWithWhatIsAllowed) {
  for (const auto& [option, allowed, values] : all_refused) {
    for (const std::string& value : values) {
      ASSERT_EQ(value.find(allowed), std::string::npos) << "the value says it by itself";
      for (const auto& args :
           {std::vector{option, value}, std::vector{fmt::format("{}={}", option, value)}}) {
        const std::string error = error_of(args);
        EXPECT_THAT(error, AllOf(StartsWith(option + ": "), HasSubstr(value), HasSubstr(allowed),
                                 Not(HasSubstr("\n"))));
      }
    }
  }
}

}  // namespace
}  // namespace lockbench::cli
