#pragma once

#include <string>
#include <string_view>

namespace lockbench::testbed {

/// What PostgreSQL stores of a password for SCRAM-SHA-256 (RFC 5802), and accepts in its place,
/// with one iteration: more would only make guessing a weak password costly, and each connection of
/// each client too.
std::string scram_verifier(std::string_view secret);

}  // namespace lockbench::testbed
