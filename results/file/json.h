#pragma once

#include <tl/expected.hpp>

#include "results/file/model.h"

namespace lockbench::results {

/// Larger or deeper documents are refused.
inline constexpr std::size_t kMaxResultBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxResultDepth = 32;

/// The result file. NaN becomes null. Readable by people: lists of numbers and small objects stand
/// on one line each. Always valid JSON: bytes that are not UTF-8 are replaced.
std::string to_json(const Result& result);

/// Reads what to_json wrote, also condensed; the text may be hostile. While being read, a document
/// takes ten times its size in memory, a hostile one 36 times: 2.3 GiB. Unknown fields are ignored,
/// as later versions may add some; a missing field, a wrong type and a number out of range are
/// errors. The error is one printable line that names the culprit ("runs[2].acquire.p99 is
/// missing").
tl::expected<Result, std::string> from_json(std::string_view text);

/// Reads a result file within the bounds of from_json(). The error is one printable line that names
/// the file and what is wrong with it.
tl::expected<Result, std::string> load(const std::string& path);

}  // namespace lockbench::results
