#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockbench::postgres {

/// The number that stands for a key where PostgreSQL takes no text: FNV-1a, the same everywhere.
/// Two keys with one number would share a lock, which is unlikely below billions of keys.
std::int64_t advisory_number(std::string_view key);

/// "lockbench_20261121t012530z_4f3a9c": where all objects of a run live. Letters, digits and
/// underscores only, so that it needs no quotes.
std::string schema_of_run(std::string_view run_id);

/// The schema of the run that a key of the form lockbench:<run>:... belongs to; of the run "" for
/// others.
std::string schema_of_key(std::string_view key);

}  // namespace lockbench::postgres
