#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategies/postgres/client/endpoint.h"

namespace lockbench::postgres {
namespace {

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
