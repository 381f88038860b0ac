#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "watch/sighting.h"
#include "watch/sources/lock_state.h"
#include "watch/sources/postgres_look.h"

namespace lockbench::watch {

/// Makes sightings of looks at one PostgreSQL. For one thread.
class PostgresBook {
 public:
  /// Follows locks whose names match one of the patterns, `most` of them at once.
  PostgresBook(std::vector<std::string> patterns, std::uint64_t most)
      : patterns_(std::move(patterns)), most_(most) {}

  /// The locks of one look, and those that were there at the look before and are free now. Of a
  /// look that was cut, those that no look has shown for a while. `at`: not after the look.
  std::vector<Sighting> locks(const PostgresLook& look, TimePoint at);
  /// The rows of one table. `table`: what the names of its locks begin with, without the colon.
  /// The look is not before `asked_at` and not after `answered_at`.
  std::vector<Sighting> rows(const std::string& table, const PostgresTableLook& look,
                             TimePoint asked_at, TimePoint answered_at);

  /// Locks that were not followed, since the last call: there were too many.
  std::uint64_t take_left_out();

 private:
  using Known = std::map<std::string, Sighting>;

  bool follows(const std::string& name) const;
  /// The latest sightings are now these: notes since when each party is there, adds those that are
  /// free now.
  std::vector<Sighting> replace(Known& known, Known now, bool first, bool cut, TimePoint at);

  const std::vector<std::string> patterns_;
  const std::uint64_t most_;
  std::uint64_t left_out_ = 0;
  bool looked_ = false;
  Known locks_;
  struct Row {
    SteadyTime begun, ends;
  };
  struct Table {
    bool looked = false;
    Known held;
    std::map<std::string, Row> rows;  ///< by the name of their lock
  };
  std::map<std::string, Table> tables_;
};

}  // namespace lockbench::watch
