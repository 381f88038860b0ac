#include "hazards/words.h"

namespace lockbench::hazards {

std::string_view words(AcquireOutcome outcome) {
  switch (outcome) {
    case AcquireOutcome::acquired:
      return "is granted the lock";
    case AcquireOutcome::timed_out:
      return "has waited in vain";
    case AcquireOutcome::refused:
      return "finds the lock taken";
    case AcquireOutcome::failed:
      return "cannot ask for the lock";
    case AcquireOutcome::unknown:
      return "does not know whether it was granted the lock";
    case AcquireOutcome::abandoned:
      return "has given up";
  }
  return "?";
}

std::string_view words(ReleaseOutcome outcome) {
  switch (outcome) {
    case ReleaseOutcome::released:
      return "has released a lock";
    case ReleaseOutcome::not_owner:
      return "is told at its release that the lock is not its own";
    case ReleaseOutcome::failed:
      return "does not know whether it has released the lock";
  }
  return "?";
}

std::string_view words(RenewOutcome outcome) {
  switch (outcome) {
    case RenewOutcome::renewed:
      return "has renewed a lock";
    case RenewOutcome::not_owner:
      return "is told at its renewal that the lock is not its own";
    case RenewOutcome::failed:
      return "does not know whether it has renewed the lock";
    case RenewOutcome::unsupported:
      return "has nothing to renew";
  }
  return "?";
}

std::string_view words(loadgen::WriteResult result) {
  switch (result) {
    case loadgen::WriteResult::accepted:
      return "has written the counter";
    case loadgen::WriteResult::rejected_stale:
      return "is turned away by the counter: its fencing number is old";
    case loadgen::WriteResult::unknown:
    case loadgen::WriteResult::failed:
      return "could not write the counter";
  }
  return "?";
}

}  // namespace lockbench::hazards
