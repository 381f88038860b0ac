#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "results/file/fields.h"
#include "results/file/json_document.h"

namespace lockbench::results {
namespace {

using Json = nlohmann::json;

/// Where in the document a value stands; spelt out only when something is wrong there.
struct Path {
  const Path* parent = nullptr;
  std::string_view name;  ///< empty: an array's element
  std::size_t index = 0;

  std::string text() const {
    const std::string before = parent != nullptr ? parent->text() : "";
    if (name.empty()) {
      return parent != nullptr ? fmt::format("{}[{}]", before, index) : before;
    }
    return before.empty() ? std::string(name) : fmt::format("{}.{}", before, name);
  }
};

struct Reading {
  int version = 0;    ///< of the file
  std::string error;  ///< the first; nothing is read after it
};

/// Fills structs from an object.
class Reader {
 public:
  Reader(const Json& object, const Path& path, Reading& reading)
      : object_(object),
        path_(path),
        version_(reading.version),
        error_(reading.error),
        reading_(reading) {
    if (!object.is_object()) {
      fail(path, "is not an object");
    }
  }

  template <class T>
  void operator()(const char* name, T& value) {
    if (const Json* found = member(name)) {
      read(*found, Path{&path_, name}, value);
    }
  }

  void measured(const char* name, double& value, bool exists) {
    const Json* found = member(name);
    if (found != nullptr && (exists || !found->is_null())) {
      read(*found, Path{&path_, name}, value);
    }
  }

  template <class Fill>
  void group(const char* name, Fill fill) {
    if (const Json* found = member(name)) {
      const Path path{&path_, name};
      Reader inner(*found, path, reading_);
      fill(inner);
    }
  }

  template <class T>
  void where_there(const char* name, T& value) {
    if (object_.is_object() && object_.contains(name)) (*this)(name, value);
  }

  template <class T>
  void added(const char* name, T& value) {
    if (version_ == 1) return where_there(name, value);
    (*this)(name, value);
  }

  void constant(const char* name, const char* text) {
    const Json* found = member(name);
    const bool before = text == kSchema && version_ == 1;
    if (found != nullptr && *found != (before ? kSchemaBefore : text)) {
      fail(Path{&path_, name}, fmt::format("is not \"{}\"", text));
    }
  }

  void points(Experiment& experiment) {
    std::string name;
    (*this)("name", name);
    const auto& names = Experiment::kNames;
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) {
      fail(Path{&path_, "name"}, fmt::format("is none of {}", fmt::join(names, ", ")));
    } else if (known == names.begin()) {
      (*this)("points", experiment.points.emplace<std::vector<RenewalPoint>>());
    } else if (known == names.begin() + 1) {
      (*this)("points", experiment.points.emplace<std::vector<QuorumPoint>>());
    } else {
      (*this)("points", experiment.points.emplace<std::vector<DosePoint>>());
    }
  }

 private:
  const Json* member(const char* name) {
    if (!error_.empty()) {
      return nullptr;
    }
    const auto found = object_.find(name);
    if (found == object_.end()) {
      fail(Path{&path_, name}, "is missing");
      return nullptr;
    }
    return &*found;
  }

  void fail(const Path& path, std::string_view what) {
    if (error_.empty()) {
      const std::string where = path.text();
      error_ = fmt::format("{} {}", where.empty() ? "the document" : where, what);
    }
  }

  template <class T>
  void read_if(bool fits, const Json& json, const Path& path, T& value,
               std::string_view otherwise) {
    if (fits) {
      json.get_to(value);
    } else {
      fail(path, otherwise);
    }
  }

