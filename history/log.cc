#include "history/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

namespace lockbench::history {
namespace {

/// Some seconds of the highest load. With more, the disk does not keep up.
constexpr std::size_t kMostBuffered = std::size_t{64} << 20;

std::string_view name_of(Function f) { return kFunctions.at(static_cast<std::size_t>(f)); }
std::string_view name_of(Outcome outcome) {
  return kOutcomes.at(static_cast<std::size_t>(outcome));
}

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

template <class Write>
void Log::append(const Write& write) {
  if (!failure_.empty()) return;
  if (buffer_.size() > kMostBuffered) {
    failure_ = "the disk is too slow for the load";
    return;
  }
  if (buffer_.empty()) filled_.notify_one();
  write(std::back_inserter(buffer_));
  ++lines_;
}

Process::Process(Process&& other) noexcept
    : log_(other.log_),
      number_(other.number_),
      open_(std::exchange(other.open_, false)),
      f_(other.f_),
      key_(std::move(other.key_)),
      begun_(other.begun_) {}

Process::~Process() {
  if (!open_) return;
  const std::scoped_lock lock(log_->mutex_);
  // In EDN an open operation has no end.
  if (log_->form_ == Form::jsonl) write_whole("info", kOpen, {}, false);
}

void Process::acquire(std::string_view key, bool shared, TimePoint now) {
  if (log_ == nullptr) return;
  end(Outcome::info, now);
  key_ = key;
  begin(shared ? Function::acquire_shared : Function::acquire, now);
}

void Process::release(TimePoint now, std::string_view key) {
  if (log_ == nullptr) return;
  if (!key.empty()) key_ = key;
  begin(is_shared(f_) ? Function::release_shared : Function::release, now);
}

void Process::begin(Function f, TimePoint now) {
  f_ = f;
  open_ = true;
  const std::scoped_lock lock(log_->mutex_);
  if (number_ < 0) number_ = log_->processes_++;
  begun_ = log_->stamp(now);
  if (log_->form_ != Form::edn) return;
  log_->append([&](auto to) {
    fmt::format_to(
        to, "{{:index {}, :type :invoke, :process {}, :f :{}, :value [\"{}\" nil], :time {}}}\n",
        log_->lines_, number_, name_of(f_), key_, begun_);
  });
}

void Process::end(Outcome outcome, TimePoint now, std::optional<std::uint64_t> value, bool lost) {
  if (log_ == nullptr || !open_) return;
  open_ = false;
  const std::scoped_lock lock(log_->mutex_);
  const std::int64_t ended = log_->stamp(now);
  if (log_->form_ == Form::jsonl) {
    write_whole(name_of(outcome), outcome == Outcome::info ? kOpen : ended, value, lost);
  } else {
    log_->append([&](auto to) {
      fmt::format_to(
          to, "{{:index {}, :type :{}, :process {}, :f :{}, :value [\"{}\" {}], :time {}{}}}\n",
          log_->lines_, name_of(outcome), number_, name_of(f_), key_,
          value ? std::to_string(*value) : "nil", ended, lost ? ", :lost true" : "");
    });
  }
  if (outcome == Outcome::info) number_ = -1;
}

void Process::write_whole(std::string_view type, std::int64_t end,
                          std::optional<std::uint64_t> value, bool lost) {
  log_->append([&](auto to) {
    fmt::format_to(to,
                   R"({{"ClientId":{},"Input":{{"f":"{}","key":"{}"}},"Call":{},)"
                   R"("Output":{{"type":"{}","value":{}{}}},"Return":{}}})"
                   "\n",
                   number_, name_of(f_), key_, begun_, type,
                   value ? std::to_string(*value) : "null", lost ? R"(,"lost":true)" : "", end);
  });
}

}  // namespace lockbench::history
