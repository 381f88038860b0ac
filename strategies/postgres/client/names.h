#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockbench::postgres {

/// The number of a key, for advisory locks: its FNV-1a hash, the same on every machine. Two keys
/// with one number would share a lock, which is unlikely below billions of keys.
std::int64_t advisory_number(std::string_view key);

/// The schema of all objects of a run: "lockbench_20261121t012530z_4f3a9c". Letters, digits and
/// underscores only, so that it needs no quotes.
std::string schema_of_run(std::string_view run_id);

/// The schema for a key of the form lockbench:<run>:...; for other keys that of the run "".
std::string schema_of_key(std::string_view key);

}  // namespace lockbench::postgres
