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

  /// Writes a file in it, for its owner only, and returns its path.
  std::string write(std::string_view name, std::string_view text) const;
  /// Every file that is not a folder, relative to the scratch folder.
  std::vector<std::string> files() const;
  /// The text of them all, one after the other.
  std::string all_text() const;
};

std::string read_file(const std::filesystem::path& path);
bool has(const std::string& text, std::string_view part);
void expect_in(const std::string& text, std::string_view part);

/// How the program ended, and what it said.
struct Outcome {
  int code = -1;   ///< exit code; -1 if a signal ended it
  int signal = 0;  ///< that signal
  std::string out, err;
};

/// How the program is started.
struct Setting {
  std::string program = "lockbench";               ///< in the build's folder, or a path
  std::map<std::string, std::string> environment;  ///< in place of, or beside, what there is
  std::optional<std::uint64_t> open_files;         ///< soft limit
  bool terminal = false;  ///< stdout and stderr are a terminal, read as out
  bool input = false;     ///< stdin is that terminal
};

/// lockbench as a process of its own, in a scratch folder, which is its temporary folder too.
/// Options with a password reach it in the environment. Its output is read by the waiting calls
/// only, which fits what is written before the end of a run. Whatever goes wrong with the process
/// itself throws std::runtime_error.
class Program {
 public:
  Program(const Scratch& scratch, const std::vector<std::string>& arguments,
          const Setting& setting = {});
  ~Program();  ///< kills it if it still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Waits until stderr (on a terminal: either) holds the text.
  bool says(std::string_view text, std::chrono::milliseconds within = kPatience);
  /// Likewise until what it said fulfils the condition.
  bool until(const std::function<bool()>& condition, std::chrono::milliseconds within = kPatience);
  /// What it has said on stderr, as far as it was read.
  const std::string& said() const { return err_.text; }
  /// Likewise on stdout.
  const std::string& printed() const { return out_.text; }
  /// Waits for the end; a program that does not end in time is killed, and throws.
  Outcome finish(std::chrono::milliseconds within = kPatience);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void start_child(const Scratch& scratch, const std::vector<std::string>& arguments,
                   const Setting& setting, int out, int err);
  /// Reads what has come until something has, or the deadline; false when nothing can come any more
  /// or time is up.
  bool read_some(TimePoint deadline);

  struct Pipe {
    int descriptor = -1;
    std::string text;
  };
  Pipe out_, err_;
  pid_t pid_ = -1;
  bool reaped_ = false;
};

/// Runs it to its end.
Outcome lockbench(const Scratch& scratch, const std::vector<std::string>& arguments,
                  const Setting& setting = {});

/// Of a command line, between its spaces.
std::vector<std::string> words(const std::string& line);
/// The arguments of a short run, and further ones.
std::vector<std::string> short_run(std::vector<std::string> arguments);

}  // namespace lockbench::test
