#include "strategies/postgres/client/schema.h"

#include <fmt/format.h>

namespace lockbench::postgres {

Statement make_schema(const std::string& schema, Duration timeout) {
  // Two at once could both find nothing there, and one of them would fail. The lock's pair of
  // numbers
  // ("lock", "bnch") is apart from the single numbers that stand for keys.
  return {.name = "CREATE SCHEMA",
          .sql = fmt::format(R"(
SET default_transaction_isolation = 'read committed';
SET lock_timeout = {1};
SELECT pg_advisory_xact_lock(1819239275, 1651401576);
CREATE SCHEMA IF NOT EXISTS {0};
CREATE SEQUENCE IF NOT EXISTS {0}.fencing CACHE 1;
CREATE TABLE IF NOT EXISTS {0}.lock_row (key text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS {0}.lease (key text PRIMARY KEY, owner text, lock_until timestamptz NOT NULL);
)",
                             schema, ceil_milliseconds(timeout)),
          .how = Statement::How::script};
}

}  // namespace lockbench::postgres
