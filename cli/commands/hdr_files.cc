#include "cli/commands/hdr_files.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <utility>

#include "results/file/loads.h"
#include "results/file/save.h"
#include "results/tables/hgrm.h"

namespace lockbench::cli {
namespace {

struct MeasuredTime {
  std::string_view name;
  results::Distribution results::Run::*distribution;
};

constexpr std::array kTimes{MeasuredTime{"acquire", &results::Run::acquire},
                            MeasuredTime{"hold", &results::Run::hold},
                            MeasuredTime{"release", &results::Run::release},
                            MeasuredTime{"handoff", &results::Run::handoff}};

/// The text of each file, by its name.
using Files = std::map<std::string, std::string>;

/// "redis-queue", "redis-queue.demand-at-350-s".
std::string file_name_of(const results::Run& run, const results::Result& result) {
  if (!results::loads_differ(result)) return run.strategy;
  std::string load = results::label(run.load);
  for (char& c : load) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.') c = '-';
  }
  return run.strategy + "." + load;
}

Files files_of(const results::Result& result) {
  Files files;
  for (const results::Run& run : result.runs) {
    const std::string name = file_name_of(run, result);
    for (const auto& [time, distribution] : kTimes) {
      if (!(run.*distribution).any()) continue;
      files[fmt::format("{}.{}.{}.hgrm", name, run.repetition, time)] =
          results::to_hgrm(run.*distribution);
    }
  }
  return files;
}

}  // namespace

bool save_hdr_files(const results::Result& result, const std::string& directory, Console& console) {
  bool all_saved = true;
  for (const auto& [name, text] : files_of(result)) {
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
