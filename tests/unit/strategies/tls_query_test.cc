#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/tls.h"

namespace lockbench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Any file that can be read.
const std::string file = "/proc/self/status";

TEST(TlsQuery, NamesFilesNameAndVersion) {
  const auto settings = parse_tls_query("?cacert=" + file + "&cert=%2Fproc/self/stat&key=" + file +
                                        "&server-name=db.example&min-tls=1.3");
  ASSERT_TRUE(settings) << settings.error();
  EXPECT_EQ(*settings, (TlsSettings{.ca_file = file,
                                    .certificate_file = "/proc/self/stat",
                                    .key_file = file,
                                    .server_name = "db.example",
                                    .only_1_3 = true}));
}

TEST(TlsQuery, MayBeEmpty) {
  EXPECT_EQ(parse_tls_query("").value(), TlsSettings{});
  EXPECT_EQ(parse_tls_query("?min-tls=1.2").value(), TlsSettings{});
}

TEST(TlsQuery, SaysWhatIsWrongAndWhatIsAllowed) {
  for (const auto& [query, said] : std::vector<std::pair<std::string, std::string>>{
           {"verify=none", "verify is not known"},
           {"min-tls=1.1", "min-tls must be 1.2 or 1.3"},
           {"cacert=/no/such/file", "cacert: /no/such/file cannot be read: No such file"},
           {"cacert=", "cacert needs a value"},
           {"server-name=a%0ab", "server-name needs a value"},
           {"server-name=%4", "server-name needs a value"},
           {"cert=" + file, "cert needs key beside it"},
           {"key=" + file, "key needs cert beside it"},
           {"server-name=a&server-name=b", "server-name is given twice"},
           {"hunter2", "not NAME=VALUE"},
           {"hunter2%21=x", "not NAME=VALUE"},
           {"min-tls=1.3&", ""},
           {"&min-tls=1.3", "not NAME=VALUE"}}) {
    const auto settings = parse_tls_query(query);
    if (said.empty()) {
      EXPECT_TRUE(settings) << query;
      continue;
    }
    ASSERT_FALSE(settings) << query;
    EXPECT_THAT(settings.error(), AllOf(HasSubstr(said), HasSubstr("; allowed: ?cacert=FILE"),
                                        Not(HasSubstr("hunter2"))));
  }
}

}  // namespace
}  // namespace lockbench
