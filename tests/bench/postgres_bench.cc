#include <benchmark/benchmark.h>
#include <libpq-fe.h>

#include <array>
#include <stdexcept>

#include "strategies/postgres/client/endpoint.h"
#include "testbed/servers/kinds.h"
#include "tests/bench/harness.h"

// What the harness adds to postgres-advisory: against the same two statements by libpq's blocking
// calls, each client on a key of its own, on one private server.

namespace lockbench {
namespace {

/// Started by whoever needs it first and stopped with the program.
const testbed::Server& server() {
  static const auto bed = testbed::Testbed::start();
  if (!bed) throw std::runtime_error(bed.error());
  static const auto postgres = testbed::start_postgres(**bed);
  if (!postgres) throw std::runtime_error(postgres.error());
  return **postgres;
}

std::string key_of(int client) { return "lockbench:bench:{" + std::to_string(client) + "}"; }

class BareClient {
 public:
  explicit BareClient(int client)
      : connection_(PQconnectdb(server().url().c_str())),
        number_(std::to_string(postgres::advisory_number(key_of(client)))) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) throw std::runtime_error("no connection");
    prepare("take", "SELECT nextval('lockbench_bench.fencing') FROM pg_advisory_lock($1::bigint)");
    prepare("free", "SELECT pg_advisory_unlock($1::bigint)");
  }

  void acquire_and_release() {
    call("take");
    call("free");
  }

 private:
  struct Deleter {
    void operator()(PGconn* connection) const { PQfinish(connection); }
    void operator()(PGresult* result) const { PQclear(result); }
  };
  using ResultPtr = std::unique_ptr<PGresult, Deleter>;

  void prepare(const char* name, const char* sql) {
    const ResultPtr result(PQprepare(connection_.get(), name, sql, 0, nullptr));
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) throw std::runtime_error(sql);
  }
  void call(const char* name) {
    const std::array<const char*, 1> values{number_.c_str()};
    const ResultPtr result(PQexecPrepared(connection_.get(), name, static_cast<int>(values.size()),
                                          values.data(), nullptr, nullptr, 0));
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) throw std::runtime_error(name);
  }

  const std::unique_ptr<PGconn, Deleter> connection_;
  const std::string number_;
};

void harness_against_libpq(benchmark::State& state) {
  HarnessClient harness("postgres-advisory", {{"postgres", {server().url()}}},
                        key_of(state.thread_index()));
  harness.acquire_and_release();  // the first makes the schema that both use
  BareClient bare(state.thread_index());
  in_turn(state, harness, bare);
}
BENCHMARK(harness_against_libpq)
    ->Name("postgres_advisory/harness_against_libpq")
    ->Threads(1)
    ->Threads(8)
    ->UseRealTime();

}  // namespace
}  // namespace lockbench
