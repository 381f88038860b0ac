#include "results/file/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "results/file/fields.h"
#include "results/file/loads.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

using OrderedJson = nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(OrderedJson empty) : document_(std::move(empty)) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    add(name, write(value));
  }
  template <class T>
  void left_out(const char* name, const std::optional<T>& value) {
    if (value) add(name, write(*value));
  }
  template <class T>
  void left_out(const char* name, const std::vector<T>& values) {
    if (!values.empty()) add(name, write(values));
  }
  void measured(const char* name, double value, bool exists) {
    add(name, exists ? write(value) : OrderedJson());
  }
  template <class Fill>
  void group(const char* name, Fill fill) {
    Writer inner(OrderedJson::object());
    fill(inner);
    add(name, inner.take());
  }
  void constant(const char* name, const char* text) { add(name, text); }

  OrderedJson take() { return std::move(document_); }

  template <class Struct>
  static OrderedJson write(const Struct& value) {
    Writer writer(kIsList<Struct> ? OrderedJson::array() : OrderedJson::object());
    describe(writer, value);
    return writer.take();
  }

 private:
  void add(const char* name, OrderedJson value) {
    if (document_.is_array()) {
      document_.push_back(std::move(value));
    } else {
      document_[name] = std::move(value);
    }
  }

  template <class T>
  requires std::integral<T> || std::same_as<T, std::string> || std::same_as<T, std::nullptr_t>
  static OrderedJson write(const T& value) { return value; }
  static OrderedJson write(double value) {
    return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
  }
  static OrderedJson write(Verdict value) { return to_string(value); }
  static OrderedJson write(const OptionValue& value) {
    return std::visit([](const auto& alternative) { return write(alternative); }, value);
  }
  template <class T>
  static OrderedJson write(const std::optional<T>& value) {
    return value ? write(*value) : OrderedJson();
  }
  template <class T>
  static OrderedJson write(const std::vector<T>& values) {
    OrderedJson array = OrderedJson::array();
    for (const T& value : values) array.push_back(write(value));
    return array;
  }
  template <class T>
  static OrderedJson write(const std::map<std::string, T>& values) {
    OrderedJson object = OrderedJson::object();
    for (const auto& [name, value] : values) object[name] = write(value);
    return object;
  }

  OrderedJson document_;
};

bool holds_scalars_only(const OrderedJson& value) {
  return std::ranges::none_of(value, [](const auto& element) { return element.is_structured(); });
}

/// Objects of scalars, arrays of scalars, and arrays of such arrays: a histogram's buckets.
bool fits_one_line(const OrderedJson& value) {
  if (!value.is_structured() || holds_scalars_only(value)) return true;
  return value.is_array() && std::ranges::all_of(value, [](const auto& element) {
           return element.is_array() && holds_scalars_only(element);
         });
}

std::string on_one_line(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Recurses only as deep as the document is.
void dump(const OrderedJson& value, std::size_t indent, std::string& out) {
  if (fits_one_line(value)) {
    out += on_one_line(value);
    return;
  }
  out += value.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 1, ' ');
    if (value.is_object()) out += on_one_line(key) + ": ";
    dump(member, indent + 1, out);
  }
  out += "\n";
  out.append(indent, ' ');
  out += value.is_array() ? "]" : "}";
}

using nlohmann::json;

/// Above 2^53, readers that use doubles lose precision. A sum of two thousand such counts still
/// fits into 64 bits.
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 53;
/// Bound of seconds, rates and shares: as a whole number, it still fits into 64 bits.
constexpr double kMostNumber = 1e18;
/// Bound of all elements of lists and maps in memory, in bytes: a short element in the file may be
/// large in memory.
constexpr std::size_t kMostMemory = kMaxResultBytes;
constexpr std::size_t kMaxErrorColumns = 240;

constexpr const char* kNoObject = "is not an object";
constexpr const char* kNoList = "is not a list";

/// Reads a document up to the first problem.
class Reader {
 public:
  /// What is wrong with a value, and where it is.
  struct Problem {
    std::string what, where{};
  };

