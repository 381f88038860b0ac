#include "tests/integration/support/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "tests/folders.h"

namespace lockbench::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(const Scratch& scratch, const Setting& setting) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t end = text.find('=');
    variables[std::string(text.substr(0, end))] = text.substr(std::min(end + 1, text.size()));
  }
  variables.erase("NO_COLOR");
  variables["TERM"] = "xterm";
  variables["TMPDIR"] = scratch.path();
  for (const auto& [name, value] : setting.environment) variables[name] = value;
  std::vector<std::string> entries;
  entries.reserve(variables.size());
  for (const auto& [name, value] : variables) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

bool has_password(const std::string& value) {
  const std::size_t scheme = value.find("://"), at = value.rfind('@');
  return scheme != std::string::npos && at != std::string::npos && at > scheme;
}

/// The arguments without options that contain a password; those go into the environment, as
/// lockbench refuses them.
std::vector<std::string> without_passwords(const std::vector<std::string>& arguments,
                                           std::map<std::string, std::string>& environment) {
  std::set<std::string> options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const bool is_option = arguments[i - 1].starts_with("--");
    if (is_option && has_password(arguments[i])) options.insert(arguments[i - 1]);
  }
  std::vector<std::string> left;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!options.contains(arguments[i])) {
      left.push_back(arguments[i]);
      continue;
    }
    std::string name = "LOCKBENCH_" + arguments[i].substr(std::string_view("--").size());
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    environment[name] += arguments[++i] + "\n";
  }
  return left;
}

/// Everything between fork and exec; only calls that are safe there.
struct ChildPlan {
  std::string folder;
  std::vector<char*> argv, envp;
  rlimit open_files{};
  int in = -1, out = -1, err = -1;

  [[noreturn]] void become() const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_NOFILE, &open_files);
    dup2(in >= 0 ? in : open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (chdir(folder.c_str()) == 0) execve(argv.front(), argv.data(), envp.data());
    _exit(127);
  }
};

}  // namespace

Scratch::Scratch() {
  // Servers that root may not run belong to another account, which must reach their data.
  fs::permissions(path(), fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add);
}

std::string Scratch::write(std::string_view name, std::string_view text) const {
  const fs::path file_path = *this / name;
  std::ofstream file(file_path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + file_path.string());
  fs::permissions(file_path, fs::perms::owner_read | fs::perms::owner_write);
  return file_path.string();
}

std::vector<std::string> Scratch::files() const {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(path())) {
    if (!entry.is_directory()) found.push_back(entry.path().lexically_relative(path()).string());
  }
  return found;
}

std::string Scratch::all_text() const {
  std::string text;
  for (const std::string& name : files()) text += read_file(*this / name);
  return text;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

void expect_in(const std::string& text, std::string_view part) {
  EXPECT_TRUE(has(text, part)) << part << " is not in: " << text;
}

Program::Program(const Scratch& scratch, const std::vector<std::string>& arguments,
                 const Setting& setting) {
  if (setting.terminal) {
    int terminal = -1;
    checked(openpty(&out_.descriptor, &terminal, nullptr, nullptr, nullptr), "openpty");
    checked(fcntl(out_.descriptor, F_SETFD, FD_CLOEXEC), "fcntl");
    start_child(scratch, arguments, setting, terminal, terminal);
    close(terminal);
    return;
  }
  std::array<int, 2> out{}, err{};
  checked(pipe2(out.data(), O_CLOEXEC), "pipe");
  checked(pipe2(err.data(), O_CLOEXEC), "pipe");
  start_child(scratch, arguments, setting, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  out_.descriptor = out[0];
  err_.descriptor = err[0];
}

void Program::start_child(const Scratch& scratch, const std::vector<std::string>& arguments,
                          const Setting& setting, int out, int err) {
  Setting given = setting;
  const std::vector<std::string> shown = without_passwords(arguments, given.environment);
  std::vector<std::string> words{fs::path(LOCKBENCH_BINARY_DIR) / setting.program};
  words.insert(words.end(), shown.begin(), shown.end());
  std::vector<std::string> variables = environment_of(scratch, given);
  ChildPlan child{.folder = scratch.path(),
                  .argv = pointers_to(words),
                  .envp = pointers_to(variables),
                  .in = setting.input ? out : -1,
                  .out = out,
                  .err = err};
  checked(getrlimit(RLIMIT_NOFILE, &child.open_files), "getrlimit");
  if (setting.open_files) child.open_files.rlim_cur = *setting.open_files;
  pid_ = checked(fork(), "fork");
  if (pid_ == 0) child.become();
}

Program::~Program() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const Pipe* pipe : {&out_, &err_}) {
    if (pipe->descriptor >= 0) close(pipe->descriptor);
  }
}

void Program::signal(int number) const { checked(kill(pid_, number), "kill"); }

bool Program::read_some(TimePoint deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) return false;
  std::array<pollfd, 2> files{{{out_.descriptor, POLLIN, 0}, {err_.descriptor, POLLIN, 0}}};
  if (poll(files.data(), files.size(), static_cast<int>(left.count())) <= 0) return false;
  for (Pipe* pipe : {&out_, &err_}) {
    if (files[pipe == &out_ ? 0 : 1].revents == 0) continue;
    std::array<char, 65536> bytes{};
    const ssize_t count = read(pipe->descriptor, bytes.data(), bytes.size());
    if (count > 0) {
      pipe->text.append(bytes.data(), static_cast<std::size_t>(count));
    } else {
      // The end; on a terminal it is an error. poll() ignores negative descriptors.
      close(std::exchange(pipe->descriptor, -1));
    }
  }
  return out_.descriptor >= 0 || err_.descriptor >= 0;
}

bool Program::says(std::string_view text, milliseconds within) {
  return until([&] { return has(err_.text, text) || has(out_.text, text); }, within);
}

bool Program::until(const std::function<bool()>& condition, milliseconds within) {
  const TimePoint deadline = Clock::now() + within;
  // Bounded by the deadline and by the end of the program.
  while (!condition()) {
    if (!read_some(deadline)) return condition();
  }
  return true;
}

Outcome Program::finish(milliseconds within) {
  const TimePoint deadline = Clock::now() + within;
  while (read_some(deadline)) {
  }
  int status = 0;
  reaped_ = eventually(
      [&] { return waitpid(pid_, &status, WNOHANG) == pid_; },
      std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - Clock::now())));
  if (!reaped_) {
    throw std::runtime_error(
        fmt::format("no end within {} ms; it said: {}{}", within.count(), out_.text, err_.text));
  }
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .out = out_.text,
          .err = err_.text};
}

Outcome lockbench(const Scratch& scratch, const std::vector<std::string>& arguments,
                  const Setting& setting) {
  return Program(scratch, arguments, setting).finish();
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::string> short_run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"run", "--iterations", "100", "--warmup", "0ms"});
  return arguments;
}

}  // namespace lockbench::test
