#include "strategies/programs/client/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "strategies/errors.h"
#include "strategies/url.h"

namespace lockbench::program {
namespace {

constexpr int kPipeBytes = 1 << 20;
constexpr std::size_t kMostGivenUp = 100'000;
constexpr std::size_t kReadAtOnce = std::size_t{64} << 10, kLastWords = 2000;

struct Pipe {
  int read = -1, write = -1;
};

/// This side's end never blocks; the other end does, as programs expect.
std::optional<Pipe> make_pipe(bool we_write) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  fcntl(ends.at(we_write ? 1 : 0), F_SETFL, O_NONBLOCK);
  // As it is if the user's pipes may not be larger.
  static_cast<void>(fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes));
  return Pipe{ends[0], ends[1]};
}

void close_all(std::initializer_list<int> descriptors) {
  for (const int one : descriptors) {
    if (one >= 0) close(one);
  }
}

/// The environment without URLs of servers, which may hold passwords (LOCKBENCH_REDIS).
std::vector<char*> environment() {
  std::vector<char*> all;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text(*one);
    if (text.starts_with("LOCKBENCH_") && !text.starts_with("LOCKBENCH_CLOCK_FILE=")) continue;
    all.push_back(*one);
  }
  all.push_back(nullptr);
  return all;
}

/// In the child: only calls that are safe after the fork of a process with threads.
[[noreturn]] void become(char* const* argv, char* const* environment, bool own_group, int in,
                         int out, int err, pid_t parent) {
  if (own_group) setpgid(0, 0);
  // If lockbench is killed, so is the program.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
    _exit(127);
  }
  close_range(3, ~0U, 0);
  for (int signo = 1; signo < NSIG; ++signo) std::signal(signo, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(argv[0], argv, environment);
  _exit(127);
}

/// The passwords in a URL or a PostgreSQL DSN, also decoded.
void add_secrets(const std::string& url, std::vector<std::string>& secrets) {
  const auto add = [&](std::string_view secret) {
    if (secret.empty()) return;
    secrets.emplace_back(secret);
    if (auto plain = percent_decode(secret); plain && *plain != secret) secrets.push_back(*plain);
  };
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  const std::string_view authority = std::string_view(url).substr(begin);
  const std::size_t at = authority.substr(0, authority.find('/')).rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view login = authority.substr(0, at);
    const std::size_t colon = login.find(':');
    if (colon != std::string_view::npos) add(login.substr(colon + 1));
  }
  constexpr std::string_view kPassword = "password=";
  for (std::size_t found = url.find(kPassword); found != std::string::npos;
       found = url.find(kPassword, found + 1)) {
    const std::string_view value = std::string_view(url).substr(found + kPassword.size());
    const bool quoted = value.starts_with('\'');
    add(quoted ? value.substr(1, value.find('\'', 1) - 1)
               : value.substr(0, value.find_first_of(" &")));
  }
}

void collect_secrets(const Json& hello, std::vector<std::string>& secrets) {
  if (hello.is_string()) return add_secrets(hello.get<std::string>(), secrets);
  if (!hello.is_structured()) return;
  for (const Json& part : hello) collect_secrets(part, secrets);
}

std::uint64_t id_of(const Json& answer) {
  const auto id = answer.is_object() ? answer.find("id") : answer.end();
  const bool has_id = answer.is_object() && id != answer.end() && id->is_number_unsigned();
  return has_id ? id->get<std::uint64_t>() : UINT64_MAX;
}

}  // namespace

Json hello_of(int clients, Json stores, Duration ttl) {
  constexpr int kProtocol = 1;
  return {{"do", "hello"},
          {"protocol", kProtocol},
          {"clients", clients},
          {"stores", std::move(stores)},
          {"options", Json::object()},
          {"ttl_ms", ceil_milliseconds(ttl)}};
}