  /// `compact`: members of runs may be missing.
  explicit Reader(bool compact) : compact_(compact) {}

  template <class Struct>
  void read(const json& from, Struct& to) {
    if (kIsList<Struct> && !from.is_array()) return fail(kNoList);
    if (!kIsList<Struct> && !from.is_object()) return fail(kNoObject);
    Members members(*this, from);
    describe(members, to);
    members.finish();
  }

  /// Nothing if everything could be read.
  const std::optional<Problem>& problem() const { return problem_; }

 private:
  /// Visitor for describe(): reads from the members of an object, or the elements of a list.
  class Members {
   public:
    Members(Reader& reader, const json& from) : reader_(reader), from_(from) {}

    template <class T>
    void operator()(const char* name, T& value) {
      member(name, !reader_.may_lack_, [&](const json& one) { reader_.read(one, value); });
    }
    template <class T>
    void left_out(const char* name, T& value) {
      member(name, false, [&](const json& one) { reader_.read(one, value); });
    }
    void measured(const char* name, double& value, bool exists) {
      (*this)(name, value);
      if (!exists && std::isnan(value)) value = 0;
    }
    template <class Fill>
    void group(const char* name, Fill fill) {
      member(name, !reader_.may_lack_, [&](const json& one) {
        if (!one.is_object()) return reader_.fail(kNoObject);
        Members inner(reader_, one);
        fill(inner);
      });
    }
    void constant(const char* name, const char* text) {
      member(name, !reader_.may_lack_, [&](const json& one) {
        if (one != text) reader_.fail(fmt::format("is not \"{}\"", text));
      });
    }

    void finish() const {
      if (reader_.problem_ || !from_.is_array() || next_ == from_.size()) return;
      reader_.fail(fmt::format("is not a list of {} values", next_));
    }

   private:
    template <class Read>
    void member(const char* name, bool required, const Read& read) {
      if (reader_.problem_) return;
      if (from_.is_array()) {
        if (next_ < from_.size()) read(from_[next_]);
        reader_.blame(fmt::format("[{}]", next_++));
        return;
      }
      const auto found = from_.find(name);
      if (found != from_.end()) {
        read(*found);
      } else if (required) {
        reader_.fail("is missing");
      }
      reader_.blame(fmt::format(".{}", name));
    }

    Reader& reader_;
    const json& from_;
    std::size_t next_ = 0;  ///< of the elements of a list
  };

  void fail(std::string what) { problem_ = Problem{std::move(what)}; }
  /// Adds the place to the problem, if there is one.
  void blame(std::string_view place) {
    if (problem_) problem_->where.insert(0, place);
  }

