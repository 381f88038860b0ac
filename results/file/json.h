#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "results/file/model.h"

namespace lockbench::results {

/// Documents that are larger or deeper, or have a longer word, are refused unread.
inline constexpr std::size_t kMaxResultBytes = std::size_t{256} << 20;
inline constexpr int kMaxResultDepth = 32;
inline constexpr std::size_t kMaxResultWord = std::size_t{1} << 20;

/// The result file, readable by people: lists of numbers and small objects stand on one line each.
/// Always valid JSON: what is not a number is null, bytes that are not UTF-8 are replaced.
std::string to_json(const Result& result);

/// Reads what to_json wrote, also condensed, from anywhere: memory and time are bounded by what a
/// result holds and not by the document. Fields it does not know are passed over and take no
/// memory, as later versions may add some; a missing field, one of a wrong type and a number out of
/// range are errors. The error is one printable line that names the culprit ("runs[2].acquire.p99
/// is missing").
tl::expected<Result, std::string> from_json(std::string_view text);

}  // namespace lockbench::results
