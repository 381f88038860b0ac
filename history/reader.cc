#include "history/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <unordered_map>

namespace lockbench::history {
namespace {

// Bounds of memory.
constexpr std::size_t kLongestForm = std::size_t{1} << 20, kChunk = std::size_t{4} << 20;
constexpr std::size_t kMostOperations = 200'000'000;

/// A value in EDN or JSON, as far as histories need it. Views the source.
struct Value {
  enum class Kind { nothing, number, text, other } kind = Kind::nothing;
  std::int64_t number = 0;
  std::string_view text{};  ///< of a keyword, symbol, number or string; the source of other values
};

/// Reads values one after the other. After an error or at the end of the text, it only returns
/// empty values.
class Scanner {
 public:
  Scanner(std::string_view text, bool json) : text_(text), json_(json) {}

  std::size_t at() const { return at_; }
  bool cut() const { return cut_; }  ///< the text ended too early
  const std::string& error() const { return error_; }
  bool good() const { return !cut_ && error_.empty(); }

  /// The next character behind blanks, and in EDN behind comments; 0 if there is none.
  char peek() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ';' && !json_) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c != ' ' && c != '\n' && c != ',' && c != '\t' && c != '\r') {
        return c;
      } else {
        ++at_;
      }
    }
    cut_ = true;
    return 0;
  }

  Value value() {
    char c = peek();
    while (c == '#' && good()) {  // a tag, which does not matter, or a set
      ++at_;
      if (at_ < text_.size() && text_[at_] != '{') word();
      c = peek();
    }
    if (!good()) return {};
    if (c == '{' || c == '[' || c == '(') return nested();
    if (c == '"') return {.kind = Value::Kind::text, .text = string()};
    const std::string_view text = word();
    if (text.empty()) fail(fmt::format("unexpected \"{}\"", c));
    if (text.empty() || text == (json_ ? "null" : "nil")) return {};
    Value value{.kind = Value::Kind::text, .text = text};
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value.number);
    if (wrong == std::errc() && end == text.data() + text.size()) value.kind = Value::Kind::number;
    if (!json_ && text.front() == ':') value.text.remove_prefix(1);
    return value;
  }

  /// Calls `each` with the key and value of all entries.
  template <class Each>
  void map(const Each& each) {
    while (peek() == '#' && good()) {  // the name of a record
      at_ = std::min(text_.find('{', at_), text_.size());
    }
    if (peek() != '{') return fail("expected {");
    ++at_;
    while (good() && peek() != '}') {
      const Value key = value();
      if (json_ && peek() != ':') return fail("expected :");
      if (json_) ++at_;
      const Value given = value();
      if (good()) each(key.text, given);
    }
    ++at_;
  }

  void fail(std::string why) {
    if (good()) error_ = std::move(why);
  }

 private:
  std::string_view word() {
    static constexpr auto kEnds = [] {
      std::array<bool, 256> ends{};
      for (const char c : std::string_view(" \n,\t\r\"{}[]();"))
        ends[static_cast<unsigned char>(c)] = true;
      return ends;
    }();
    const std::size_t begin = at_;
    while (at_ < text_.size() && !kEnds[static_cast<unsigned char>(text_[at_])] &&
           !(json_ && text_[at_] == ':')) {
      ++at_;
    }
    cut_ = cut_ || at_ >= text_.size();
    return text_.substr(begin, at_ - begin);
  }

  /// The source between quotes: names are compared, not shown as anything else.
  std::string_view string() {
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) {
      cut_ = true;
      return {};
    }
    return text_.substr(begin, at_++ - begin);
  }

  /// A map, vector, list or set.
  Value nested() {
    const std::size_t begin = at_;
    std::size_t depth = 0;
    do {
      const char c = peek();
      if (!good()) return {};
      if (c == '"') {
        string();
        continue;
      }
      if (c == '\\') ++at_;  // a character in EDN
      if (c == '{' || c == '[' || c == '(') ++depth;
      if (c == '}' || c == ']' || c == ')') --depth;
      ++at_;
    } while (depth > 0 && good());
    return {.kind = Value::Kind::other, .text = text_.substr(begin, at_ - begin)};
  }

  const std::string_view text_;
  const bool json_;
  std::size_t at_ = 0;
  bool cut_ = false;
  std::string error_;
};