std::optional<std::string> text_in(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  if (found == answer.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}
std::optional<double> number_in(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  if (found == answer.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}
std::optional<bool> flag_in(const Json& answer, const char* name) {
  const auto found = answer.find(name);
  if (found == answer.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

Call::Call(Process& process, Json request)
    : process_(process), event_(Carrier::current().make_event()) {
  process_.send(this, std::move(request));
}

Call::~Call() { process_.forget(*this); }

bool Call::await(TimePoint deadline, const std::stop_token& stop) {
  Carrier& carrier = Carrier::current();
  while (!done()) {
    if (carrier.wait(event_.get(), deadline, stop) != WaitResult::signalled) break;
  }
  return done();
}

bool Call::done() const {
  const std::scoped_lock lock(process_.mutex_);
  return answer_ || !failure_.empty();
}

const Json* Call::answer() const {
  const std::scoped_lock lock(process_.mutex_);
  return answer_ ? &*answer_ : nullptr;
}

std::string Call::failure() const {
  const std::scoped_lock lock(process_.mutex_);
  return failure_;
}

tl::expected<std::unique_ptr<Process>, std::string> Process::start(const Launch& launch) {
  const auto in = make_pipe(true), out = make_pipe(false), err = make_pipe(false);
  const Pipe none;
  const Pipe &to = in ? *in : none, &from = out ? *out : none, &words = err ? *err : none;
  const auto failed = [&](const char* step, int error) {
    close_all({to.read, to.write, from.read, from.write, words.read, words.write});
    return tl::unexpected(fmt::format("cannot start \"{}\": {}: {}", printable(launch.command),
                                      step, std::strerror(error)));
  };
  if (!in || !out || !err) return failed("pipe", errno);
  // A program that has ended is a failed write, not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  std::string shell = "/bin/sh", flag = "-c", command = launch.command;
  std::array<char*, 4> argv{shell.data(), flag.data(), command.data(), nullptr};
  std::vector<char*> variables = environment();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    become(argv.data(), variables.data(), launch.own_group, to.read, from.write, words.write,
           parent);
  }
  if (pid < 0) return failed("fork", errno);
  // In both processes, as either may come first.
  if (launch.own_group) setpgid(pid, pid);
  close_all({to.read, from.write, words.write});
  std::unique_ptr<Process> process(new Process(pid, to.write, from.read, words.read, launch));
  process->send(nullptr, launch.hello);
  auto reader = Carrier::current().start(
      [made = process.get()](const std::stop_token& stop) { made->read(stop); },
      [made = process.get()](const std::string& why) { made->fail(why); });
  if (!reader) return tl::unexpected(reader.error());
  process->reader_ = *std::move(reader);
  return process;
}

Process::Process(pid_t pid, int in, int out, int err, const Launch& launch)
    : pid_(pid), in_(in), out_(out), err_(err), own_group_(launch.own_group), buffer_(kReadAtOnce) {
  collect_secrets(launch.hello, secrets_);
  // A password that contains another one must not leave its rest.
  std::ranges::sort(secrets_, std::ranges::greater(), &std::string::size);
}

Process::~Process() {
  reader_.reset();
  signal(SIGKILL);
  // Not reaped before, so that its number stays its own.
  static_cast<void>(TEMP_FAILURE_RETRY(waitpid(pid_, nullptr, 0)));
  close_all({in_, out_, err_});
}

tl::expected<Json, std::string> Process::about(Duration within, const std::stop_token& stop) {
  Carrier& carrier = Carrier::current();
  const auto event = carrier.make_event();
  const TimePoint until = carrier.now() + within;
  std::unique_lock lock(mutex_);
  await_about_.push_back(event.get());
  while (!about_ && failure_.empty()) {
    lock.unlock();
    const WaitResult waited = carrier.wait(event.get(), until, stop);
    lock.lock();
    if (waited != WaitResult::signalled) break;
  }
  std::erase(await_about_, event.get());
  if (about_) return *about_;
  if (!failure_.empty()) return tl::unexpected(failure_);
  return tl::unexpected(with_last_words(
      stop.stop_requested() ? std::string("stopped while it started")
                            : "no answer to hello within " + format_duration(within)));
}

void Process::signal(int number) const noexcept { ::kill(own_group_ ? -pid_ : pid_, number); }

void Process::close_input() {
  const std::scoped_lock lock(mutex_);
  if (in_ >= 0) close(std::exchange(in_, -1));
}

bool Process::ended() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

std::string Process::presentable(std::string_view text) const {
  return printable(without_secrets(text));
}

std::string Process::without_secrets(std::string_view text) const {
  std::string shown(text);
  for (const std::string& secret : secrets_) {
    for (std::size_t at = shown.find(secret); at != std::string::npos;
         at = shown.find(secret, at + 3)) {
      shown.replace(at, secret.size(), "***");
    }
  }
  return shown;
}

void Process::send(Call* call, Json request) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t id = next_id_++;
  request["id"] = id;
  if (call != nullptr) {
    call->id_ = id;
    call->failure_ = failure_;
    if (!failure_.empty()) return;
    call->sent_ = calls_.emplace(id, call).second;
  }
  const std::string line = request.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const ssize_t sent = in_ < 0 ? -1 : TEMP_FAILURE_RETRY(::write(in_, line.data(), line.size()));
  // The pipe has room for all requests of many clients. If the program has ended, the reader will
  // say how.
  if (sent < 0 && (in_ < 0 || errno == EPIPE)) return;
  if (sent != static_cast<ssize_t>(line.size())) fail_now("it does not read its requests");
}

void Process::forget(Call& call) {
  const std::scoped_lock lock(mutex_);
  if (calls_.erase(call.id_) > 0) given_up_.insert(call.id_);
  if (given_up_.size() > kMostGivenUp) given_up_.erase(given_up_.begin());
}

void Process::read(const std::stop_token& stop) {
  constexpr Duration kLook = std::chrono::seconds(1), kFlooded = std::chrono::milliseconds(1);
  Carrier& carrier = Carrier::current();
  for (const int one : {out_, err_}) carrier.keep(one);
  while (!stop.stop_requested() && !over_) {
    const bool flooded = read_errors();
    const bool more = read_answers();
    if (flooded) carrier.wait(nullptr, carrier.now() + kFlooded, stop);
    std::array<pollfd, 2> both{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
    if (flooded || more) {
      carrier.yield();
    } else if (!over_) {
      carrier.poll(both, kLook, stop);
      // A child may keep the output open.
      if (both[0].revents == 0 && both[1].revents == 0 && ended()) fail(how_it_ended());
    }
  }
  for (const int one : {out_, err_}) carrier.forget(one);
}

/// True if more may follow at once.
bool Process::read_answers() {
  const ssize_t got = ::read(out_, buffer_.data(), buffer_.size());
  if (got < 0) return errno == EINTR;
  if (got == 0) {
    // What it said last, and its exit, may come a little later than the end of its output.
    constexpr int kLooks = 40;
    Carrier& carrier = Carrier::current();
    for (int look = 0; look < kLooks && !ended(); ++look) {
      carrier.wait(nullptr, carrier.now() + std::chrono::milliseconds(5), {});
    }
    read_errors();
    fail(how_it_ended());
    return false;
  }
  std::string_view rest(buffer_.data(), static_cast<std::size_t>(got));
  while (!rest.empty() && !over_) {
    const std::size_t end = rest.find('\n');
    line_ += rest.substr(0, end);
    if (line_.size() > kLongestLine) {
      fail(fmt::format("it wrote a line of more than {} KiB", kLongestLine >> 10));
      return false;
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
    take_line(std::exchange(line_, {}));
  }
  return true;
}

bool Process::read_errors() {
  const ssize_t got = ::read(err_, buffer_.data(), buffer_.size());
  if (got <= 0) return false;
  const std::scoped_lock lock(mutex_);
  last_words_.append(buffer_.data(), static_cast<std::size_t>(got));
  if (last_words_.size() > kLastWords) last_words_.erase(0, last_words_.size() - kLastWords);
  return got == static_cast<ssize_t>(buffer_.size());
}

void Process::take_line(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  Json answer = Json::parse(line, nullptr, false);
  const std::uint64_t id = id_of(answer);
  std::string wrong;
  {
    const std::scoped_lock lock(mutex_);
    const auto call = calls_.find(id);
    if (call != calls_.end()) {
      call->second->answer_ = std::move(answer);
      call->second->event().set();
      calls_.erase(call);
    } else if (id == 0 && next_id_ > 0 && !about_) {
      about_ = std::move(answer);
      for (Event* const waiting : await_about_) waiting->set();
    } else if (given_up_.erase(id) == 0) {
      wrong = id == UINT64_MAX ? "it wrote what is no answer to a request"
                               : "it answered what was not asked, or twice";
    }
  }
  if (!wrong.empty()) fail(fmt::format("{}: {}", wrong, presentable(line)));
}

void Process::fail(const std::string& why) {
  over_ = true;
  const std::scoped_lock lock(mutex_);
  fail_now(why);
}

/// Under the mutex.
void Process::fail_now(const std::string& why) {
  if (!failure_.empty()) return;
  signal(SIGKILL);
  failure_ = with_last_words(why);
  for (const auto& [id, call] : calls_) {
    call->failure_ = failure_;
    call->event().set();
  }
  calls_.clear();
  for (Event* const waiting : await_about_) waiting->set();
}

std::string Process::how_it_ended() const {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return "it closed its stdout";
  }
  if (info.si_code == CLD_EXITED) {
    return info.si_status == 0 ? std::string("it ended")
                               : fmt::format("it ended with exit code {}", info.si_status);
  }
  return fmt::format("it was ended by signal {}", info.si_status);
}

/// Under the mutex.
std::string Process::with_last_words(std::string why) const {
  // The last line says most: in Python and Node it is the error.
  constexpr std::size_t kShown = 200;
  std::string words = without_secrets(last_words_);
  words.erase(words.find_last_not_of(" \r\n\t") + 1);
  if (words.size() > kShown) words.erase(0, words.size() - kShown);
  if (!words.empty()) why += "; its last words: " + printable(words);
  return why;
}

}  // namespace lockbench::program
