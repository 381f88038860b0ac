#include "cli/console/events.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/console/facts.h"
#include "results/tables/text.h"

namespace lockbench::cli {

tl::expected<std::unique_ptr<Events>, std::string> Events::open(const std::string& target) {
  constexpr int kFirst = 3;
  const auto descriptor = results::parse_number<int>(target);
  std::FILE* file = nullptr;
  if (target == "-") {
    file = stdout;
  } else if (descriptor) {
    const bool usable = *descriptor >= kFirst && fcntl(*descriptor, F_GETFD) >= 0;
    // Private servers must not keep it open: its reader would wait for them too.
    if (usable && fcntl(*descriptor, F_SETFD, FD_CLOEXEC) == 0) file = fdopen(*descriptor, "w");
    if (file == nullptr) {
      return tl::unexpected(target +
                            " is no descriptor to write to: give -, a file, or one above 2 "
                            "that is open");
    }
  } else {
    file = std::fopen(target.c_str(), "we");
    if (file == nullptr) return tl::unexpected(target + ": " + std::strerror(errno));
  }
  return std::unique_ptr<Events>(new Events(file));
}

void Events::Close::operator()(std::FILE* file) const noexcept {
  if (file != stdout) static_cast<void>(std::fclose(file));
}

bool Events::write(const std::string& event, const Fields& fields) {
  nlohmann::ordered_json line{{"event", event},
                              {"time", rfc3339(std::chrono::system_clock::now())}};
  for (const auto& [name, value] : fields) {
    nlohmann::ordered_json& field = line[name];
    std::visit([&](const auto& plain) { field = plain; }, value);
  }
  // A strategy's message may quote bytes that are not UTF-8.
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const std::scoped_lock lock(mutex_);
  if (failed_) return true;
  failed_ = std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
            std::fflush(file_.get()) != 0;
  return !failed_;
}

}  // namespace lockbench::cli
