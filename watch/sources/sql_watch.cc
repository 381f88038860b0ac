#include "watch/sources/sql_watch.h"

#include <algorithm>
#include <utility>

#include "watch/sources/keys.h"

namespace lockbench::watch {
namespace {

using sql::Answer;

/// Shortest interval between looks: each stops all locking on the server for a moment.
constexpr Duration kShortest = std::chrono::milliseconds(20);
/// Looks take at most a tenth of the time: slow ones are made less often.
constexpr int kPart = 10;
constexpr std::string_view kNotInTime = "its catalogue cannot be read in time";

}  // namespace

SqlWatch::SqlWatch(const Watching& watching)
    : Watching(watching),
      // Without patterns, look at all locks and propose them.
      book_({.locks = request_.locks.empty() ? std::vector<std::string>{"*"} : request_.locks,
             .exclude = request_.exclude},
            request_.most_locks) {}

void SqlWatch::run() {
  facts_.endpoint = session_->display();
  facts_.way = fmt::format("looks at {}{}{} every {} or less often", locks_in_,
                           locks_.empty() || tables_.empty() ? "" : " and ",
                           tables_.empty() ? "" : "lock tables", format_duration(shortest()));
  facts_.unseen.insert(
      facts_.unseen.begin(),
      {"holds between two looks: short ones are missed more often than long ones, and two holds of "
       "one session appear as one if their gap is between two looks",
       "whether a session's lock was released or the session ended",
       "behind a pooler or proxy that shares sessions: which client has a lock"});
  reporter().facts(facts_);
  while (!stopped()) {
    const TimePoint begun_at = env_.now();
    look_at_locks();
    const Duration took = took_;
    look_at_tables();
    env_.wait(nullptr, begun_at + std::max(shortest(), kPart * took), stop_);
  }
}

Duration SqlWatch::shortest() const {
  const double rounds = request_.budget / (tables_.empty() ? 1 : 2);
  return std::max(kShortest, std::chrono::duration_cast<Duration>(
                                 std::chrono::duration<double>(1 / std::max(rounds, 1e-3))));
}

std::optional<std::string> SqlWatch::try_ask(std::string_view name, std::string_view select,
                                             std::string* refused) {
  const sql::Statement statement{.name = name,
                                 .sql = fmt::format("{} {}", before_, select),
                                 .how = how_,
                                 .answered = "SELECT"};
  const TimePoint asked_at = env_.now();
  auto answer = session_->call(statement, {}, {}, {.wait_until = {}, .stop = stop_});
  const TimePoint now = env_.now();
  took_ = now - asked_at;
  const bool rejected = !answer && answer.error().kind == StoreError::Kind::rejected;
  // A late rejection is the server's timeout, unless logging in took the time.
  const bool late = rejected && took_ >= longest() && answered_;
  if (!answer && !late) {
    if (!rejected || refused == nullptr) throw Failure(answer.error().message);
    *refused = answer.error().message;
  }
  answered_ = true;
  if (!answer) return std::nullopt;
  budget_.answered(took_, now);
  if (answer->done()) return std::move(answer->value);
  if (answer->kind == Answer::Kind::cancelled) misread("stopped");
  if (answer->kind == Answer::Kind::session_over) misread("the server has ended the session");
  return std::nullopt;
}

std::optional<std::string> SqlWatch::ask(std::string_view name, std::string_view select,
                                         std::string* refused) {
  budget_.owe(1);
  auto answer = try_ask(name, select, refused);
  if (!answer && (refused == nullptr || refused->empty())) misread(kNotInTime);
  return answer;
}

void SqlWatch::find_tables(std::string_view select, std::string (*rows_of)(const SqlTable&)) {
  auto found = read_tables(*ask("lock tables", select));
  if (!found) misread(found.error());
  for (SqlTable& table : found->lines) {
    if (!table.readable) {
      facts_.unseen.push_back(fmt::format("the lock table {}: SELECT is not granted", table.name));
      continue;
    }
    facts_.unseen.push_back(
        fmt::format("the time zone of {}: times without one are read as UTC", table.name));
    rows_ += (rows_.empty() ? "SELECT concat('[', " : ", ',', ") + rows_of(table);
    tables_.push_back(std::move(table));
  }
  rows_ += ", ']')";
}

void SqlWatch::look_at_locks() {
  if (locks_.empty()) return reporter().restored();
  if (!spend(1)) return;
  const TimePoint asked_at = env_.now();
  const auto said = try_ask("locks", locks_);
  if (!said) misread(kNotInTime);
  const auto look = read_locks(*said);
  if (!look) misread(look.error());
  reporter().restored();
  auto seen = book_.locks(*look, asked_at);
  if (facts_.waiters.empty()) {
    for (Sighting& one : seen) {
      one.waiting.reset();
      one.waiters.reset();
    }
  }
  take(std::move(seen));
  reporter().missed(look->malformed, fmt::format("lines of {} that cannot be read", locks_in_));
  if (look->cut) {
    reporter().missed(1, fmt::format("more than {} locks in {} at once", kMostLocks, locks_in_));
  }
}

void SqlWatch::look_at_tables() {
  // A look at a table without an index reads all of it, so it has its own pace.
  if (tables_.empty() || env_.now() < tables_at_ || !spend(1)) return;
  const TimePoint asked_at = env_.now();
  const auto said = try_ask("lock tables", rows_);
  const TimePoint answered_at = env_.now();
  tables_at_ = asked_at + kPart * took_;
  if (!said) {
    return reporter().missed(1, "a lock table was locked itself, or took too long to read");
  }
  const auto looks = read_table_look(*said, tables_.size());
  if (!looks) misread(looks.error());
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const SqlTableLook& look = (*looks)[i];
    take(book_.rows(tables_[i].name, look, asked_at, answered_at));
    reporter().missed(look.malformed, "rows of lock tables that cannot be read");
    if (look.cut) {
      reporter().missed(1, fmt::format("more than {} locks in a table at once", kMostTableRows));
    }
  }
}

void SqlWatch::take(std::vector<Sighting> seen) {
  reporter().missed(book_.take_left_out(),
                    fmt::format("more than {} locks at once", request_.most_locks));
  if (!request_.locks.empty()) return reporter().seen(std::move(seen));
  for (const Sighting& sighting : seen) reporter().proposed(generalised(sighting.lock));
}

}  // namespace lockbench::watch
