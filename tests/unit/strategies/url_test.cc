#include "strategies/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace lockbench {
namespace {

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

TEST(Url, NeedsOnlyAHost) {
  const auto url = parse_url("h", form);
  ASSERT_TRUE(url) << url.error();
  EXPECT_THAT(url->hosts, ElementsAre(HostPort{"h", 7}));
  EXPECT_TRUE(url->scheme.empty() && url->user.empty() && url->password.empty());
  EXPECT_TRUE(url->path.empty());
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

}  // namespace
}  // namespace lockbench