  void read(const json& from, bool& to) {
    if (!from.is_boolean()) return fail("is neither true nor false");
    to = from.get<bool>();
  }
  void read(const json& from, std::string& to) {
    if (!from.is_string()) return fail("is not a string");
    to = from.get_ref<const std::string&>();
  }
  void read_count(const json& from, std::uint64_t most, std::uint64_t& to) {
    if (!from.is_number_unsigned()) return fail("is not a whole number of at least 0");
    to = from.get<std::uint64_t>();
    if (to > most) fail(fmt::format("is too large: at most {} is read", most));
  }
  void read(const json& from, std::uint64_t& to) { read_count(from, kMostCount, to); }
  void read(const json& from, int& to) {
    std::uint64_t count = 0;
    read_count(from, std::numeric_limits<int>::max(), count);
    if (!problem_) to = static_cast<int>(count);
  }
  void read(const json& from, double& to) {
    if (!from.is_number() && !from.is_null()) return fail("is not a number");
    to = from.is_null() ? std::numeric_limits<double>::quiet_NaN() : from.get<double>();
    if (std::abs(to) > kMostNumber) {
      fail(fmt::format("is too large: at most {:.0e} is read", kMostNumber));
    }
  }
  void read(const json& from, Verdict& to) {
    const std::string name = from.is_string() ? from.get<std::string>() : "";
    const auto* const known = std::ranges::find(kVerdicts, name);
    if (known == kVerdicts.end()) {
      return fail(fmt::format("is none of {}", fmt::join(kVerdicts, ", ")));
    }
    to = static_cast<Verdict>(known - kVerdicts.begin());
  }
  void read(const json& from, OptionValue& to) {
    if (from.is_boolean()) return read(from, to.emplace<bool>());
    if (from.is_number_float()) return read(from, to.emplace<double>());
    if (from.is_string()) return read(from, to.emplace<std::string>());
    if (from.is_array()) return read(from, to.emplace<std::vector<std::string>>());
    const bool whole = from.is_number_unsigned() ? from.get<std::uint64_t>() >> 63U == 0
                                                 : from.is_number_integer();
    if (!whole && !from.is_null()) return fail("is not the value of an option");
    to = whole ? OptionValue(from.get<std::int64_t>()) : OptionValue(nullptr);
  }
  void read(const json& from, Distribution& to) {
    read<Distribution>(from, to);
    check(to.buckets, to.overflow, to.count);
    check(to.censored.buckets, to.censored.overflow, to.censored.count);
  }
  template <class T>
  void read(const json& from, std::optional<T>& to) {
    to.reset();
    if (!from.is_null()) read(from, to.emplace());
  }
  template <class T>
  void read(const json& from, std::vector<T>& to) {
    if (!from.is_array()) return fail(kNoList);
    constexpr bool kOfRuns = std::is_same_v<T, Run>;
    if (kOfRuns) may_lack_ = compact_;
    to.clear();
    for (const json& one : from) {
      to.emplace_back();
      take(sizeof(T));
      if (!problem_) read(one, to.back());
      if (problem_) return blame(fmt::format("[{}]", to.size() - 1));
    }
    if (kOfRuns) may_lack_ = false;
  }
  template <class T>
  void read(const json& from, std::map<std::string, T>& to) {
    if (!from.is_object()) return fail(kNoObject);
    for (const auto& [name, one] : from.items()) {
      take(sizeof(T));
      if (!problem_) read(one, to[name]);
      if (problem_) return blame("." + name);
    }
  }

  void check(const std::vector<Distribution::Bucket>& buckets, std::uint64_t overflow,
             std::uint64_t count) {
    if (problem_) return;
    double before = -1;
    std::uint64_t samples = overflow;
    for (const Distribution::Bucket& bucket : buckets) {
      if (!(bucket.upper >= 0) || bucket.upper <= before) {
        return fail("has buckets that do not grow");
      }
      before = bucket.upper;
      if (samples <= count) samples += bucket.count;
    }
    if (samples > count) fail("has more samples in its buckets than it counts");
  }

  void take(std::size_t bytes) {
    memory_ += bytes;
    if (memory_ <= kMostMemory) return;
    fail(fmt::format("is more than a result holds: {} bytes in memory", kMostMemory));
  }

  const bool compact_;
  bool may_lack_ = false;
  std::size_t memory_ = 0;  ///< bytes that lists and maps took so far
  std::optional<Problem> problem_;
};

/// Builds the document, unless it is nested too deep. The library's own callback for such checks
/// (3.11) takes time quadratic in the length of a list of objects.
class Builder : public nlohmann::detail::json_sax_dom_parser<json> {
 public:
  explicit Builder(json& document) : json_sax_dom_parser(document) {}

  bool start_object(std::size_t size) { return open() && json_sax_dom_parser::start_object(size); }
  bool start_array(std::size_t size) { return open() && json_sax_dom_parser::start_array(size); }
  bool end_object() {
    --depth_;
    return json_sax_dom_parser::end_object();
  }
  bool end_array() {
    --depth_;
    return json_sax_dom_parser::end_array();
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string_view message = error.what();
    message.remove_prefix(std::min(message.size(), message.find("] ") + 2));
    return fail(fmt::format("not JSON: {}", message));
  }

  /// Empty if the document is complete.
  const std::string& error() const { return error_; }

