#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/options/value_types.h"
#include "loadgen/run/tpcc_locks.h"

namespace lockbench::cli {
namespace {

struct TraceOptions {
  static constexpr Commands kCommand = kTrace;
  std::vector<std::string> kinds;
  int warehouses = 1;
  double zipf = 0;
  std::uint64_t transactions = 100'000;
  std::uint64_t seed = 1;
  std::string out;

  void declare(OptionList& options) {
    options.add({"kind", "KIND"}, kinds, any_text(), "tpcc: the rows that TPC-C locks")
        .as_positional()
        .not_in_file();
    options.add({"warehouses", "W"}, warehouses,
                whole_number(1, loadgen::TpccLocks::kMostWarehouses),
                "warehouses: the fewer, the more contention");
    options.add({"zipf", "S"}, zipf, number(0, 10),
                "Zipf exponent of the choice among the warehouses; 0: uniform");
    options.add({"transactions", "N"}, transactions, whole_number(1, 1'000'000'000),
                "transactions to write");
    options.add({"seed", "N"}, seed, whole_number(0, INT64_MAX),
                "one seed gives the same trace everywhere");
    options.add({"out", "FILE"}, out, path(), "the file to write; -: stdout; required");
  }

  void complete(const OptionList& /*options*/) const {
    if (kinds != std::vector<std::string>{"tpcc"}) {
      throw UsageError("trace requires one KIND, which is tpcc");
    }
    if (out.empty()) throw UsageError("trace requires --out FILE");
  }
};

struct Written {
  std::uint64_t locks = 0;
  bool complete = true;
};

Written write_tpcc(const TraceOptions& options, std::FILE* file) {
  loadgen::TpccLocks tpcc(options.warehouses, options.zipf, options.seed);
  Written written;
  std::vector<loadgen::Wanted> locks;
  fmt::memory_buffer lines;
  for (std::uint64_t number = 1; number <= options.transactions && written.complete; ++number) {
    const loadgen::TpccType type = tpcc.next(locks);
    lines.clear();
    for (const loadgen::Wanted& wanted : locks) {
      fmt::format_to(std::back_inserter(lines), "{},0,{},{},{}\n", number, static_cast<int>(type),
                     wanted.key, wanted.mode == Mode::shared ? 1 : 2);
    }
    written.locks += locks.size();
    written.complete = std::fwrite(lines.data(), 1, lines.size(), file) == lines.size();
  }
  written.complete = std::fflush(file) == 0 && written.complete;
  return written;
}

int trace(const TraceOptions& options) {
  const bool to_stdout = options.out == "-";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(
      to_stdout ? nullptr : std::fopen(options.out.c_str(), "w"), std::fclose);
  std::FILE* const file = to_stdout ? stdout : opened.get();
  const bool complete = file != nullptr && [&] {
    const Written written = write_tpcc(options, file);
    if (!written.complete) return false;
    fmt::print(stderr, "{} transactions with {} locks of {} rows\n", options.transactions,
               written.locks, options.warehouses * loadgen::TpccLocks::kRows);
    return true;
  }();
  if (complete) return exit_code::kFine;
  fmt::print(stderr, "lockbench: {} could not be written: {}\n", to_stdout ? "stdout" : options.out,
             std::strerror(errno));
  return exit_code::kErrors;
}

}  // namespace

Command trace_command() {
  return make_command<TraceOptions>(
      {.name = "trace",
       .task = kMeasure,
       .summary = "Make a trace of lock requests for run --trace.",
       .example = "lockbench trace tpcc --warehouses 4 --transactions 100000 --out tpcc.csv"},
      trace);
}

}  // namespace lockbench::cli
