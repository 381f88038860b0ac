#include "choose/reference.h"

#include <fmt/format.h>

#include <stdexcept>

#include "results/file/json.h"

namespace lockbench::choose {

std::vector<Source> reference() {
  std::vector<Source> sources;
  for (const ReferenceFile& file : reference_files()) {
    auto result = results::from_json(file.text);
    const std::string name = fmt::format("results/reference/{}", file.name);
    if (!result) throw std::runtime_error(fmt::format("{}: {}", name, result.error()));
    sources.push_back({name, std::move(*result)});
  }
  return sources;
}

}  // namespace lockbench::choose
