#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "results/file/fields.h"
#include "results/file/json.h"

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

  static OrderedJson write(bool value) { return value; }
  static OrderedJson write(int value) { return value; }
  static OrderedJson write(std::int64_t value) { return value; }
  static OrderedJson write(std::uint64_t value) { return value; }
  static OrderedJson write(double value) {
    return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
  }
  static OrderedJson write(const std::string& value) { return value; }
  static OrderedJson write(std::nullptr_t) { return nullptr; }
  static OrderedJson write(Verdict value) { return to_string(value); }
  static OrderedJson write(const OptionValue& value) {
    return std::visit([](const auto& alternative) { return write(alternative); }, value);
  }
  static OrderedJson write(const Experiment& experiment) {
    const auto points = [](const auto& all) { return write(all); };
    return {{"name", experiment.name()}, {"points", std::visit(points, experiment.points)}};
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
  return std::none_of(value.begin(), value.end(),
                      [](const auto& element) { return element.is_structured(); });
}

/// Objects of scalars, arrays of scalars, and arrays of such arrays: a histogram's buckets.
bool fits_one_line(const OrderedJson& value) {
  if (!value.is_structured() || holds_scalars_only(value)) return true;
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const auto& element) {
           return element.is_array() && holds_scalars_only(element);
         });
}

std::string on_one_line(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// As deep as the document is, no deeper.
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

}  // namespace

std::string to_json(const Result& result) {
  std::string out;
  dump(Writer::write(result), 0, out);
  return out + "\n";
}

}  // namespace lockbench::results
