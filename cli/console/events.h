#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tl/expected.hpp>
#include <variant>

namespace lockbench::cli {

/// What a command does, as it does it, in lines of JSON for the program that started it:
/// {"event":"progress","time":"2026-01-01T12:00:00Z",...}. Thread-safe.
class Events {
 public:
  /// `target`: a file, which is made anew; "-": stdout; a number above 2: that descriptor, which is
  /// open. The error says what is wrong with it.
  static tl::expected<std::unique_ptr<Events>, std::string> open(const std::string& target);

  using Value = std::variant<std::string, std::int64_t, double>;
  using Fields = std::map<std::string, Value>;
  /// False the first time that it could not be written; nothing is written from then on.
  bool write(const std::string& event, const Fields& fields);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept;
  };

  explicit Events(std::FILE* file) : file_(file) {}

  std::mutex mutex_;
  const std::unique_ptr<std::FILE, Close> file_;
  bool failed_ = false;
};

}  // namespace lockbench::cli
