#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/postgres/client/endpoint.h"

namespace lockbench::postgres {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PostgresEndpoint, ShowsNeitherUserNorPassword) {
  for (const auto& [dsn, display] : std::vector<std::pair<std::string, std::string>>{
           {"postgresql://ann:hunter2@db.example:6543/app", "db.example:6543"},
           {"postgres://ann:hunter2@db.example/app", "db.example:5432"},
           {"postgresql://ann:hunter2%40%2F%3A@db.example/app?sslmode=require", "db.example:5432"},
           {"postgresql://db.example/app?user=ann&password=hunter2", "db.example:5432"},
           {"postgresql://ann:hunter2@[::1]:6543/app", "[::1]:6543"},
           {"postgresql:///app?host=/run/postgresql&password=hunter2", "unix:/run/postgresql:5432"},
           {"host=db.example port=6543 user=ann password=hunter2", "db.example:6543"},
           {"host=db.example password='hunter2 \\' host=x'", "db.example:5432"},
           {"hostaddr=127.0.0.1 password=hunter2", "127.0.0.1:5432"},
           {"dbname=app password=hunter2", "local socket:5432"}}) {
    const auto endpoint = parse_endpoint(dsn);
    ASSERT_TRUE(endpoint) << dsn << ": " << endpoint.error();
    EXPECT_EQ(endpoint->display, display);
    EXPECT_EQ(endpoint->dsn, dsn);
  }
}

TEST(PostgresEndpoint, HasANameWhereThereIsOneToLookUp) {
  for (const auto& [dsn, name] : std::vector<std::pair<std::string, std::string>>{
           {"postgresql://ann@db.example:6543/app", "db.example"},
           {"host=localhost", "localhost"},
           {"host=127.0.0.1", ""},
           {"postgresql://[::1]/app", ""},
           {"host=db.example hostaddr=127.0.0.1", ""},
           {"host=one.example,other.example", ""},
           {"host=/run/postgresql", ""},
           {"host=@abstract", ""},
           {"dbname=app", ""}}) {
    EXPECT_EQ(parse_endpoint(dsn).value().name, name) << dsn;
  }
}

TEST(PostgresEndpoint, IsSecretAsFarAsItsModePromises) {
  for (const char* mode : {"require", "verify-ca", "verify-full"}) {
    const Secrecy secrecy = secrecy_of(fmt::format("host=db password=pw sslmode={}", mode));
    EXPECT_EQ(secrecy.encryption, fmt::format("sslmode={}", mode));
    EXPECT_EQ(secrecy.advice, "");
  }
  for (const char* mode : {"disable", "allow", "prefer"}) {
    const Secrecy secrecy = secrecy_of(fmt::format("postgresql://u:pw@db/app?sslmode={}", mode));
    EXPECT_EQ(secrecy.encryption, "");
    EXPECT_EQ(secrecy.advice, "use sslmode=verify-full");
  }
  for (const char* harmless :
       {"host=127.0.0.1 password=pw sslmode=disable",
        "host=/run/postgresql password=pw sslmode=prefer", "host=db sslmode=disable"}) {
    EXPECT_EQ(secrecy_of(harmless).advice, "") << harmless;
  }
}

TEST(PostgresEndpoint, RefusesOtherTextWithoutRepeatingIt) {
  for (const char* dsn :
       {"", "hunter2", "host=db.example hunter2", "nonsense=hunter2", "password='hunter2",
        "mysql://ann:hunter2@db.example/app", "postgresql://ann:hunter2%zz@db.example/app",
        // Not percent-encoded: libpq would take parts of it for the host, the port or the database.
        "postgresql://ann:x@hunter2@db.example/app", "postgresql://ann:1234/hunter2@db.example/app",
        "postgresql://ann:x/hunter2@db.example/app", "host=db.example port=hunter2"}) {
    const auto endpoint = parse_endpoint(dsn);
    ASSERT_FALSE(endpoint) << dsn << " shown as " << endpoint->display;
    EXPECT_THAT(endpoint.error(), Not(HasSubstr("hunter2")));
    EXPECT_THAT(endpoint.error(), HasSubstr("allowed: postgresql://"));
  }
}

TEST(AdvisoryNumber, IsFnv1a) {
  // Reference values of FNV-1a, 64 bits.
  EXPECT_EQ(static_cast<std::uint64_t>(advisory_number("")), 0xcbf29ce484222325ULL);
  EXPECT_EQ(static_cast<std::uint64_t>(advisory_number("a")), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(static_cast<std::uint64_t>(advisory_number("foobar")), 0x85944171f73967e8ULL);
}

TEST(Schema, IsNamedAfterTheRun) {
  EXPECT_EQ(schema_of_run("20261121T012530Z-4f3a9c"), "lockbench_20261121t012530z_4f3a9c");
  EXPECT_EQ(schema_of_key("lockbench:20261121T012530Z-4f3a9c:{postgres-row:1:7}"),
            "lockbench_20261121t012530z_4f3a9c");
}

TEST(Schema, IsAPlainNameForAnyKey) {
  const std::string long_key = "lockbench:" + std::string(60, '1') + ":k";
  for (const std::string& key :
       {std::string(), std::string("key"), std::string("lockbench:"), std::string("lockbench:x"),
        std::string("lockbench:a\";DROP:k"), std::string("lockbench:äöü:k"), long_key}) {
    const std::string schema = schema_of_key(key);
    EXPECT_THAT(schema, testing::MatchesRegex("lockbench_[a-z0-9_]*"));
    EXPECT_LE(schema.size(), 63U);
  }
}

}  // namespace
}  // namespace lockbench::postgres
