#pragma once

#include <vector>

#include "cli/options/option.h"

namespace lockbench::cli {

Command run_command();
Command list_command();
Command renewal_command();
Command quorum_command();
Command capacity_command();
Command compare_command();
Command report_command();
Command choose_command();
Command condense_command();
Command reference_tables_command();
Command probe_command();
Command hazards_command();
Command doctor_command();

/// Every subcommand, the default one first.
std::vector<Command> all_commands();

}  // namespace lockbench::cli
