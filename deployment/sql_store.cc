#include "deployment/sql_store.h"

#include <fmt/format.h>

namespace lockbench::deployment {

std::uint32_t SqlStore::room_for(const StoreRequest& request) {
  constexpr std::uint32_t kFewClients = 200;
  return request.setup == Setup::load ? request.clients : kFewClients;
}

StoreResult<sql::Answer> SqlStore::call(sql::Session& session, const std::string& sql,
                                        const std::vector<std::string>& parameters) {
  return session.call({.name = "deployment", .sql = sql, .how = sql::Statement::How::once}, {},
                      parameters);
}

sql::Answer SqlStore::ask(sql::Session& session, const std::string& sql,
                          const std::vector<std::string>& parameters) {
  return need(call(session, sql, parameters));
}

sql::Answer SqlStore::ask(const std::string& sql,
                          const std::vector<std::string>& parameters) const {
  return ask(*open_session(), sql, parameters);
}

void SqlStore::begin_transaction() {
  transaction_ = open_session();
  ask(*transaction_, "BEGIN");
}

bool SqlStore::commit_transaction() {
  const auto answer = transaction_->call(
      {.name = "COMMIT", .sql = "COMMIT", .how = sql::Statement::How::once}, {}, {});
  return answer && answer->done() && answer->tag == "COMMIT";
}

tl::expected<void, std::string> SqlStore::wait_in_transaction(const std::string& key) {
  const auto answer = take_both(*transaction_, key);
  if (answer && answer->done()) return {};
  if (answer && answer->kind == Answer::Kind::lock_not_available) {
    return tl::unexpected<std::string>("the server ended the wait for the lock");
  }
  if (answer) throw Failure("the server ended the session of the waiting transaction");
  if (answer.error().kind != StoreError::Kind::rejected) {
    throw Failure("the waiting transaction: " + answer.error().message);
  }
  return tl::unexpected(answer.error().message);
}

void SqlStore::abandon_statement(const std::string& mark, std::chrono::seconds time) {
  const auto session = open_session();
  need(session->connect());
  std::stop_source stop;
  stop.request_stop();
  const auto answer = session->call({.name = "deployment",
                                     .sql = fmt::format("{} /* {} */", sleeping(time), mark),
                                     .how = sql::Statement::How::once},
                                    {}, {}, {.wait_until = {}, .stop = stop.get_token()});
  if (answer || answer.error().kind != StoreError::Kind::unanswered) {
    throw Failure("the statement was not left behind");
  }
  if (!testbed::comes_true(std::chrono::seconds(1), [&] { return runs_statement(mark); })) {
    throw Failure("the server ended the statement with its connection");
  }
}

}  // namespace lockbench::deployment
