#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace lockbench::results {

/// Whether a file can be saved at this path; to be asked before a run. Missing directories are
/// created; nothing is left behind at the path itself. The error is one line that names the path.
tl::expected<void, std::string> check_writable(const std::filesystem::path& path);

/// Writes the whole text or nothing: to a temporary file next to the path, flushed to disk and
/// renamed. An existing file keeps its mode. Character devices (/dev/null) and files with a mount
/// on them, which cannot be replaced, are written in place. The error is one line that names the
/// path.
tl::expected<void, std::string> replace(const std::filesystem::path& path, std::string_view text);

struct Saved {
  std::filesystem::path path;  ///< where the text is now
  std::string warning;         ///< one line: why it is not at the path asked for; else empty
};

/// Like replace(). If that fails (full disk, directory gone), the text goes to a new folder among
/// the system's temporary files. If that fails too, the error is one line with both reasons.
tl::expected<Saved, std::string> save(const std::filesystem::path& path, std::string_view text);

}  // namespace lockbench::results
