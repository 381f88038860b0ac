#pragma once

#include <sys/types.h>

#include <vector>

namespace lockbench::test {

struct Process {
  char state = 0;  ///< from /proc: 'T' is stopped, 'Z' is dead; 0: no such process
  pid_t parent = 0;

  bool ended() const { return state == 0 || state == 'Z'; }
};

Process look_at(pid_t pid);
/// Includes zombies.
std::vector<pid_t> descendants_of(pid_t ancestor);

/// Adopts orphans, as the first process of a container does. It belongs to their session, so that
/// the kernel does not wake stopped ones.
class Foster {
 public:
  Foster();
  Foster(const Foster&) = delete;
  Foster& operator=(const Foster&) = delete;
  ~Foster();

  /// Whether all of these end soon. Kills and reaps adopted ones.
  static bool all_end(const std::vector<pid_t>& processes);
};

}  // namespace lockbench::test
