#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "history/operation.h"

namespace lockbench::history {
namespace {

// Bounds of memory.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::size_t kMostOperations = 200'000'000;

/// A value in EDN or JSON, as far as histories need it. Views the line.
struct Value {
  std::string_view text{};  ///< of a keyword, symbol, number or string; the source of other values
  std::optional<std::int64_t> number{};
  bool is_vector = false;
};

/// Reads the values of a line one after the other. After an error it returns empty values.
class Scanner {
 public:
  Scanner(std::string_view text, bool json) : text_(text), json_(json) {}

  const std::string& error() const { return error_; }

  /// The next character behind blanks; 0 at the end of the line, or in EDN at a comment.
  char peek() {
    const auto is_blank = [](char c) { return c == ' ' || c == ',' || c == '\t' || c == '\r'; };
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return at_ < text_.size() && (json_ || text_[at_] != ';') ? text_[at_] : '\0';
  }
  /// Never beyond the end, where a line may be cut off.
  void skip() {
    if (at_ < text_.size()) ++at_;
  }

  Value value() {
    char c = peek();
    while (c == '#') {  // a tag, which does not matter, or a set
      skip();
      if (at_ < text_.size() && text_[at_] != '{') word();
      c = peek();
    }
    if (c == '{' || c == '[' || c == '(') return nested(c == '[');
    if (c == '"') return {.text = string()};
    Value value{.text = word()};
    if (value.text.empty()) fail(c);
    if (value.text.empty() || value.text == (json_ ? "null" : "nil")) return {};
    std::int64_t number = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [rest, wrong] = std::from_chars(value.text.data(), end, number);
    if (wrong == std::errc() && rest == end) value.number = number;
    if (!json_ && value.text.front() == ':') value.text.remove_prefix(1);
    return value;
  }

  /// Calls `each` with the key and value of all entries, in JSON also of those of Input and Output.
  template <class Each>
  void map(const Each& each, bool inside = false) {
    while (peek() == '#') at_ = std::min(text_.find('{', at_), text_.size());  // a record's name
    expect('{');
    while (error_.empty() && peek() != '}') {
      const std::string_view key = value().text;
      if (json_) expect(':');
      if (json_ && !inside && (key == "Input" || key == "Output")) {
        map(each, true);
      } else {
        each(key, value());
      }
    }
    skip();
  }

 private:
  void fail(char unexpected) {
    if (!error_.empty()) return;
    error_ = unexpected == 0 ? "the line ends within an operation"
                             : fmt::format("unexpected \"{}\"", unexpected);
  }

  void expect(char c) {
    if (peek() == c) return skip();
    if (error_.empty()) error_ = fmt::format("expected {}", c);
  }

  std::string_view word() {
    static constexpr auto kEnds = [] {
      std::array<bool, 256> ends{};
      for (const unsigned char c : std::string_view(" ,\t\r\"{}[]();")) ends.at(c) = true;
      return ends;
    }();
    const std::size_t begin = at_;
    while (at_ < text_.size() && !kEnds[static_cast<unsigned char>(text_[at_])] &&
           !(json_ && text_[at_] == ':')) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  /// The source between quotes: names are compared, not shown as anything else.
  std::string_view string() {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') skip();
      skip();
    }
    if (at_ >= text_.size()) {
      fail(0);
      return {};
    }
    return text_.substr(begin, at_++ - begin);
  }

  /// A map, vector, list or set.
  Value nested(bool is_vector) {
    const std::size_t begin = at_;
    std::size_t depth = 0;
    do {
      const char c = peek();
      if (c == 0) {
        fail(c);
        return {};
      }
      if (c == '"') {
        string();
        continue;
      }
      if (c == '\\') skip();  // a character in EDN
      if (c == '{' || c == '[' || c == '(') ++depth;
      if (c == '}' || c == ']' || c == ')') --depth;
      skip();
    } while (depth > 0);
    return {.text = text_.substr(begin, at_ - begin), .is_vector = is_vector};
  }

  const std::string_view text_;
  const bool json_;
  std::size_t at_ = 0;
  std::string error_;
};

/// Numbers names in the order of their coming.
class Names {
 public:
  explicit Names(std::vector<std::string>& names) : names_(names) {}

  std::int32_t number(std::string_view name) {
    // Mostly the key is that of the operation before.
    if (!names_.empty() && names_[static_cast<std::size_t>(latest_)] == name) return latest_;
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return latest_ = found->second;
    latest_ = static_cast<std::int32_t>(names_.size());
    numbers_.emplace(names_.emplace_back(name), latest_);
    return latest_;
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> numbers_;
  std::int32_t latest_ = 0;
};

template <class Choice, std::size_t n>
std::optional<Choice> choice(const std::array<std::string_view, n>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Choice>(found - names.begin());
}

/// The fields of one map of the file.
struct Fields {
  Value process, f, type, value, key, begin, end;

  void set(std::string_view name, const Value& given) {
    if (name == "f") f = given;
    if (name == "type") type = given;
    if (name == "value") value = given;
    if (name == "key") key = given;
    if (name == "process" || name == "ClientId") process = given;
    if (name == "time" || name == "Call") begin = given;
    if (name == "Return") end = given;
  }
};

class Reader {
 public:
  explicit Reader(Form form) : json_(form == Form::jsonl) {}

