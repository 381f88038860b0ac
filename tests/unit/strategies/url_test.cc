#include "strategies/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace lockbench {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const UrlForm form{.what = "a test URL",
                   .allowed = "x://host",
                   .schemes = {"x", ""},
                   .default_port = 7,
                   .max_hosts = 3,
                   .login = UrlForm::Login::user};

TEST(Url, HasSchemeLoginHostsAndPath) {
  const auto url = parse_url("x://a%3An:p%2F%40@h:1,[::1]:2,[fe80::1]/path?q=1", form);
  ASSERT_TRUE(url) << url.error();
  EXPECT_EQ(url->scheme, "x");
  EXPECT_EQ(url->user, "a:n");
  EXPECT_EQ(url->password, "p/@");
  EXPECT_THAT(url->hosts,
              ElementsAre(HostPort{"h", 1}, HostPort{"::1", 2}, HostPort{"fe80::1", 7}));
  EXPECT_EQ(url->path, "/path?q=1");
  EXPECT_EQ(url->hosts[1].display(), "[::1]:2");
}

TEST(Url, HasAQueryWhereThatIsAllowed) {
  UrlForm with_query = form;
  with_query.query = true;
  for (const auto& [text, path, query] :
       std::vector<std::array<std::string, 3>>{{"x://h:1/path?a=/b", "/path", "a=/b"},
                                               {"x://u:p@h:1?a=/b", "", "a=/b"},
                                               {"x://u:p?q@h:1/?a", "/", "a"},
                                               {"h:1?", "", ""}}) {
    const auto url = parse_url(text, with_query);
    ASSERT_TRUE(url) << text << ": " << url.error();
    EXPECT_EQ(url->hosts.front().port, 1);
    EXPECT_EQ(url->path, path);
    EXPECT_EQ(url->query, query);
  }
  EXPECT_FALSE(parse_url("x://u:p?/@h:1", with_query)) << "a slash in a password must be encoded";
  EXPECT_FALSE(parse_url("x://h?a=b", form)) << "settings must not be ignored";
}

TEST(Url, ErrorsSayWhatIsWrongAndWhatIsAllowedAndTellNoSecret) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"y://u:hunter2@h", "not a test URL"},
           {"x://u:hunter2%4@h", "credentials must be user or user:password, percent-encoded"},
           {"x://u:hunter2/@h", "credentials must be"},
           {"x://u:hunter2@", "the host is missing"},
           {"h,hunter2,", "the host is missing"},
           {"u:hunter2@a,b,c,d", "at most 3 hosts"},
           {"h:hunter2", "the port must be a number from 1 to 65535"},
           {"u:hunter2@[::1", "a [ without its ]"},
           {"[::1]hunter2", "unexpected text after the host"},
           {"hunter2 h", "a space in the host name"},
           {"host=hunter2", "not a host name"}}) {
    const auto url = parse_url(text, form);
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(url.error(), HasSubstr(why)) << text;
    EXPECT_THAT(url.error(), HasSubstr("; allowed: x://host"));
    EXPECT_THAT(url.error(), Not(HasSubstr("hunter2")));
  }
}

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
