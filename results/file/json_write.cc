#include <cmath>
#include <nlohmann/json.hpp>

#include "results/file/fields.h"
#include "results/file/json_document.h"

namespace lockbench::results {
namespace {

using OrderedJson = nlohmann::ordered_json;

class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = write(value);
  }

  void measured(const char* name, double value, bool exists) {
    object_[name] = exists ? write(value) : OrderedJson();
  }

  template <class Fill>
  void group(const char* name, Fill fill) {
    Writer inner;
    fill(inner);
    object_[name] = inner.take();
  }

  template <class T>
  void where_there(const char* name, const std::optional<T>& value) {
    if (value) object_[name] = write(*value);
  }

  template <class T>
  void where_there(const char* name, const std::vector<T>& values) {
    if (!values.empty()) object_[name] = write(values);
  }

  void constant(const char* name, const char* text) { object_[name] = text; }

  void points(const Experiment& experiment) {
    object_["name"] = experiment.name();
    object_["points"] =
        std::visit([](const auto& points) { return write(points); }, experiment.points);
  }

  OrderedJson take() { return std::move(object_); }

 private:
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
  static OrderedJson write(const Distribution::Bucket& bucket) {
    return OrderedJson::array({write(bucket.upper), bucket.count});
  }
  static OrderedJson write(const NodeVotes& votes) {
    return OrderedJson::array({votes.node, votes.granted, votes.refused, votes.failed});
  }
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
    for (const T& value : values) {
      array.push_back(write(value));
    }
    return array;
  }

  template <class T>
  static OrderedJson write(const std::map<std::string, T>& values) {
    OrderedJson object = OrderedJson::object();
    for (const auto& [name, value] : values) {
      object[name] = write(value);
    }
    return object;
  }

  template <class Struct>
  static OrderedJson write(const Struct& value) {
    Writer writer;
    describe(writer, value);
    return writer.take();
  }

  OrderedJson object_ = OrderedJson::object();
};

}  // namespace

nlohmann::ordered_json write_object(const Result& result) {
  Writer writer;
  describe(writer, result);
  return writer.take();
}

}  // namespace lockbench::results
