#include "cli/console/console.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace lockbench::cli {
namespace {

/// What a console prints for a note, a warning and a status line.
std::string printed(const char* locale) {
  const char* const before = std::getenv("LC_ALL");
  const std::string kept = before == nullptr ? "" : before;
  setenv("LC_ALL", locale, 1);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  {
    Console console(file.get(), true, false);
    console.note("acquire p99 12 µs");
    console.warn("±5 %");
    console.status("3 µs");
  }
  setenv("LC_ALL", kept.c_str(), 1);  // empty is as good as unset
  std::rewind(file.get());
  std::string text(200, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

TEST(Console, IsAsciiUnlessTheLocaleIsUtf8) {
  EXPECT_EQ(printed("C"), "acquire p99 12 us\n+-5 %\n\r\x1b[K3 us\r\x1b[K");
  EXPECT_EQ(printed("C.UTF-8"), "acquire p99 12 µs\n±5 %\n\r\x1b[K3 µs\r\x1b[K");
}

}  // namespace
}  // namespace lockbench::cli
