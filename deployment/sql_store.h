#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "deployment/private_store.h"
#include "strategies/sql/session.h"

namespace lockbench::deployment {

/// The common part of databases: their faults that are a client's sessions and statements.
class SqlStore : public PrivateStore {
 public:
  using PrivateStore::PrivateStore;

  void begin_transaction() override;
  bool commit_transaction() override;
  /// Takes both kinds of locks: the other kind is free.
  tl::expected<void, std::string> wait_in_transaction(const std::string& key) override;
  /// The servers read no end of the connection while they work, by default.
  void abandon_statement(const std::string& mark, std::chrono::seconds time) override;

 protected:
  using Answer = sql::Answer;

  virtual std::unique_ptr<sql::Session> make_session(Env& env) const = 0;
  /// Waits for the key's lock by name and for that of its row, as long as they are granted.
  virtual StoreResult<Answer> take_both(sql::Session& session, const std::string& key) const = 0;
  /// A statement that takes this long.
  virtual std::string sleeping(std::chrono::seconds time) const = 0;

  /// How many connections it has room for: few are enough for hazards.
  static std::uint32_t room_for(const StoreRequest& request);
  std::unique_ptr<sql::Session> open_session() const { return make_session(*env_); }
  static StoreResult<Answer> call(sql::Session& session, const std::string& sql,
                                  const std::vector<std::string>& parameters = {});
  static Answer ask(sql::Session& session, const std::string& sql,
                    const std::vector<std::string>& parameters = {});
  /// On a new session.
  Answer ask(const std::string& sql, const std::vector<std::string>& parameters = {}) const;
  sql::Session& transaction() { return *transaction_; }

 private:
  const std::unique_ptr<Env> env_ = make_system_env(0);
  std::unique_ptr<sql::Session> transaction_;
};

}  // namespace lockbench::deployment
