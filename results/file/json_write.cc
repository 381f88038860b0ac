#include <cmath>
#include <nlohmann/json.hpp>

#include "results/file/fields.h"
#include "results/file/json_document.h"

namespace lockbench::results {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    object_[name] = write(value);
  }

  void measured(const char* name, double value, bool exists) {
    object_[name] = exists ? write(value) : Json();
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

  Json take() { return std::move(object_); }

 private:
  static Json write(bool value) { return value; }
  static Json write(int value) { return value; }
  static Json write(std::int64_t value) { return value; }
  static Json write(std::uint64_t value) { return value; }
  static Json write(double value) { return std::isfinite(value) ? Json(value) : Json(); }
  static Json write(const std::string& value) { return value; }
  static Json write(std::nullptr_t) { return nullptr; }
  static Json write(Verdict value) { return to_string(value); }
  static Json write(const Distribution::Bucket& bucket) {
    return Json::array({write(bucket.upper), bucket.count});
  }
  static Json write(const NodeVotes& votes) {
    return Json::array({votes.node, votes.granted, votes.refused, votes.failed});
  }
  static Json write(const OptionValue& value) {
    return std::visit([](const auto& alternative) { return write(alternative); }, value);
  }

  template <class T>
  static Json write(const std::optional<T>& value) {
    return value ? write(*value) : Json();
  }

  template <class T>
  static Json write(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) {
      array.push_back(write(value));
    }
    return array;
  }

  template <class T>
  static Json write(const std::map<std::string, T>& values) {
    Json object = Json::object();
    for (const auto& [name, value] : values) {
      object[name] = write(value);
    }
    return object;
  }

  template <class Struct>
  static Json write(const Struct& value) {
    Writer writer;
    describe(writer, value);
    return writer.take();
  }

  Json object_ = Json::object();
};

}  // namespace

nlohmann::ordered_json write_object(const Result& result) {
  Writer writer;
  describe(writer, result);
  return writer.take();
}

}  // namespace lockbench::results
