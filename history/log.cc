#include "history/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace lockbench::history {
namespace {

/// Some seconds of the highest load. With more, the disk does not keep up.
constexpr std::size_t kMostBuffered = std::size_t{64} << 20;

}  // namespace

tl::expected<Form, std::string> form_of(const std::string& path) {
  if (path.ends_with(".edn")) return Form::edn;
  if (path.ends_with(".jsonl")) return Form::jsonl;
  return tl::unexpected(fmt::format("\"{}\" is not a history; allowed: *.edn, *.jsonl", path));
}

tl::expected<std::unique_ptr<Log>, std::string> Log::open(const std::string& path) {
  const auto form = form_of(path);
  if (!form) return tl::unexpected(form.error());
  constexpr mode_t kMode = 0644;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (file < 0) return tl::unexpected(fmt::format("{}: {}", path, std::strerror(errno)));
  std::unique_ptr<Log> log(new Log(path, *form, file));
  auto thread = Thread::start([&made = *log](const std::stop_token& stop) { made.write_out(stop); },
                              [&made = *log](const std::string& why) { made.fail(why); });
  if (!thread) return tl::unexpected(thread.error());
  log->thread_ = *std::move(thread);
  return log;
}

Log::~Log() {
  thread_.finish();
  ::close(file_);
}

tl::expected<void, std::string> Log::close() {
  thread_.finish();
  const std::scoped_lock lock(mutex_);
  if (failure_.empty()) return {};
  return tl::unexpected(fmt::format("{} is not the whole history: {}", path_, failure_));
}

void Log::fail(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  if (failure_.empty()) failure_ = why;
  buffer_.clear();
}

void Log::write_out(const std::stop_token& stop) {
  std::string text;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, stop, [&] { return !buffer_.empty(); });
      if (buffer_.empty()) return;  // stopped, and nothing is left
      text.swap(buffer_);
    }
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t written = ::write(file_, text.data() + done, text.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail(std::strerror(errno));
      done += static_cast<std::size_t>(written);
    }
    text.clear();
  }
}

std::int64_t Log::stamp(TimePoint now) {
  if (!origin_) origin_ = now;
  return last_ = std::max<std::int64_t>(last_ + 1, (now - *origin_).count());
}

void Log::append(std::string_view line) {
  if (!failure_.empty()) return;
  if (buffer_.size() > kMostBuffered) {
    failure_ = "the disk is too slow for the load";
    return;
  }
  if (buffer_.empty()) filled_.notify_one();
  buffer_ += line;
  ++lines_;
}

Process::~Process() {
  if (!open_) return;
  const std::scoped_lock lock(log_->mutex_);
  // In EDN an open operation has no end.
  if (log_->form_ == Form::jsonl) write("info", kOpen);
}

void Process::acquire(std::string_view key, bool shared, TimePoint now) {
  if (log_ == nullptr) return;
  end(Outcome::info, now);
  begin(shared ? Function::acquire_shared : Function::acquire, key, now);
}

void Process::release(TimePoint now, std::string_view key) {
  if (log_ == nullptr || open_) return;
  begin(is_shared(f_) ? Function::release_shared : Function::release, key.empty() ? key_ : key,
        now);
}

void Process::begin(Function f, std::string_view key, TimePoint now) {
  f_ = f;
  key_ = std::string(key);
  open_ = true;
  const std::scoped_lock lock(log_->mutex_);
  if (number_ < 0) number_ = log_->processes_++;
  begun_ = log_->stamp(now);
  if (log_->form_ == Form::edn) write("invoke", begun_);
}

void Process::end(Outcome outcome, TimePoint now, std::optional<std::uint64_t> value) {
  if (log_ == nullptr || !open_) return;
  open_ = false;
  const std::scoped_lock lock(log_->mutex_);
  const bool never = outcome == Outcome::info && log_->form_ == Form::jsonl;
  write(kOutcomes.at(static_cast<std::size_t>(outcome)), never ? kOpen : log_->stamp(now), value);
  if (outcome == Outcome::info) number_ = -1;
}

void Process::write(std::string_view type, std::int64_t time, std::optional<std::uint64_t> value) {
  const std::string_view f = kFunctions.at(static_cast<std::size_t>(f_));
  const std::string number = value ? std::to_string(*value) : "";
  if (log_->form_ == Form::edn) {
    log_->append(
        fmt::format("{{:index {}, :type :{}, :process {}, :f :{}, :value [\"{}\" {}], :time {}}}\n",
                    log_->lines_, type, number_, f, key_, value ? number : "nil", time));
  } else {
    log_->append(fmt::format(R"({{"ClientId":{},"Input":{{"f":"{}","key":"{}"}},"Call":{},)"
                             R"("Output":{{"type":"{}","value":{}}},"Return":{}}})"
                             "\n",
                             number_, f, key_, begun_, type, value ? number : "null", time));
  }
}

}  // namespace lockbench::history
