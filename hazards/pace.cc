#include "hazards/pace.h"

#include <fmt/format.h>

namespace lockbench::hazards {

void require_in_time(std::string_view step, TimePoint due, TimePoint happened_at,
                     Duration tolerance) {
  const auto in_milliseconds = [](Duration duration) {
    return std::chrono::round<std::chrono::milliseconds>(duration).count();
  };
  const Duration late = happened_at - due;
  if (late <= tolerance) return;
  throw Disturbed(fmt::format("disturbed: {} {} ms late, where {} ms are tolerated", step,
                              in_milliseconds(late), in_milliseconds(tolerance)));
}

}  // namespace lockbench::hazards
