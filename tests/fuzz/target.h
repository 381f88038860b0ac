#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>

// A target reads arbitrary bytes. It is both a separate program for libFuzzer and part of the test
// that replays the corpora. A finding is a crash, a sanitizer's report, a hang, or a failed
// require().
namespace lockbench::fuzz {

using Target = void (*)(std::string_view bytes);

/// All targets by name.
std::map<std::string, Target, std::less<>>& targets();

inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace lockbench::fuzz

#ifdef LOCKBENCH_FUZZER
#define LOCKBENCH_FUZZ_TARGET(name, function)                                         \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    function(std::string_view(reinterpret_cast<const char*>(data), size));            \
    return 0;                                                                         \
  }
#else
#define LOCKBENCH_FUZZ_TARGET(name, function)           \
  [[maybe_unused]] static const bool is_target_##name = \
      lockbench::fuzz::targets().emplace(#name, function).second;
#endif
