#include "loadgen/cluster/part.h"

#include <fmt/format.h>

#include <filesystem>

#include "loadgen/cluster/wire.h"
#include "results/file/save.h"

namespace lockbench::loadgen::cluster {
namespace {

/// The first bytes of such a file; the build that wrote it follows on the same line.
constexpr std::string_view kName = "lockbench.part/1 ";

std::string first_line(const std::string& build) { return std::string(kName) + build + "\n"; }

}  // namespace

std::string path_of(const Order& order, int rank) {
  return fmt::format("{}.rank-{}", order.part_path, rank);
}

tl::expected<void, std::string> save(const PartFile& file) {
  const std::string path = path_of(file.order, file.part.rank);
  if (auto writable = results::check_writable(path); !writable) return writable;
  return results::replace(path, first_line(file.part.hello.build) + to_bytes(file));
}

void forget(const Order& order, int rank) {
  std::error_code ignored;
  std::filesystem::remove(path_of(order, rank), ignored);
}

bool is_part(const std::string& text) { return text.starts_with(kName); }

tl::expected<PartFile, std::string> read_part(const std::string& text, const std::string& build) {
  const auto bad = [](const char* why) { return tl::unexpected<std::string>(why); };
  if (!is_part(text)) return bad("it is no file of a rank");
  const std::string line = first_line(build);
  if (!text.starts_with(line)) {
    return bad("another build of lockbench wrote it, and only that can read it");
  }
  PartFile file;
  if (!from_bytes(std::string_view(text).substr(line.size()), file)) return bad("it is damaged");
  constexpr int kMost = 10'000'000, kMostRanks = 100'000;
  const Workload& workload = file.order.workload;
  const bool possible = workload.clients > 0 && workload.clients <= kMost && workload.keys > 0 &&
                        workload.keys <= Trace::kMostKeys * 8 && file.ranks > 0 &&
                        file.ranks <= kMostRanks && file.nodes >= 0 && file.nodes < 1000 &&
                        file.part.rank >= 0 && file.part.rank < file.ranks;
  if (!possible) return bad("it is damaged");
  return file;
}

}  // namespace lockbench::loadgen::cluster