 private:
  bool open() {
    if (++depth_ <= kMaxResultDepth) return true;
    return fail(fmt::format("nested too deep for a result: more than {} levels", kMaxResultDepth));
  }
  bool fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  std::size_t depth_ = 0;
  std::string error_;
};

/// An error if the document has another schema than the one read here; else empty.
std::string another_schema(const json& document) {
  if (!document.is_object() || !document.contains("schema")) {
    return fmt::format("not a lockbench result: it has no \"schema\": \"{}\"", kSchema);
  }
  const json& schema = document.at("schema");
  if (schema == kSchema) return "";
  return fmt::format("schema {} cannot be read, only \"{}\"", clip(schema.dump(-1, ' ', true), 60),
                     kSchema);
}

/// An error if the result has more than commands can produce, as each item costs work; else empty.
std::string beyond_commands(const Result& result) {
  constexpr std::size_t kMostStrategies = 256, kMostLoads = 16, kMostOfExperiment = 500;
  // Each load of an experiment or of a sweep adds only a row to its table.
  const bool rows = is_experiment(result) || is_sweep(result);
  const std::size_t most_loads = rows ? kMostOfExperiment : kMostLoads;
  std::set<std::string_view> strategies, scenarios;
  std::vector<const Load*> loads;
  for (const Run& run : result.runs) {
    strategies.insert(run.strategy);
    const bool there =
        std::ranges::any_of(loads, [&](const Load* one) { return *one == run.load; });
    if (!there) loads.push_back(&run.load);
    if (loads.size() > most_loads) return fmt::format("runs have more than {} loads", most_loads);
  }
  if (result.hazards) {
    for (const Hazard& hazard : *result.hazards) {
      strategies.insert(hazard.strategy);
      scenarios.insert(hazard.scenario);
    }
  }
  if (std::max(strategies.size(), scenarios.size()) > kMostStrategies) {
    return fmt::format("more than {} strategies or scenarios", kMostStrategies);
  }
  return "";
}

tl::expected<Result, std::string> read_result(std::string_view text) {
  if (text.size() > kMaxResultBytes) {
    return tl::unexpected(fmt::format("too large for a result: {} bytes, at most {} are read",
                                      text.size(), kMaxResultBytes));
  }
  json document;
  Builder builder(document);
  json::sax_parse(text.begin(), text.end(), &builder);
  if (!builder.error().empty()) return tl::unexpected(builder.error());
  if (std::string why = another_schema(document); !why.empty()) {
    return tl::unexpected(std::move(why));
  }
  Result result;
  const auto compact = document.find("compact");
  Reader reader(compact != document.end() && *compact == true);
  reader.read(document, result);
  if (const auto& problem = reader.problem()) {
    return tl::unexpected(fmt::format("{} {}", problem->where.substr(1), problem->what));
  }
  if (std::string why = beyond_commands(result); !why.empty()) {
    return tl::unexpected(std::move(why));
  }
  return result;
}

/// Reads in pieces, as the size of pipes and devices is unknown. Stops beyond kMaxResultBytes.
tl::expected<std::string, std::string> read_text(const std::string& path) {
  constexpr std::size_t kPiece = 1 << 20;
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  std::string text;
  while (file && text.size() <= kMaxResultBytes) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    const std::size_t got = std::fread(text.data() + before, 1, kPiece, file.get());
    text.resize(before + got);
    if (got < kPiece) break;
  }
  if (!file || std::ferror(file.get()) != 0) {
    return tl::unexpected(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  return text;
}

}  // namespace

std::string to_json(const Result& result) {
  std::string out;
  dump(Writer::write(result), 0, out);
  return out + "\n";
}

tl::expected<Result, std::string> from_json(std::string_view text) {
  return read_result(text).map_error(
      [](const std::string& error) { return clip(printable(error), kMaxErrorColumns); });
}

tl::expected<Result, std::string> load(const std::string& path) {
  return read_text(path)
      .and_then([](const std::string& text) { return from_json(text); })
      .map_error(
          [&](const std::string& error) { return printable(fmt::format("{}: {}", path, error)); });
}

}  // namespace lockbench::results
