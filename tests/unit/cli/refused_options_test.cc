#include <fmt/format.h>

#include <ostream>

#include "tests/unit/cli/fixtures.h"

namespace lockbench::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Refused {
  std::string option, value;
  /// What the message must say is allowed.
  std::string allowed;

  friend std::ostream& operator<<(std::ostream& out, const Refused& refused) {
    return out << refused.option << " \"" << refused.value << '"';
  }
};

class RefusedValue : public testing::TestWithParam<Refused> {};

TEST_P(RefusedValue, IsNamedWithWhatIsAllowed) {
  const auto& [option, value, allowed] = GetParam();
  ASSERT_EQ(value.find(allowed), std::string::npos) << "the value says it by itself";
  for (const auto& args :
       {std::vector{option, value}, std::vector{fmt::format("{}={}", option, value)}}) {
    const std::string error = error_of(args);
    EXPECT_THAT(error, StartsWith(option + ": "));
    EXPECT_THAT(error, HasSubstr(value));
    EXPECT_THAT(error, HasSubstr(allowed));
    EXPECT_THAT(error, Not(HasSubstr("\n")));
  }
}

class Refusals {
 public:
  Refusals() {
    of_the_load();
    of_the_lock();
  }
  std::vector<Refused> all;

 private:
  void refuse(const std::string& option, const std::string& allowed,
              const std::vector<std::string>& values) {
    for (const std::string& value : values) all.push_back({option, value, allowed});
  }
  void of_the_load();
  void of_the_lock();

  const std::string duration_ = "ns, us, ms, s, m or h, such as 250us";
};

void Refusals::of_the_load() {
  const std::string distribution =
      "exp(2ms), or uniform(1ms,3ms), or lognormal(2ms,20ms), or quantiles:FILE";
  refuse("--clients", "1 to 100000",
         {"0", "100001", "-1", "abc", "1.5", "99999999999999999999", "8x", " 8", "0x10", "+8"});
  refuse("--keys", "1 to 10000000 nor per-client",
         {"0", "10000001", "-1", "per-clinet", "1e3", "nan"});
  refuse("--load", "alone, demand, saturated, reacquire", {"idle"});
  refuse("--threads", "1 to 1024", {"0", "1025", "two"});
  refuse("--key-skew", "0 to 10", {"-0.1", "nan", "inf", "1e999", "10.1", "x"});
  refuse("--hot-set", "share=50%,keys=2500,move=10s",
         {"50%", "share=0%,keys=1", "share=150%,keys=1", "share=10%,keys=0", "share=10%",
          "share=10%,keys=5,move=0s", "share=10%,keys=5,now"});
  refuse("--hold", "at most 1h", {"2h", "exp(61m)"});
  refuse("--hold", distribution, {"-1ms", "1", "abc", "nan", "exp(1ms", "1e30s", "5 ms x"});
  refuse("--hold", "the first must not be above the second", {"uniform(3ms,1ms)"});
  refuse("--think", "at most 1h", {"2h"});
  refuse("--think", distribution, {"-1s", "inf", "uniform(1ms)"});
  refuse("--think", duration_, {"exp()"});
  refuse("--rate", "0.001 to 10000000",
         {"0", "-1", "nan", "inf", "-inf", "1e8", "1e-9", "1e999", "5/s"});
  refuse("--arrival", "constant, poisson", {"Poisson", "uniform"});
  refuse("--duration", "1ms to 168h", {"0s", "169h"});
  refuse("--duration", duration_, {"3", "-3s", "3 seconds", "infs", "nans"});
  refuse("--iterations", "1 to 1000000000000", {"0", "-5", "1e6", "18446744073709551616"});
  refuse("--warmup", "0s to 1h", {"61m"});
  refuse("--contended-grants", "1 to 1000000000", {"0", "-1"});
}

void Refusals::of_the_lock() {
  refuse("--ttl", "1ms to 24h", {"0s", "999us", "25h"});
  refuse("--ttl", duration_, {"10"});
  refuse("--acquire-timeout", "0s to 24h", {"25h"});
  refuse("--renew", "neither off nor auto nor a duration", {"on", "5", "-1s", "auto:1s"});
  refuse("--renew", "1ms to 24h", {"0s", "25h"});
  refuse("--renew-cap", "1ms to 168h", {"0s", "169h"});
  refuse("--nodes", "whole number from 1 to 15", {"0", "16", "-1", "five", "3.5"});
  refuse("--node-timeout", "100us to 1h", {"0s", "2h"});
  refuse("--replicas", "0 to 16", {"17", "-1", "two"});
  refuse("--wait-replicas", "1 to 16 nor all", {"0", "17", "none", "1.5"});
  refuse("--wait-timeout", "1ms to 1h", {"0s", "999us", "2h"});
  refuse("--wait", "poll:INTERVAL, backoff:MIN..MAX",
         {"poll", "poll:", "poll:-1ms", "backoff:1ms", "spin"});
  refuse("--wait", "(0 < MIN <= MAX)", {"backoff:5ms..1ms"});
  refuse("--wait", "0s to 1h", {"poll:2h", "backoff:1ms..2h"});
  refuse("--resource", "memory, redis, redis-fenced", {"disk"});
  refuse("--repeat", "1 to 1000", {"0", "1001", "-1"});
  refuse("--seed", "0 to 9223372036854775807", {"-1", "9223372036854775808", "0.5"});
  refuse("--store-timeout", "1ms to 1h", {"0s", "2h"});
  refuse("--rtt", "0s to 1h", {"2h"});
  refuse("--threshold", "did you mean acquire.p90", {"acquire.p98<5ms"});
  refuse("--shared-share", "from 0 to 1", {"-0.1", "1.1", "half"});
  refuse("--locks-per-section", "1 to 64", {"0", "65", "-1", "two"});
  refuse("--lock-order", "sorted, drawn, all-or-nothing", {"random"});
  refuse("--deadlock-timeout", "1ms to 1h", {"0s", "2h"});
  refuse("--lock-delay", "0s to 1h", {"2h"});
  refuse("--format", "table, json, csv, markdown", {"xml", "Table"});
  refuse("--metrics-listen", "such as 127.0.0.1:9464", {"x", "127.0.0.1:65536"});
  refuse("--linger", "0s to 168h", {"169h"});
}

INSTANTIATE_TEST_SUITE_P(All, RefusedValue, testing::ValuesIn(Refusals().all));

}  // namespace
}  // namespace lockbench::cli
