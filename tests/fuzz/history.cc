#include <sstream>

#include "history/checker.h"
#include "history/operation.h"
#include "tests/fuzz/target.h"

namespace lockbench::fuzz {
namespace {

using history::Form;

/// Files in both forms, and what is judged of them.
void read_history(std::string_view bytes) {
  for (const Form form : {Form::edn, Form::jsonl}) {
    std::istringstream file{std::string(bytes)};
    const auto read = history::read(file, form, "h");
    if (!read) continue;
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
