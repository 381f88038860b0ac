#pragma once

#include <sys/types.h>

#include <vector>

namespace lockbench::test {

struct Process {
  char state = 0;  ///< as /proc tells it: 'T' stands still, 'Z' is dead; 0: there is none
  pid_t parent = 0;

  bool ended() const { return state == 0 || state == 'Z'; }
};

Process look_at(pid_t pid);
/// Those that have ended but were not waited for included.
std::vector<pid_t> descendants_of(pid_t ancestor);

/// Adopts orphans, as the first process of a container does. It is of their session, so that the
/// kernel does not wake those that are stopped.
class Foster {
 public:
  Foster();
  Foster(const Foster&) = delete;
  Foster& operator=(const Foster&) = delete;
  ~Foster();

  /// Whether all of these have ended, or soon will have. Kills and buries those that it adopted.
  static bool all_end(const std::vector<pid_t>& processes);
};

}  // namespace lockbench::test