/// Numbers names from 0 on.
class Names {
 public:
  explicit Names(std::vector<std::string>& names) : names_(names) {}

  std::int32_t number(std::string_view name) {
    // Mostly the key is that of the operation before.
    if (!names_.empty() && names_[latest_] == name) return static_cast<std::int32_t>(latest_);
    return static_cast<std::int32_t>(latest_ = find(name));
  }

 private:
  std::size_t find(std::string_view name) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    const std::size_t next = names_.size();
    numbers_.emplace(names_.emplace_back(name), next);
    return next;
  }

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> numbers_;
  std::size_t latest_ = 0;
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
};

class Reader {
 public:
  explicit Reader(Form form) : json_(form == Form::jsonl) {}

  Fields scan(Scanner& scanner) const {
    Fields fields;
    if (json_) {
      scanner.map([&](std::string_view name, const Value& value) {
        if (name == "ClientId") fields.process = value;
        if (name == "Call") fields.begin = value;
        if (name == "Return") fields.end = value;
        if (name != "Input" && name != "Output") return;
        // As the whole text is there, only an error can stop this.
        Scanner inner(value.text, true);
        inner.map([&](std::string_view part, const Value& given) {
          if (part == "f") fields.f = given;
          if (part == "key") fields.key = given;
          if (part == "type") fields.type = given;
          if (part == "value") fields.value = given;
        });
        if (!inner.good()) scanner.fail(fmt::format("{} is not an object", name));
      });
      return fields;
    }
    scanner.map([&](std::string_view name, const Value& value) {
      if (name == "process") fields.process = value;
      if (name == "type") fields.type = value;
      if (name == "f") fields.f = value;
      if (name == "time") fields.begin = value;
      if (name == "value") fields.value = value;
    });
    // A key and its value, as jepsen.independent writes them.
    if (fields.value.kind == Value::Kind::other && fields.value.text.front() == '[') {
      Scanner pair(fields.value.text.substr(1), false);
      fields.key = pair.value();
      fields.value = pair.value();
    }
    return fields;
  }

  /// The error says what is wrong.
  tl::expected<void, std::string> take(const Fields& fields, std::uint32_t line) {
    return json_ ? take_object(fields, line) : take_event(fields, line);
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
    set_value(operation, fields.value);
    history_.operations.push_back(operation);
    return {};
  }

  static void set_value(Operation& operation, const Value& value) {
    if (value.kind == Value::Kind::number) operation.value = value.number;
  }

  Result take_event(const Fields& fields, std::uint32_t line) {
    if (fields.process.kind == Value::Kind::nothing) return bad(":process is missing");
    if (fields.process.kind != Value::Kind::number) return {};
    const auto outcome = choice<Outcome>(kOutcomes, fields.type.text);
    if (!outcome && fields.type.text != "invoke") {
      return bad(":type is \"{}\"; allowed: :invoke, :ok, :fail, :info", fields.type.text);
    }
    const auto process = static_cast<std::size_t>(processes_.number(fields.process.text));
    if (process >= running_.size()) running_.resize(process + 1, kNone);
    std::int64_t& running = running_[process];
    const auto f = choice<Function>(kFunctions, fields.f.text);
    // The order of the lines is that of the events, whatever their times.
    const bool timed = fields.begin.kind == Value::Kind::number && fields.begin.number < kOpen / 2;
    now_ = std::max(now_ + 1, timed ? fields.begin.number : 0);
    if (!outcome) {
      if (running != kNone) {
        return bad("process {} begins an operation before its previous one has ended",
                   fields.process.text);
      }
      running = f ? static_cast<std::int64_t>(history_.operations.size()) : kIgnored;
      history_.ignored += f ? 0 : 1;
      return f ? add(fields, {.begin = now_, .line = line, .f = *f}) : Result();
    }
    if (running == kNone) {
      return bad("process {} ends an operation that it has not begun", fields.process.text);
    }
    if (running == kIgnored) {
      running = kNone;
      return {};
    }
    Operation& ended = history_.operations[static_cast<std::size_t>(running)];
    running = kNone;
    if (f != ended.f) {
      return bad(":f is \"{}\", but the process has begun {} in line {}", fields.f.text,
                 kFunctions.at(static_cast<std::size_t>(ended.f)), ended.line);
    }
    ended.outcome = *outcome;
    if (*outcome != Outcome::info) ended.end = now_;
    set_value(ended, fields.value);
    return {};
  }

