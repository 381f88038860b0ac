#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::results {

/// Whether a file can be saved at this path, to be asked before a run rather than after it. Missing
/// directories are created; nothing is left behind at the path itself. The error is one line that
/// names the path.
tl::expected<void, std::string> check_writable(const std::filesystem::path& path);

/// Writes the whole text or nothing: to a temporary file beside the path, flushed to disk and
/// renamed. An existing file keeps its mode. One that something is mounted on cannot be replaced:
/// it is written to in place. The error is one line that names the path. Character devices
/// (/dev/null) are written to as they are.
tl::expected<void, std::string> replace(const std::filesystem::path& path, std::string_view text);

struct Saved {
  std::filesystem::path path;  ///< where the text is now
  std::string warning;         ///< why it is not where it was asked for, in one line; else empty
};

/// The same. If that fails (full disk, directory gone), the text goes to a folder of its own among
/// the system's temporary files; an error, one line, says that there was no room either.
tl::expected<Saved, std::string> save(const std::filesystem::path& path, std::string_view text);

}  // namespace lockbench::results
