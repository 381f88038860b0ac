#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/servers.h"
#include "tests/support/temporary_folder.h"

namespace lockbench::test {

/// The folder that programs work in.
class Scratch : public TemporaryFolder {
 public:
  Scratch();

  /// Writes a file that only its owner can read, and returns its path.
  std::string write(std::string_view name, std::string_view text) const;
  /// All files except folders, relative to the scratch folder.
  std::vector<std::string> files() const;
  /// The text of all of them, concatenated.
  std::string all_text() const;
};

std::string read_file(const std::filesystem::path& path);
bool has(const std::string& text, std::string_view part);
void expect_in(const std::string& text, std::string_view part);

/// The program's exit and output.
struct Outcome {
  int code = -1;   ///< exit code; -1 if a signal ended it
  int signal = 0;  ///< that signal
  std::string out, err;
};

/// How the program is started.
struct Setting {
  std::string program = "lockbench";               ///< in the build's folder, or a path
  std::map<std::string, std::string> environment;  ///< added to, or replacing, the present
                                                   ///< variables
  std::optional<std::uint64_t> open_files;         ///< soft limit
  bool terminal = false;  ///< stdout and stderr are a terminal, read as out
  bool input = false;     ///< stdin is that terminal
};

/// lockbench as a process in a scratch folder, which is also its temporary folder. Passes options
/// with a password in the environment. Only the waiting calls read its output; pipes hold what a
/// run writes until then. Throws std::runtime_error if something is wrong with the process itself.
class Program {
 public:
  Program(const Scratch& scratch, const std::vector<std::string>& arguments,
          const Setting& setting = {});
  ~Program();  ///< kills it if it is still running
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Waits until stderr (on a terminal: either stream) contains the text.
  bool says(std::string_view text, std::chrono::milliseconds within = kPatience);
  /// Waits until the condition is true, reading output meanwhile.
  bool until(const std::function<bool()>& condition, std::chrono::milliseconds within = kPatience);
  /// Its stderr as far as it was read.
  const std::string& said() const { return err_.text; }
  /// Its stdout likewise.
  const std::string& printed() const { return out_.text; }
  /// Waits for the end; if the program does not end in time, kills it and throws.
  Outcome finish(std::chrono::milliseconds within = kPatience);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void start_child(const Scratch& scratch, const std::vector<std::string>& arguments,
                   const Setting& setting, int out, int err);
  /// Reads some output, waiting for it until the deadline; false at the end of output or when time
  /// is up.
  bool read_some(TimePoint deadline);

  struct Pipe {
    int descriptor = -1;
    std::string text;
  };
  Pipe out_, err_;
  pid_t pid_ = -1;
  bool reaped_ = false;
};

/// Runs lockbench to its end.
Outcome lockbench(const Scratch& scratch, const std::vector<std::string>& arguments,
                  const Setting& setting = {});

/// Splits a command line at spaces.
std::vector<std::string> words(const std::string& line);
/// The arguments of a short run, followed by these.
std::vector<std::string> short_run(std::vector<std::string> arguments);

}  // namespace lockbench::test
