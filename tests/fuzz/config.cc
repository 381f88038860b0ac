#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/options/load_options.h"
#include "cli/options/option.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

/// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    require(descriptor_ >= 0);
    require(::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

/// Runs `work`, which may only throw a one-line usage error.
template <class Work>
void refuses_in_one_line(const Work& work) {
  try {
    work();
  } catch (const cli::UsageError& error) {
    require(error.message().find('\n') == std::string::npos);
  }
}

/// Reads all options of `run` from a TOML file. After the first inputs (the corpus), only one of 32
/// is also applied: declaring the options to CLI11 takes most of the time.
void read_config(std::string_view bytes) {
  // These name further files, which may be devices.
  if (bytes.find("quantiles:") != std::string_view::npos) return;
  const MemoryFile file(bytes);
  static cli::RunOptions usual;
  static const cli::OptionList known = cli::options_of(usual);
  refuses_in_one_line([&] { cli::read_config_file(file.path(), known.all(), "run"); });
  static int inputs = 0;
  if (++inputs > 100 && inputs % 32 != 0) return;
  cli::RunOptions options;
  cli::OptionList list = cli::options_of(options);
  const std::vector<std::string> args{"--config=" + file.path()};
  refuses_in_one_line([&] { cli::read(options, list, args); });
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(config, lockbench::fuzz::read_config)
