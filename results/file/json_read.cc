#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "results/file/json.h"
#include "results/file/json_document.h"
#include "results/file/json_targets.h"
#include "results/tables/text.h"

namespace lockbench::results {
namespace {

using nlohmann::json;
using reading::Problem;
using reading::Scalar;
using reading::TargetPtr;

/// What is told of a document while it is parsed. What returns false ends that.
class Events : public nlohmann::json_sax<json> {
 public:
  virtual bool scalar(Scalar value) = 0;
  virtual bool open(bool list) = 0;
  virtual bool close() = 0;

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(std::uint64_t{value}); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return scalar(value);
  }
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(false); }
  bool start_array(std::size_t /*size*/) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string_view message = error.what();
    message.remove_prefix(std::min(message.size(), message.find("] ") + 2));
    return fail(fmt::format("not JSON: {}", message));
  }

  /// The first; empty: none.
  const std::string& error() const { return error_; }

 protected:
  bool fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
    return false;
  }

 private:
  std::string error_;
};

/// Finds the member "schema" of a document, where lockbench writes it first.
class SchemaFinder : public Events {
 public:
  /// As it stands in the file.
  const std::optional<std::string>& schema() const { return schema_; }

  bool scalar(Scalar value) override {
    if (!is_schema()) return true;
    schema_ = std::visit([](const auto& one) { return json(one).dump(-1, ' ', true); }, value);
    return false;
  }
  bool open(bool list) override {
    if (is_schema()) {
      schema_ = list ? "[…]" : "{…}";
      return false;
    }
    if (depth_++ == 0) is_object_ = !list;
    return true;
  }
  bool close() override {
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) name_ = std::move(name);
    return true;
  }

 private:
  bool is_schema() const { return depth_ == 1 && is_object_ && name_ == "schema"; }

  std::optional<std::string> schema_;
  std::string name_;  ///< of the document's member that comes
  int depth_ = 0;
  bool is_object_ = false;
};

/// Reads what comes into a result.
class Reader : public Events {
 public:
  explicit Reader(Result& result) : result_(result) {}

  /// For after the end.
  bool finish() { return lacking_.empty() || compact_ || fail(lacking_); }

  bool scalar(Scalar value) override {
    const bool* const flag = std::get_if<bool>(&value);
    if (levels_.size() == 1 && levels_.back().name == kCompact) compact_ = flag != nullptr && *flag;
    Problem problem;
    const TargetPtr target = next(problem);
    if (target && problem.empty()) {
      if (const auto* text = std::get_if<std::string>(&value)) context_.memory += text->size();
      problem = target->scalar(std::move(value));
    }
    return accept(problem);
  }
  bool open(bool list) override {
    Problem problem;
    TargetPtr target = next(problem);
    if (target && problem.empty()) problem = target->begin(list);
    if (!accept(problem)) return false;
    levels_.push_back({.target = std::move(target), .list = list});
    return true;
  }
  bool close() override {
    const bool of_a_run = levels_.size() > 1 && levels_.front().name == "runs";
    const TargetPtr target = std::move(levels_.back().target);
    levels_.pop_back();
    if (!target) return true;
    if (const std::string_view name = target->missing(); !name.empty()) {
      const std::string where = path();
      std::string lacking = fmt::format("{}{}{} is missing", where, where.empty() ? "" : ".", name);
      if (!of_a_run) return fail(std::move(lacking));
      if (lacking_.empty()) lacking_ = std::move(lacking);
    }
    const Problem problem = target->end();
    // What is missing may be why.
    if (!problem.empty() && !lacking_.empty() && !compact_) return fail(lacking_);
    return accept(problem);
  }
  bool key(string_t& name) override {
    levels_.back().name = std::move(name);
    return true;
  }

 private:
  struct Level {
    TargetPtr target;  ///< null: it is passed over
    bool list = false;
    std::string name{};     ///< of the member that comes, in an object
    std::size_t count = 0;  ///< of the elements that came, in a list
  };

  /// Of the value that comes.
  TargetPtr next(Problem& problem) {
    if (levels_.empty()) return reading::target_for(context_, result_);
    Level& level = levels_.back();
    ++level.count;
    if (!level.target) return nullptr;
    return level.list ? level.target->element(problem) : level.target->member(level.name, problem);
  }

  std::string path() const {
    std::string text;
    for (const Level& level : levels_) {
      if (level.list) {
        text += fmt::format("[{}]", level.count - 1);
      } else {
        text += (text.empty() ? "" : ".") + level.name;
      }
    }
    return text;
  }