  Result take_object(const Fields& fields, std::uint32_t line) {
    const auto f = choice<Function>(kFunctions, fields.f.text);
    history_.ignored += f ? 0 : 1;
    if (!f) return {};
    for (const auto& [name, value] :
         {std::pair("ClientId", &fields.process), std::pair("Call", &fields.begin),
          std::pair("Return", &fields.end)}) {
      if (value->kind == Value::Kind::number) continue;
      return bad("{} is \"{}\"; allowed: a whole number of 64 bits", name, value->text);
    }
    const auto outcome = choice<Outcome>(kOutcomes, fields.type.text);
    if (!outcome) {
      return bad("Output.type is \"{}\"; allowed: {}", fields.type.text,
                 fmt::join(kOutcomes, ", "));
    }
    const bool open = *outcome == Outcome::info;
    if (fields.end.number < fields.begin.number) return bad("Return is before Call");
    return add(fields, {.begin = fields.begin.number,
                        .end = open ? kOpen : fields.end.number,
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

tl::expected<History, std::string> read(const Refill& refill, Form form, std::string_view name,
                                        std::size_t chunk) {
  Reader reader(form);
  std::string buffer;
  std::size_t at = 0, line = 1;
  bool complete = false;
  const auto bad = [&](std::string_view why) {
    return tl::unexpected(fmt::format("{}:{}: {}", name, line, why));
  };
  const auto pass = [&](std::size_t bytes) {
    for (const std::size_t end = at + bytes; at < end; ++line) {
      const void* const found = std::memchr(buffer.data() + at, '\n', end - at);
      if (found == nullptr) return void(at = end);
      at = static_cast<std::size_t>(static_cast<const char*>(found) - buffer.data()) + 1;
    }
  };
  while (true) {
    Scanner scanner(std::string_view(buffer).substr(at), form == Form::jsonl);
    const char first = scanner.peek();
    if (scanner.good()) {
      const std::size_t blanks = scanner.at();
      // A vector around all operations does not matter.
      if (std::string_view("[]()").find(first) != std::string_view::npos) {
        pass(blanks + 1);
        continue;
      }
      const Fields fields = reader.scan(scanner);
      if (!scanner.cut()) {
        pass(blanks);
        if (!scanner.error().empty()) return bad(scanner.error());
        if (auto taken = reader.take(fields, static_cast<std::uint32_t>(line)); !taken) {
          return bad(taken.error());
        }
        pass(scanner.at() - blanks);
        continue;
      }
    } else if (complete) {
      break;
    }
    if (complete || buffer.size() - at > kLongestForm + chunk) {
      return bad(complete ? "the file ends within an operation"
                          : "more than 1 MiB in one operation");
    }
    buffer.erase(0, std::exchange(at, 0));
    const std::size_t kept = buffer.size();
    buffer.resize(kept + chunk);
    const std::size_t got = refill(buffer.data() + kept, chunk);
    buffer.resize(kept + got);
    complete = got == 0;
  }
  return reader.take_all();
}

tl::expected<History, std::string> read(const std::string& path) {
  const auto form = form_of(path);
  if (!form) return tl::unexpected(form.error());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) return tl::unexpected(fmt::format("{}: {}", path, std::strerror(errno)));
  auto history =
      read([&](char* to, std::size_t most) { return std::fread(to, 1, most, file.get()); }, *form,
           path, kChunk);
  if (std::ferror(file.get()) != 0) return tl::unexpected(path + ": cannot be read");
  return history;
}

}  // namespace lockbench::history
