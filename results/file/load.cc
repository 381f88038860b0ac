#include "results/file/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "results/file/json.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

struct Close {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

/// In pieces, as the size of pipes and devices is unknown. Stops beyond kMaxResultBytes.
tl::expected<std::string, std::string> read_text(const std::string& path) {
  constexpr std::size_t kPiece = 1 << 20;
  errno = 0;
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  std::string text;
  while (file && text.size() <= kMaxResultBytes) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    const std::size_t got = std::fread(text.data() + before, 1, kPiece, file.get());
    text.resize(before + got);
    if (got < kPiece) break;
  }
  if (!file || std::ferror(file.get()) != 0) {
    return tl::unexpected(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  return text;
}

}  // namespace

tl::expected<Result, std::string> load(const std::string& path) {
  return read_text(path)
      .and_then([](const std::string& text) { return from_json(text); })
      .map_error(
          [&](const std::string& error) { return printable(fmt::format("{}: {}", path, error)); });
}

}  // namespace lockbench::results