  bool accept(const Problem& problem) {
    if (context_.memory > reading::kMostMemory) {
      return fail(fmt::format("holds too much for a result: more than {} bytes in memory",
                              reading::kMostMemory));
    }
    if (problem.empty()) return true;
    const std::string where = path();
    return fail(fmt::format("{} {}", where.empty() ? "the document" : where, problem));
  }

  Result& result_;
  reading::Context context_;
  std::vector<Level> levels_;
  bool compact_ = false;
  std::string lacking_;  ///< the first member that a run lacks: all may in a compact document
};

/// Before anything is parsed: nesting, and the length of a word, which the parser keeps whole.
std::string beyond_bounds(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  std::size_t begin = 0;  // of the word
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i - begin > kMaxResultWord) {
      return fmt::format("holds a word of more than {} bytes", kMaxResultWord);
    }
    switch (text[i]) {
      case '\\':
        i += in_string ? 1 : 0;
        continue;
      case '"':
        in_string = !in_string;
        break;
      case '[':
      case '{':
        depth += in_string ? 0 : 1;
        break;
      case ']':
      case '}':
        depth -= in_string ? 0 : 1;
        break;
      case ' ':
      case '\n':
      case ',':
      case ':':
        break;
      default:
        continue;
    }
    if (!in_string || text[i] == '"') begin = i;
    if (depth > kMaxResultDepth) {
      return fmt::format("nested too deep for a result: more than {} levels", kMaxResultDepth);
    }
  }
  return "";
}

/// Beyond what commands take, and what work is done for each of.
std::string beyond_commands(const Result& result) {
  constexpr std::size_t kMostStrategies = 256, kMostLoads = 16, kMostQuorums = 500;
  std::set<std::string_view> strategies, scenarios;
  std::vector<const Load*> loads;
  for (const Run& run : result.runs) {
    strategies.insert(run.strategy);
    const bool there =
        std::any_of(loads.begin(), loads.end(), [&](const Load* one) { return *one == run.load; });
    if (!there) loads.push_back(&run.load);
    if (loads.size() > kMostLoads) return fmt::format("runs have more than {} loads", kMostLoads);
  }
  if (result.hazards) {
    for (const Hazard& hazard : *result.hazards) {
      strategies.insert(hazard.strategy);
      scenarios.insert(hazard.scenario);
    }
  }
  if (result.experiment) {
    const auto& points = result.experiment->points;
    std::visit(
        [&](const auto& all) {
          for (const auto& point : all) strategies.insert(point.strategy);
        },
        points);
    const auto* quorums = std::get_if<std::vector<QuorumPoint>>(&points);
    if (quorums != nullptr && quorums->size() > kMostQuorums) {
      return fmt::format("more than {} quorums", kMostQuorums);
    }
  }
  if (std::max(strategies.size(), scenarios.size()) > kMostStrategies) {
    return fmt::format("more than {} strategies or scenarios", kMostStrategies);
  }
  return "";
}

/// Says which schema can be read if the document's is another one.
std::string another_schema(std::string_view text) {
  SchemaFinder finder;
  json::sax_parse(text.begin(), text.end(), &finder);
  if (!finder.error().empty()) return finder.error();
  if (!finder.schema()) {
    return fmt::format("not a result of lockbench: there is no \"schema\": \"{}\"", kSchema);
  }
  if (finder.schema() == fmt::format("\"{}\"", kSchema)) return "";
  return fmt::format("schema {} is not the one that can be read here: \"{}\"",
                     clip(*finder.schema(), 60), kSchema);
}

}  // namespace

tl::expected<Result, std::string> read_result(std::string_view text) {
  if (text.size() > kMaxResultBytes) {
    return tl::unexpected(fmt::format("too large for a result: {} bytes, at most {} are read",
                                      text.size(), kMaxResultBytes));
  }
  if (std::string why = beyond_bounds(text); !why.empty()) return tl::unexpected(std::move(why));
  if (std::string why = another_schema(text); !why.empty()) return tl::unexpected(std::move(why));
  Result result;
  Reader reader(result);
  const bool whole = json::sax_parse(text.begin(), text.end(), &reader);
  if (!whole || !reader.finish()) return tl::unexpected(reader.error());
  if (std::string why = beyond_commands(result); !why.empty()) {
    return tl::unexpected(std::move(why));
  }
  return result;
}

}  // namespace lockbench::results
