#include "testbed/servers/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "testbed/failure.h"
#include "testbed/process/process_tree.h"
#include "testbed/process/shims.h"
#include "testbed/servers/authority.h"
#include "testbed/servers/ports.h"

namespace lockbench::testbed {
namespace {

namespace fs = std::filesystem;
using Clock = Process::Clock;
using std::chrono::milliseconds;

// From SIGKILL to the end of the last process: a busy machine needs seconds to free its memory.
constexpr milliseconds kKillWithin{30'000};
constexpr std::uintmax_t kLogTail = 65'536;

/// The last lines of a text, each on a line of its own.
std::string last_lines(std::string_view text, int lines) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::size_t newline = text.size();
  for (; lines > 0 && newline != std::string_view::npos && newline > 0; --lines) {
    newline = text.rfind('\n', newline - 1);
  }
  return std::string(newline < text.size() ? text.substr(newline + 1) : text);
}

}  // namespace

std::string UrlForm::on(const std::vector<std::uint16_t>& ports) const {
  std::string url(before);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    url += fmt::format("{}127.0.0.1:{}", i == 0 ? "" : ",", ports[i]);
  }
  return url.append(after);
}

std::string joint_url(const std::vector<std::unique_ptr<Server>>& servers) {
  std::vector<std::uint16_t> ports;
  ports.reserve(servers.size());
  for (const auto& server : servers) ports.push_back(server->port());
  return servers.front()->url_form().on(ports);
}

ServerSpec ServerSpec::in_new_folder(Testbed& testbed, std::string_view name,
                                     std::vector<std::uint16_t> ports) {
  ServerSpec spec;
  spec.folder = need(testbed.make_server_folder(name));
  spec.name = name;
  spec.ports = std::move(ports);
  return spec;
}

void ServerSpec::speak(std::string_view plain, std::string_view secured, const std::string& login,
                       const TlsFiles* files) {
  tls = files;
  url.before = fmt::format("{}://{}", files == nullptr ? plain : secured, login);
  if (files != nullptr) url.after += files->query();
}

void ServerSpec::set(std::vector<std::string> variables) {
  variables.insert(variables.begin(), "/usr/bin/env");
  argv.insert(argv.begin(), variables.begin(), variables.end());
}

StartedServer Server::start(const Testbed& testbed, ServerSpec spec) {
  if (spec.clock != nullptr) spec.clock->put_under(spec);
  std::unique_ptr<Server> server(new Server(testbed, std::move(spec)));
  const auto launched = server->launch_locked();  // no other thread knows it yet
  if (launched) return server;
  // Go writes it with a small first letter, and Java's stack trace pushes it out of the log's tail.
  const bool taken = server->log().find(kPortTaken.substr(1)) != std::string::npos;
  if (!taken || says_port_taken(launched.error())) return tl::unexpected(launched.error());
  return tl::unexpected(fmt::format("{}: {}", kPortTaken, launched.error()));
}

Server::~Server() {
  const std::lock_guard lock(lifecycle_);
  // Ignores an error: at its end, the supervisor kills the rest.
  if (!kill_locked()) return;
  std::error_code ignored;
  remove_remains(spec_.folder, ignored);
}

std::shared_ptr<Process> Server::process() const {
  const std::lock_guard lock(replacing_);
  return process_;
}

bool Server::alive() const {
  const auto its = process();
  return its && its->running();
}

pid_t Server::pid() const {
  const auto its = process();
  return its ? its->pid() : 0;
}

std::string Server::log() const {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(log_path(), error);
  if (error) return {};
  const std::uintmax_t from = std::max(log_start_.load(), size - std::min(size, kLogTail));
  std::string text(size - std::min(size, from), '\0');
  std::ifstream file(log_path(), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(from));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::string Server::failure(std::string_view what) const {
  constexpr int kLines = 10;
  const std::string tail = last_lines(log(), kLines);
  const std::string name =
      spec_.name.empty() ? fs::path(spec_.argv.front()).filename().string() : spec_.name;
  return tail.empty() ? fmt::format("{} {}", name, what)
                      : fmt::format("{} {}:\n{}", name, what, tail);
}

Server::Result Server::signal(int signo) { return process()->signal(signo); }

Server::Result Server::launch_locked() {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(log_path(), error);
  log_start_ = error ? 0 : size;
  const std::int64_t loads = spec_.clock == nullptr ? 0 : spec_.clock->loads();
  const auto process = supervisor_->launch(
      {.argv = spec_.argv, .log = log_path(), .folder = data_folder(), .user = user_});
  if (!process) return tl::unexpected(process.error());
  {
    const std::lock_guard lock(replacing_);
    process_ = *process;
  }
  auto ready = await_ready(**process);
  // The loader only warns if a library cannot be preloaded.
  if (ready && spec_.clock != nullptr && spec_.clock->loads() <= loads) {
    ready =
        tl::unexpected(failure(fmt::format("has not loaded {}", spec_.clock->library().string())));
  }
  if (!ready) (void)kill_locked();  // the first failure counts
  return ready;
}

Server::Result Server::await_ready(const Process& process) {
  constexpr milliseconds kFirstPause{1};
  constexpr milliseconds kLongestPause{20};
  const auto deadline = Clock::now() + spec_.ready_within;
  for (milliseconds pause = kFirstPause; Clock::now() < deadline;
       pause = std::min(2 * pause, kLongestPause)) {
    if (process.wait_for_exit(Clock::now() + pause)) {
      return tl::unexpected(failure("ended while starting"));
    }
    if (!spec_.ready || spec_.ready(*this)) return {};
  }
  return tl::unexpected(
      failure(fmt::format("was not ready within {} ms", spec_.ready_within.count())));
}

Server::Result Server::kill_hard() {
  const std::lock_guard lock(lifecycle_);
  return kill_locked();
}

Server::Result Server::kill_locked() {
  if (!alive()) return {};
  const auto its = process();
  const auto sent = its->signal(SIGKILL);
  // If the signal was refused, the process has just ended.
  if (its->wait_for_exit(Clock::now() + kKillWithin)) return {};
  return tl::unexpected(sent ? failure("does not die") : sent.error());
}

Server::Result Server::clear_data() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(data_folder(), error)) {
    remove_remains(entry.path(), error);
    if (error) break;
  }
  if (error) return tl::unexpected(fmt::format("cannot clear the data: {}", error.message()));
  return {};
}

Server::Result Server::restart(bool keep_data) {
  const std::lock_guard lock(lifecycle_);
  if (auto killed = kill_locked(); !killed) return killed;
  if (keep_data) return launch_locked();
  return clear_data().and_then([&] { return launch_locked(); });
}

}  // namespace lockbench::testbed
