#include "watch/sources/sql_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "watch/sources/keys.h"

namespace lockbench::watch {
namespace {

using nlohmann::json;
using sql::Answer;

/// Shortest interval between looks: each stops all locking on the server for a moment.
constexpr Duration kShortest = std::chrono::milliseconds(20);
/// Looks take at most a tenth of the time: slow ones are made less often.
constexpr int kPart = 10;
constexpr std::string_view kNotInTime = "its catalogue cannot be read in time";

bool is_true(const json& value) { return value == json(true) || value == json(1U); }

}  // namespace

SqlWatch::SqlWatch(const Watching& watching)
    : Watching(watching),
      // Without patterns, look at all locks and propose them.
      book_({.locks = request_.locks.empty() ? std::vector<std::string>{"*"} : request_.locks,
             .exclude = request_.exclude},
            request_.most_locks) {}

void SqlWatch::run() {
  reporter().facts(facts());
  while (!stopped()) {
    const TimePoint begun_at = env_.now();
    look_at_locks();
    const Duration took = took_;
    look_at_tables();
    env_.wait(nullptr, begun_at + std::max(shortest(), kPart * took), stop_);
  }
}

SourceFacts SqlWatch::facts() {
  SourceFacts facts{
      .endpoint = session().display(),
      .way = fmt::format("looks at {}{} every {} or less often", locks_in_,
                         tables_.empty() ? "" : " and lock tables", format_duration(shortest())),
      .accuracy = Accuracy::sampled,
      .unseen = {"holds between two looks: short ones are missed more often than long ones, and "
                 "two holds of one session appear as one if their gap is between two looks"}};
  describe(facts);
  for (const std::string& table : closed_) {
    facts.unseen.push_back(fmt::format("the lock table {}: SELECT is not granted", table));
  }
  return facts;
}

Duration SqlWatch::shortest() const {
  const double rounds = request_.budget / (tables_.empty() ? 1 : 2);
  return std::max(kShortest, std::chrono::duration_cast<Duration>(
                                 std::chrono::duration<double>(1 / std::max(rounds, 1e-3))));
}

std::optional<std::string> SqlWatch::try_ask(std::string_view name, const std::string& select,
                                             std::string* refused) {
  // The server times out before the client, which would have to reconnect.
  const Duration longest = request_.command_timeout * 3 / 4;
  const sql::Statement statement =
      reading(name, select, std::max<std::int64_t>(ceil_milliseconds(longest), 1));
  const TimePoint asked_at = env_.now();
  auto answer = session().call(statement, {}, {}, {.wait_until = {}, .stop = stop_});
  const TimePoint now = env_.now();
  took_ = now - asked_at;
  const bool rejected = !answer && answer.error().kind == StoreError::Kind::rejected;
  // A late rejection is the server's timeout, unless logging in took the time.
  const bool late = rejected && took_ >= longest && answered_;
  if (!answer && !late && (!rejected || refused == nullptr)) {
    throw Failure(answer.error().message);
  }
  answered_ = true;
  if (!answer) {
    if (!late) *refused = answer.error().message;
    return std::nullopt;
  }
  budget_.answered(took_, now);
  switch (answer->kind) {
    case Answer::Kind::done:
      return std::move(answer->value);
    case Answer::Kind::lock_not_available:
    case Answer::Kind::deadlock:
    case Answer::Kind::not_serializable:
      return std::nullopt;
    case Answer::Kind::cancelled:
      misread("stopped");
    case Answer::Kind::session_over:
      break;
  }
  misread("the server has ended the session");
}

std::string SqlWatch::ask(std::string_view name, const std::string& select) {
  budget_.owe(1);
  auto answer = try_ask(name, select);
  if (!answer) misread(kNotInTime);
  return *std::move(answer);
}

void SqlWatch::find_tables(const std::string& select) {
  const json lines = json::parse(ask("lock tables", select), nullptr, false);
  if (!lines.is_array()) misread("its tables cannot be read");
  for (const json& line : lines) {
    const bool fits =
        line.is_array() && line.size() == 4 && line[0].is_string() && line[1].is_string();
    if (!fits) continue;
    SqlTable table{.schema = line[0].get<std::string>(),
                   .table = line[1].get<std::string>(),
                   .has_locked_at = is_true(line[3])};
    if (is_true(line[2])) {
      tables_.push_back(std::move(table));
    } else {
      closed_.push_back(table.display());
    }
  }
}

void SqlWatch::look_at_locks() {
  if (!spend(1)) return;
  const TimePoint asked_at = env_.now();
  const auto said = try_ask("locks", lock_look());
  if (!said) misread(kNotInTime);
  const auto look = read_lock_look(*said);
  if (!look) misread(look.error());
  reporter().restored();
  take(book_.locks(*look, asked_at, tells_waiters_));
  reporter().missed(look->malformed, fmt::format("lines of {} that cannot be read", locks_in_));
  if (look->cut) {
    reporter().missed(1, fmt::format("more than {} locks in {} at once", kMostLocks, locks_in_));
  }
}

void SqlWatch::look_at_tables() {
  // A look at a table without an index reads all of it, so it has its own pace.
  if (tables_.empty() || env_.now() < tables_at_ || !spend(1)) return;
  const TimePoint asked_at = env_.now();
  const auto said = try_ask("lock tables", table_look());
  const TimePoint answered_at = env_.now();
  tables_at_ = asked_at + kPart * took_;
  if (!said) {
    return reporter().missed(1, "a lock table was locked itself, or took too long to read");
  }
  const auto looks = read_table_look(*said, tables_.size());
  if (!looks) misread(looks.error());
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const SqlTableLook& look = (*looks)[i];
    take(book_.rows(tables_[i].display(), look, asked_at, answered_at));
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
