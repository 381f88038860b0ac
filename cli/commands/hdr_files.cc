#include "cli/commands/hdr_files.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "results/file/loads.h"
#include "results/file/save.h"
#include "results/hdr/hdr.h"

namespace lockbench::cli {
namespace {

struct Tagged {
  std::string_view tag;
  results::Distribution results::Run::*distribution;
};

constexpr std::array kTagged{
    Tagged{"acquire", &results::Run::acquire}, Tagged{"hold", &results::Run::hold},
    Tagged{"release", &results::Run::release}, Tagged{"handoff", &results::Run::handoff}};

/// The text of each file, by its name.
using Files = std::map<std::string, std::string>;

/// "redis-queue", "redis-queue.demand-at-350-s".
std::string file_name_of(const results::Run& run, const results::Result& result) {
  if (!run.load || !results::has_several_loads(result)) return run.strategy;
  std::string load = results::label(*run.load);
  for (char& c : load) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  return run.strategy + "." + load;
}

Files files_of(const results::Result& result, double begun_seconds) {
  Files files;
  std::map<std::string, std::vector<results::HdrInterval>> logs;
  double start = 0;
  for (const results::Run& run : result.runs) {
    const std::string name = file_name_of(run, result);
    for (const auto& [tag, distribution] : kTagged) {
      if (!(run.*distribution).any()) continue;
      files[fmt::format("{}.{}.{}.hgrm", name, run.repetition, tag)] =
          results::to_hgrm(run.*distribution);
      logs[name].push_back({tag, start, run.duration_seconds, run.*distribution});
    }
    start += run.duration_seconds;
  }
  for (const auto& [name, intervals] : logs) {
    files[name + ".hlog"] = results::to_hlog(begun_seconds, intervals);
  }
  return files;
}

}  // namespace

bool save_hdr_files(const results::Result& result, std::chrono::system_clock::time_point begun,
                    const std::string& directory, Console& console) {
  const double begun_seconds = std::chrono::duration<double>(begun.time_since_epoch()).count();
  bool all_saved = true;
  for (const auto& [name, text] : files_of(result, begun_seconds)) {
    const auto saved = results::save(std::filesystem::path(directory) / name, text);
    if (!saved) {
      console.warn("not saved: " + saved.error());
    } else if (!saved->warning.empty()) {
      console.warn(saved->warning);
    }
    all_saved = all_saved && saved && saved->warning.empty();
  }
  return all_saved;
}

}  // namespace lockbench::cli
