#include <algorithm>

#include "history/checker.h"
#include "history/reader.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

using history::Form;

tl::expected<history::History, std::string> read_by(std::string_view bytes, Form form,
                                                    std::size_t chunk) {
  const auto refill = [&](char* to, std::size_t most) {
    const std::size_t part = std::min(most, bytes.size());
    std::copy_n(bytes.data(), part, to);
    bytes.remove_prefix(part);
    return part;
  };
  return history::read(refill, form, "h", chunk);
}

/// Files in both forms, and what is judged of them.
void read_history(std::string_view bytes) {
  for (const Form form : {Form::edn, Form::jsonl}) {
    constexpr std::size_t kWhole = 65536, kPieces = 7;
    const auto read = read_by(bytes, form, kWhole);
    const auto pieces = read_by(bytes, form, kPieces);
    require(read.has_value() == pieces.has_value());
    if (!read) {
      require(read.error() == pieces.error());
      continue;
    }
    require(read->operations.size() == pieces->operations.size());
    for (const char* name : {"mutex", "reentrant", "shared", "semaphore:2", "fenced"}) {
      const auto judged = history::judge(*read, history::parse_model(name).value());
      if (!judged) continue;
      require((judged->contradictions > 0) == judged->first.has_value());
      require(judged->granted <= read->operations.size());
      for (const auto place : judged->first ? judged->first->operations : std::vector<uint32_t>()) {
        require(place < read->operations.size());
      }
    }
  }
}

}  // namespace
}  // namespace lockbench::fuzz

LOCKBENCH_FUZZ_TARGET(history, lockbench::fuzz::read_history)
