#include "tests/conformance/postgres/probe.h"

#include <libpq-fe.h>

#include <stdexcept>

namespace lockbench::test {

void PostgresProbe::Finish::operator()(pg_conn* connection) const { PQfinish(connection); }

PostgresProbe::PostgresProbe(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str())) {
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  }
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
}

std::vector<std::string> PostgresProbe::ask(const std::string& sql,
                                            const std::vector<std::string>& values) {
  std::vector<const char*> raw;
  raw.reserve(values.size());
  for (const std::string& value : values) raw.push_back(value.c_str());
  const std::unique_ptr<PGresult, void (*)(PGresult*)> result(
      PQexecParams(connection_.get(), sql.c_str(), static_cast<int>(raw.size()), nullptr,
                   raw.data(), nullptr, nullptr, 0),
      PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    throw std::runtime_error(sql + ": " + PQerrorMessage(connection_.get()));
  }
  std::vector<std::string> cells;
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    for (int column = 0; column < PQnfields(result.get()); ++column) {
      cells.emplace_back(PQgetvalue(result.get(), row, column));
    }
  }
  return cells;
}

}  // namespace lockbench::test