  void read(const Json& json, const Path& path, bool& value) {
    read_if(json.is_boolean(), json, path, value, "is neither true nor false");
  }
  void read(const Json& json, const Path& path, std::string& value) {
    read_if(json.is_string(), json, path, value, "is not a text");
  }
  void read(const Json& json, const Path& path, std::uint64_t& value) {
    read_if(json.is_number_unsigned(), json, path, value, "is not a whole number of at least 0");
  }
  void read(const Json& json, const Path& path, int& value) {
    std::uint64_t wide = 0;
    read(json, path, wide);
    if (wide > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
      fail(path, "is too large");
      return;
    }
    value = static_cast<int>(wide);
  }
  void read(const Json& json, const Path& path, double& value) {
    if (json.is_null()) {
      value = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    read_if(json.is_number(), json, path, value, "is not a number");
  }
  template <class T>
  void read(const Json& json, const Path& path, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) {
      read(json, path, value.emplace());
    }
  }

  void read(const Json& json, const Path& path, Verdict& value) {
    const auto* const known = std::find(kVerdicts.begin(), kVerdicts.end(), json);
    if (known == kVerdicts.end()) {
      fail(path, fmt::format("is none of {}", fmt::join(kVerdicts, ", ")));
    } else {
      value = static_cast<Verdict>(known - kVerdicts.begin());
    }
  }

  void read(const Json& json, const Path& path, Distribution::Bucket& bucket) {
    if (!json.is_array() || json.size() != 2) {
      fail(path, "is not a pair [upper, count]");
      return;
    }
    read(json[0], Path{&path, {}, 0}, bucket.upper);
    read(json[1], Path{&path, {}, 1}, bucket.count);
  }

  void read(const Json& json, const Path& path, NodeVotes& votes) {
    if (!json.is_array() || json.size() != 4) {
      fail(path, "is not a list [node, granted, refused, failed]");
      return;
    }
    read(json[0], Path{&path, {}, 0}, votes.node);
    read(json[1], Path{&path, {}, 1}, votes.granted);
    read(json[2], Path{&path, {}, 2}, votes.refused);
    read(json[3], Path{&path, {}, 3}, votes.failed);
  }

  void read(const Json& json, const Path& path, OptionValue& value) {
    if (json.is_null()) {
      value = nullptr;
    } else if (json.is_boolean()) {
      value = json.get<bool>();
    } else if (json.is_number_float()) {
      value = json.get<double>();
    } else if (json.is_string()) {
      value = json.get<std::string>();
    } else if (json.is_array()) {
      read(json, path, value.emplace<std::vector<std::string>>());
    } else if (json.is_number_integer() &&
               !(json.is_number_unsigned() && json.get<std::uint64_t>() >> 63U != 0)) {
      value = json.get<std::int64_t>();
    } else {
      fail(path, "is not the value of an option");
    }
  }

  template <class T>
  void read(const Json& json, const Path& path, std::vector<T>& values) {
    if (!json.is_array()) {
      fail(path, "is not a list");
      return;
    }
    values.clear();
    values.reserve(json.size());
    for (std::size_t i = 0; i < json.size() && error_.empty(); ++i) {
      read(json[i], Path{&path, {}, i}, values.emplace_back());
    }
  }

  template <class T>
  void read(const Json& json, const Path& path, std::map<std::string, T>& values) {
    if (!json.is_object()) {
      fail(path, "is not an object");
      return;
    }
    for (const auto& [name, element] : json.items()) {
      read(element, Path{&path, name}, values[name]);
    }
  }

  template <class Struct>
  void read(const Json& json, const Path& path, Struct& value) {
    Reader reader(json, path, reading_);
    describe(reader, value);
  }

  const Json& object_;
  const Path& path_;
  const int version_;
  std::string& error_;
  Reading& reading_;
};

}  // namespace

tl::expected<Result, std::string> read_result(const nlohmann::json& document) {
  Result result;
  Reading reading{
      .version = document.is_object() && document.value("schema", Json()) == kSchemaBefore ? 1 : 2};
  const Path root;
  Reader reader(document, root, reading);
  describe(reader, result);
  if (!reading.error.empty()) {
    return tl::unexpected(std::move(reading.error));
  }
  result.version = reading.version;
  return result;
}

}  // namespace lockbench::results
