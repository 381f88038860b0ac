#include "testbed/process/wire.h"

namespace lockbench::testbed::wire {
namespace {

void append_escaped(std::string& line, std::string_view field) {
  for (const char c : field) {
    switch (c) {
      case '\t':
        line += "%t";
        break;
      case '\n':
        line += "%n";
        break;
      case '%':
        line += "%%";
        break;
      default:
        line += c;
    }
  }
}

char unescaped(char code) {
  switch (code) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    default:
      return code;
  }
}

}  // namespace

std::string encode(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += '\t';
    append_escaped(line, field);
  }
  line += '\n';
  return line;
}

std::vector<std::string> decode(std::string_view line) {
  std::vector<std::string> fields(1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\t') {
      fields.emplace_back();
    } else if (line[i] == '%' && i + 1 < line.size()) {
      fields.back() += unescaped(line[++i]);
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

bool LineBuffer::append(std::string_view bytes) {
  bytes_ += bytes;
  return bytes_.size() <= kMaxLine || bytes_.find('\n') <= kMaxLine;
}

std::optional<std::string> LineBuffer::next() {
  const std::size_t end = bytes_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  return line;
}

}  // namespace lockbench::testbed::wire
