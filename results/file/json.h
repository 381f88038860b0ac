#pragma once

#include <nlohmann/json_fwd.hpp>
#include <tl/expected.hpp>

#include "results/file/model.h"

namespace lockbench::results {

/// Documents that are larger or deeper are refused.
inline constexpr std::size_t kMaxResultBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxResultDepth = 32;

/// Readable by people: lists of numbers and small objects stand on one line each. Always valid
/// JSON: bytes that are not UTF-8 are replaced. The document may hold no number that is infinite.
std::string json_text(const nlohmann::ordered_json& document);

/// The result file. What is not a number is null.
std::string to_json(const Result& result);

/// Reads what to_json wrote, also condensed, from anywhere. While it is read, a document takes ten
/// times its size in memory, and a hostile one 36 times: 2.3 GiB. Fields it does not know are
/// passed over, as later versions may add some; a missing field, one of a wrong type and a number
/// out of range are errors. The error is one printable line that names the culprit
/// ("runs[2].acquire.p99 is missing").
tl::expected<Result, std::string> from_json(std::string_view text);

/// Reads a result file, which may come from anywhere: its bounds are those of from_json(). The
/// error is one printable line that names the file and what is wrong with it.
tl::expected<Result, std::string> load(const std::string& path);

}  // namespace lockbench::results
