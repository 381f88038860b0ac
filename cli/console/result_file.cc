#include "cli/console/result_file.h"

#include "cli/console/publish.h"
#include "results/file/json.h"
#include "results/file/save.h"

namespace lockbench::cli {

void ResultFile::keep(const results::Result& result) {
  if (is_stdout()) return;
  const TimePoint began = BootClock::now();
  const auto kept = results::replace(path_, results::to_json(result));
  kept_at_ = BootClock::now();
  took_ = kept_at_ - began;
  if (kept || failed_) return;
  failed_ = true;
  console_.warn("not saved so far: " + kept.error());
}

bool ResultFile::has_time() const {
  constexpr int kLeastPause = 20;
  return BootClock::now() - kept_at_ >= kLeastPause * took_;
}

bool ResultFile::save(const results::Result& result) {
  if (is_stdout()) return print_text(results::to_json(result));
  const auto saved = results::save(path_, results::to_json(result));
  if (!saved) {
    console_.warn("not saved: " + saved.error());
    return false;
  }
  if (!saved->warning.empty()) console_.warn(saved->warning);
  const std::string path = saved->path.string();
  console_.event("saved", {{"file", path}}, "saved in " + path);
  return saved->warning.empty();
}

}  // namespace lockbench::cli