  /// The error says what is wrong.
  tl::expected<void, std::string> take(std::string_view text, std::uint32_t line) {
    Scanner scanner(text, json_);
    while (const char first = scanner.peek()) {
      // A vector around all operations does not matter.
      if (std::string_view("[]()").find(first) != std::string_view::npos) {
        scanner.skip();
        continue;
      }
      Fields fields;
      scanner.map([&](std::string_view name, const Value& value) { fields.set(name, value); });
      if (!scanner.error().empty()) return tl::unexpected(scanner.error());
      auto taken = json_ ? take_object(fields, line) : take_event(fields, line);
      if (!taken) return taken;
    }
    return {};
  }

  History take_all() { return std::move(history_); }

 private:
  using Result = tl::expected<void, std::string>;
  static constexpr std::int64_t kNone = -1, kIgnored = -2;

  template <class... Args>
  static Result bad(fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected(fmt::format(text, std::forward<Args>(args)...));
  }

  Result add(const Fields& fields, Operation operation) {
    if (history_.operations.size() >= kMostOperations) return bad("too many operations");
    operation.process = processes_.number(fields.process.text);
    operation.key = keys_.number(fields.key.text);
    operation.value = fields.value.number.value_or(operation.value);
    history_.operations.push_back(operation);
    return {};
  }

  Result take_event(Fields& fields, std::uint32_t line) {
    if (fields.process.text.empty()) return bad(":process is missing");
    if (!fields.process.number) return {};
    if (fields.value.is_vector) {
      // A key and its value, as jepsen.independent writes them.
      Scanner pair(fields.value.text.substr(1), false);
      fields.key = pair.value();
      fields.value = pair.value();
    }
    const auto outcome = choice<Outcome>(kOutcomes, fields.type.text);
    if (!outcome && fields.type.text != "invoke") {
      return bad(":type is \"{}\"; allowed: :invoke, :ok, :fail, :info", fields.type.text);
    }
    const auto process = static_cast<std::size_t>(processes_.number(fields.process.text));
    if (process >= running_.size()) running_.resize(process + 1, kNone);
    const std::int64_t running = std::exchange(running_[process], kNone);
    const auto f = choice<Function>(kFunctions, fields.f.text);
    // The order of the lines is that of the events, whatever their times.
    const bool timed = fields.begin.number && *fields.begin.number < kOpen / 2;
    now_ = std::max(now_ + 1, timed ? *fields.begin.number : 0);
    if (!outcome) {
      if (running != kNone) {
        return bad("process {} begins an operation before its previous one has ended",
                   fields.process.text);
      }
      running_[process] = f ? static_cast<std::int64_t>(history_.operations.size()) : kIgnored;
      history_.ignored += f ? 0 : 1;
      return f ? add(fields, {.begin = now_, .line = line, .f = *f}) : Result();
    }
    if (running == kNone) {
      return bad("process {} ends an operation that it has not begun", fields.process.text);
    }
    if (running == kIgnored) return {};
    Operation& ended = history_.operations[static_cast<std::size_t>(running)];
    if (f != ended.f) {
      return bad(":f is \"{}\", but the process has begun {} in line {}", fields.f.text,
                 kFunctions.at(static_cast<std::size_t>(ended.f)), ended.line);
    }
    ended.outcome = *outcome;
    if (*outcome != Outcome::info) ended.end = now_;
    ended.value = fields.value.number.value_or(ended.value);
    return {};
  }

  Result take_object(const Fields& fields, std::uint32_t line) {
    const auto f = choice<Function>(kFunctions, fields.f.text);
    history_.ignored += f ? 0 : 1;
    if (!f) return {};
    for (const auto& [name, value] :
         {std::pair("ClientId", &fields.process), std::pair("Call", &fields.begin),
          std::pair("Return", &fields.end)}) {
      if (value->number) continue;
      return bad("{} is \"{}\"; allowed: a whole number of 64 bits", name, value->text);
    }
    const auto outcome = choice<Outcome>(kOutcomes, fields.type.text);
    if (!outcome) {
      return bad("Output.type is \"{}\"; allowed: {}", fields.type.text,
                 fmt::join(kOutcomes, ", "));
    }
    if (*fields.end.number < *fields.begin.number) return bad("Return is before Call");
    return add(fields, {.begin = *fields.begin.number,
                        .end = *outcome == Outcome::info ? kOpen : *fields.end.number,
                        .line = line,
                        .f = *f,
                        .outcome = *outcome});
  }

  const bool json_;
  History history_;
  Names keys_{history_.keys}, processes_{history_.processes};
  std::vector<std::int64_t> running_;  ///< by process: its operation that has not ended
  std::int64_t now_ = -1;              ///< of the latest event
};

}  // namespace

tl::expected<History, std::string> read(std::istream& from, Form form, std::string_view name) {
  Reader reader(form);
  std::string text(kLongestLine, '\0');
  for (std::uint32_t line = 1; from.peek() != std::istream::traits_type::eof(); ++line) {
    from.getline(text.data(), static_cast<std::streamsize>(text.size()));
    if (from.bad()) break;
    if (from.fail()) return tl::unexpected(fmt::format("{}:{}: longer than 1 MiB", name, line));
    const auto length = static_cast<std::size_t>(from.gcount()) - (from.eof() ? 0 : 1);
    if (auto taken = reader.take(std::string_view(text.data(), length), line); !taken) {
      return tl::unexpected(fmt::format("{}:{}: {}", name, line, taken.error()));
    }
  }
  if (from.bad()) return tl::unexpected(fmt::format("{}: cannot be read", name));
  return reader.take_all();
}

tl::expected<History, std::string> read(const std::string& path) {
  const auto form = form_of(path);
  if (!form) return tl::unexpected(form.error());
  std::ifstream file(path);
  if (!file) return tl::unexpected(fmt::format("{}: {}", path, std::strerror(errno)));
  return read(file, *form, path);
}

}  // namespace lockbench::history
