#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "results/file/model.h"

namespace lockbench::results {

/// Nothing if it is none.
std::optional<double> number_of(const OptionValue& value);
/// The option's number in a result's workload; nothing if it has none of that name.
std::optional<double> workload_number(const Result& result, const std::string& key);

/// The option's text in a result's workload; empty if it has none or is of another type.
std::string workload_text(const Result& result, const std::string& key);

/// As people read it: "yes", "0.002", "redis-* etcd"; empty for null.
std::string value_text(const OptionValue& value);

/// A number is the same whether it was written whole or not, and whatever unit it was read in.
bool same_value(const OptionValue& a, const OptionValue& b);

/// Whether the option of this key says where output goes, and nothing of what is measured.
bool is_of_output(std::string_view key);

}  // namespace lockbench::results
