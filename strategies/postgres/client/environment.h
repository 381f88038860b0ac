#pragma once

#include <string>
#include <vector>

namespace lockbench::postgres {

/// libpq reads settings from the environment: PGHOST, PGSSLMODE, PGSERVICE and so on. They are for
/// the user's servers; a private one must not be reached with them. Takes them out and returns the
/// names of those that were set. To be called before the first thread; later calls only return the
/// names.
std::vector<std::string> take_environment();

/// A DSN of the user's as libpq would complete it from what was taken. One that names a service is
/// completed by that alone.
std::string completed(const std::string& dsn);

}  // namespace lockbench::postgres
