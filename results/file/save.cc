#include "results/file/save.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace lockbench::results {
namespace {

namespace fs = std::filesystem;
using Outcome = tl::expected<void, std::string>;

constexpr mode_t kMode = 0666;  // less the user's umask
constexpr mode_t kModeBits = 0777;
constexpr int kMaxNames = 100;

std::string describe_errno(int error) { return std::generic_category().message(error); }

tl::unexpected<std::string> cannot(std::string_view what, const fs::path& path,
                                   const std::string& reason) {
  return tl::unexpected(fmt::format("cannot {} {}: {}", what, path.string(), reason));
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&&) = delete;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  int sync() const { return ::fsync(descriptor_) == 0 ? 0 : errno; }
  /// All of it, or the errno that prevented it.
  int write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written > 0) {
        text.remove_prefix(static_cast<std::size_t>(written));
      } else if (written == 0) {
        return EIO;  // would loop forever
      } else if (errno != EINTR) {
        return errno;
      }
    }
    return 0;
  }
  /// Some file systems report a full disk only here.
  int close() { return ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno; }

 private:
  int descriptor_;
};

struct TemporaryFile {
  fs::path path;
  File file;
};

tl::expected<TemporaryFile, std::string> create_beside(const fs::path& path, mode_t mode = kMode) {
  for (int i = 0; i < kMaxNames; ++i) {
    fs::path name = path;
    name += fmt::format(".{}-{}.tmp", ::getpid(), i);
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor >= 0) return TemporaryFile{std::move(name), File(descriptor)};
    if (errno != EEXIST) return cannot("write", path, describe_errno(errno));
  }
  return cannot("write", path, "too many temporary files are left next to it");
}

/// Makes the rename survive a power cut. Errors are ignored: not every file system can do it, and
/// the text is safe anyway.
void sync_directory(const fs::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) static_cast<void>(File(descriptor).sync());
}

fs::path directory_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Not atomic. For devices, and for files that cannot be replaced because something is mounted on
/// them, as containers do with single files.
int write_in_place(const fs::path& path, std::string_view text) {
  // O_NOCTTY, as a device may be a terminal.
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return errno;
  File file(descriptor);
  int error = file.write_all(text);
  if (error == 0) {
    const bool cut = ::ftruncate(file.descriptor(), static_cast<off_t>(text.size())) == 0;
    error = cut ? file.sync() : errno;
    // A device can be neither truncated nor synced.
    if (error == EINVAL) error = 0;
  }
  const int closed = file.close();
  return error == 0 ? closed : error;
}

Outcome replace_file(const fs::path& path, std::string_view text) {
  struct stat before {};
  const bool exists = ::stat(path.c_str(), &before) == 0;
  // Never readable by more users than the file that it replaces.
  auto temporary = create_beside(path, exists ? before.st_mode & kModeBits : kMode);
  if (!temporary) return tl::unexpected(std::move(temporary.error()));
  File& file = temporary->file;
  if (exists) {
    // A file system without owners or modes refuses, but has nothing to keep.
    static_cast<void>(::fchown(file.descriptor(), before.st_uid, before.st_gid) == 0);
    static_cast<void>(::fchmod(file.descriptor(), before.st_mode & kModeBits) == 0);
  }
  int error = file.write_all(text);
  if (error == 0) error = file.sync();
  if (const int closed = file.close(); error == 0) error = closed;
  const bool renamed = error == 0 && ::rename(temporary->path.c_str(), path.c_str()) == 0;
  if (error == 0 && !renamed) error = errno;
  if (!renamed) ::unlink(temporary->path.c_str());
  if (error == EBUSY) error = write_in_place(path, text);
  if (error != 0) return cannot("write", path, describe_errno(error));
  sync_directory(directory_of(path));
  return {};
}

/// The target of a link, so that the link itself is not replaced.
fs::path resolve(const fs::path& path) {
  std::error_code error;
  fs::path target = fs::canonical(path, error);
  return error ? path : target;
}

tl::expected<fs::path, std::string> temporary_place(const fs::path& name) {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) folder = "/tmp";
  std::string place = (folder / "lockbench-XXXXXX").string();
  if (::mkdtemp(place.data()) == nullptr) {
    return cannot("create a folder in", folder, describe_errno(errno));
  }
  return fs::path(place) / name;
}

}  // namespace

tl::expected<void, std::string> check_writable(const fs::path& path) {
  if (!path.has_filename()) return cannot("write", path, "it names no file");
  std::error_code error;
  fs::create_directories(directory_of(path), error);
  if (error) return cannot("create the directory of", path, error.message());
  if (fs::is_directory(path, error)) return cannot("write", path, "is a directory");
  if (fs::is_character_file(path, error)) {
    return ::access(path.c_str(), W_OK) == 0 ? Outcome{}
                                             : cannot("write", path, describe_errno(errno));
  }
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    return cannot("write", path, "not a file");
  }
  const auto probe = create_beside(resolve(path));
  if (!probe) return tl::unexpected(probe.error());
  ::unlink(probe->path.c_str());
  return {};
}

tl::expected<void, std::string> replace(const fs::path& path, std::string_view text) {
  std::error_code error;
  if (fs::is_character_file(path, error)) {
    const int written = write_in_place(path, text);
    return written == 0 ? Outcome{} : cannot("write", path, describe_errno(written));
  }
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    return cannot("write", path, fs::is_directory(path, error) ? "is a directory" : "not a file");
  }
  return replace_file(resolve(path), text);
}

tl::expected<Saved, std::string> save(const fs::path& path, std::string_view text) {
  const Outcome asked = replace(path, text);
  if (asked) return Saved{path, ""};
  const auto refuge = temporary_place(path.filename());
  if (!refuge) return tl::unexpected(fmt::format("{}; {}", asked.error(), refuge.error()));
  if (const Outcome saved = replace(*refuge, text); !saved) {
    std::error_code ignored;
    fs::remove(refuge->parent_path(), ignored);
    return tl::unexpected(fmt::format("{}; {}", asked.error(), saved.error()));
  }
  return Saved{*refuge, fmt::format("{}; saved as {}", asked.error(), refuge->string())};
}

}  // namespace lockbench::results
