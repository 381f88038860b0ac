#include "tests/unit/arrows/arrows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;

/// A room is a folder with everything below it that is no room of its own.
struct Room {
  std::string_view folder;
  /// The rooms it may include besides itself, separated by spaces; "strategies/" stands for
  /// strategies and all rooms below.
  std::string_view may_include;
};

constexpr std::string_view kEverything = "everything";

constexpr std::array kRooms{
    Room{"testbed", ""},
    Room{"results", ""},
    Room{"strategies", ""},
    Room{"deployment", "testbed strategies/ results"},
    Room{"loadgen/record", "strategies/ results"},
    Room{"loadgen/fibers", "strategies"},
    Room{"loadgen/run", "loadgen/record loadgen/fibers strategies/ results"},
    Room{"loadgen/experiments", "loadgen/record loadgen/run deployment strategies/ results"},
    Room{"loadgen/cluster", "loadgen/record loadgen/run deployment strategies/ results"},
    // The snapshots that it reads are made of types of strategies and results.
    Room{"exporter", "watch loadgen/ strategies/ results"},
    Room{"watch", "deployment loadgen/ strategies/ results"},
    Room{"hazards", "deployment loadgen/ strategies/ results"},
    // An answer quotes what the scenarios declare.
    Room{"choose", "hazards deployment loadgen/ strategies/ results"},
    Room{"cli/console",
         "cli/options choose hazards exporter watch deployment loadgen/ strategies/ testbed "
         "results"},
    Room{"cli/options",
         "choose hazards exporter watch deployment loadgen/ strategies/ testbed results"},
    Room{"cli/commands", kEverything},
    Room{"cli", kEverything},
};

/// "strategies/redis" is below "strategies", and a folder is below itself.
bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

/// A store is a room of its own: the core knows no store, and a store knows no other.
std::optional<Room> store_of(std::string_view path) {
  constexpr std::string_view kStrategies = "strategies/";
  constexpr std::array<std::string_view, 2> kCore{"waiting", "transport"};
  if (!path.starts_with(kStrategies)) return std::nullopt;
  const std::string_view rest = path.substr(kStrategies.size());
  const std::string_view folder = rest.substr(0, rest.find('/'));
  const bool core = std::find(kCore.begin(), kCore.end(), folder) != kCore.end();
  if (core || folder.size() == rest.size()) return std::nullopt;
  return Room{path.substr(0, kStrategies.size() + folder.size()), "strategies"};
}

/// Nothing for a path in a folder that the table does not name.
std::optional<Room> room_of(std::string_view path) {
  std::optional<Room> found = store_of(path);
  if (found) return found;
  for (const Room& room : kRooms) {
    if (!is_below(path, room.folder)) continue;
    if (!found || room.folder.size() > found->folder.size()) found = room;
  }
  return found;
}

bool allows(const Room& from, const Room& to) {
  if (from.folder == to.folder || from.may_include == kEverything) return true;
  std::string_view rest = from.may_include;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word == to.folder) return true;
    if (word.ends_with('/') && is_below(to.folder, word.substr(0, word.size() - 1))) return true;
  }
  return false;
}

/// Why `file` must not include `included`; nothing if it may. Both are paths from the root.
std::optional<std::string> objection(std::string_view file, std::string_view included) {
  const std::optional<Room> from = room_of(file);
  const std::optional<Room> to = room_of(included);
  if (!from) return "its folder is not in the table of rooms";
  if (!to) return fmt::format("{} must not include what is in no room", from->folder);
  if (allows(*from, *to)) return std::nullopt;
  return fmt::format("{} must not include {}", from->folder, to->folder);
}

/// The paths of the lines `#include "folder/file.h"`. A name without a folder is generated or the
/// file's own.
std::vector<std::string> includes_of(const fs::path& file) {
  constexpr std::string_view kStart = "#include \"";
  std::vector<std::string> paths;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(kStart)) continue;
    const std::string path = line.substr(kStart.size(), line.rfind('"') - kStart.size());
    if (path.find('/') != std::string::npos) paths.push_back(path);
  }
  return paths;
}

bool is_source(const fs::path& path) {
  return path.extension() == ".cc" || path.extension() == ".h" || path.extension() == ".in";
}

}  // namespace

std::vector<std::string> forbidden_includes(const fs::path& root) {
  constexpr std::array<std::string_view, 4> kNotProduct{"build", "cmake", "tests", "docs"};
  std::vector<std::string> found;
  for (const auto& top : fs::directory_iterator(root)) {
    const std::string name = top.path().filename().string();
    const bool skipped =
        std::find(kNotProduct.begin(), kNotProduct.end(), name) != kNotProduct.end();
    if (!top.is_directory() || skipped || name.starts_with('.')) continue;
    for (const auto& entry : fs::recursive_directory_iterator(top.path())) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      const std::string file = entry.path().lexically_relative(root).string();
      for (const std::string& included : includes_of(entry.path())) {
        if (const auto why = objection(file, included)) {
          found.push_back(fmt::format("{} includes {}: {}", file, included, *why));
        }
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace lockbench::test
