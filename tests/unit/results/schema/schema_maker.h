#pragma once

#include <boost/core/demangle.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <typeinfo>

#include "results/file/fields.h"

namespace lockbench::results {

/// Makes the JSON Schema of a result from its fields: their names and types, and which must be
/// there. What people alone can say of a field (its description, bounds and words) is taken from
/// the schema so far.
class SchemaMaker {
 public:
  using Json = nlohmann::ordered_json;

  explicit SchemaMaker(const Json& so_far) : so_far_(so_far) {}

  Json make() {
    Json schema = object<Result>(so_far_);
    // Written by scripts/condense.py alone.
    schema["properties"]["compact"] =
        with_words(part(part(so_far_, "properties"), "compact"), Json{{"type", "boolean"}});
    schema["definitions"] = std::move(definitions_);
    return schema;
  }

 private:
  /// Of an object or of a list of fixed length.
  class Members {
   public:
    Members(SchemaMaker& maker, const Json& so_far) : maker_(maker), so_far_(so_far) {}

    template <class T>
    void operator()(const char* name, const T& /*value*/) {
      add(name, true, [&](const Json& before) { return maker_.type<T>(before); });
    }
    template <class T>
    void left_out(const char* name, const std::optional<T>& /*value*/) {
      add(name, false, [&](const Json& before) { return maker_.type<T>(before); });
    }
    template <class T>
    void left_out(const char* name, const std::vector<T>& /*values*/) {
      add(name, false, [&](const Json& before) { return maker_.type<std::vector<T>>(before); });
    }
    void measured(const char* name, double value, bool /*exists*/) { (*this)(name, value); }
    template <class Fill>
    void group(const char* name, Fill fill) {
      add(name, true, [&](const Json& before) {
        Members inner(maker_, before);
        fill(inner);
        return inner.object();
      });
    }
    void constant(const char* name, const char* text) {
      add(name, true, [&](const Json& /*before*/) { return Json{{"enum", {text}}}; });
    }

    Json object() const {
      return {{"type", "object"}, {"required", required_}, {"properties", properties_}};
    }
    Json list() const {
      Json items = Json::array();
      for (const Json& one : properties_) items.push_back(one);
      const std::size_t size = items.size();
      return {{"type", "array"},
              {"items", std::move(items)},
              {"minItems", size},
              {"maxItems", size},
              {"additionalItems", false}};
    }

   private:
    template <class Type>
    void add(const char* name, bool required, const Type& type) {
      const Json& items = part(so_far_, "items");
      const std::size_t place = properties_.size();
      const Json& before =
          place < items.size() ? items[place] : part(part(so_far_, "properties"), name);
      properties_[name] = with_words(before, type(before));
      if (required) required_.push_back(name);
    }

    SchemaMaker& maker_;
    const Json& so_far_;
    Json properties_ = Json::object(), required_ = Json::array();
  };

  static const Json& part(const Json& of, const std::string& name) {
    static const Json nothing = Json::object();
    return of.contains(name) ? of.at(name) : nothing;
  }

  /// What was made, with what people said. Their bound goes before the one of the type.
  static Json with_words(const Json& so_far, Json made) {
    Json whole = Json::object();
    for (const char* name : {"$schema", "title", "description"}) {
      if (so_far.contains(name)) whole[name] = so_far.at(name);
    }
    // What stands beside a reference is ignored.
    if (!whole.empty() && made.contains("$ref")) made = Json{{"allOf", Json::array({made})}};
    whole.update(made);
    for (const char* name : {"minimum", "exclusiveMinimum", "maximum", "minLength", "pattern",
                             "enum", "propertyNames"}) {
      const bool own = whole.contains(name) && std::string_view(name) != "minimum";
      if (so_far.contains(name) && !own) whole[name] = so_far.at(name);
    }
    return whole;
  }

  template <class T>
  Json object(const Json& so_far) {
    Members members(*this, so_far);
    T value{};
    describe(members, value);
    return with_words(so_far, kIsList<T> ? members.list() : members.object());
  }

  template <class T>
  Json type(const Json& so_far) {
    return type(so_far, static_cast<const T*>(nullptr));
  }
  Json type(const Json& /*so_far*/, const bool* /*of*/) { return {{"type", "boolean"}}; }
  Json type(const Json& /*so_far*/, const std::string* /*of*/) { return {{"type", "string"}}; }
  Json type(const Json& /*so_far*/, const std::uint64_t* /*of*/) {
    return {{"type", "integer"}, {"minimum", 0}};
  }
  Json type(const Json& so_far, const int* /*of*/) { return type<std::uint64_t>(so_far); }
  /// Null where nothing was measured, unless the schema says that this cannot be.
  Json type(const Json& so_far, const double* /*of*/) {
    if (part(so_far, "type") == "number") return {{"type", "number"}};
    return {{"type", {"number", "null"}}};
  }
  Json type(const Json& /*so_far*/, const Verdict* /*of*/) { return {{"enum", kVerdicts}}; }
  Json type(const Json& /*so_far*/, const OptionValue* /*of*/) {
    return Json::parse(R"({"anyOf": [{"type": ["null", "boolean", "number", "string"]},
                                     {"type": "array", "items": {"type": "string"}}]})");
  }
  template <class T>
  Json type(const Json& so_far, const std::optional<T>* /*of*/) {
    Json inner = type<T>(so_far);
    if (!inner.contains("type")) return {{"anyOf", {inner, {{"type", "null"}}}}};
    if (inner["type"].is_string()) inner["type"] = {inner["type"], "null"};
    return inner;
  }
  template <class T>
  Json type(const Json& so_far, const std::vector<T>* /*of*/) {
    const Json& before = part(so_far, "items");
    return {{"type", "array"}, {"items", with_words(before, type<T>(before))}};
  }
  template <class T>
  Json type(const Json& so_far, const std::map<std::string, T>* /*of*/) {
    const Json& before = part(so_far, "additionalProperties");
    return {{"type", "object"}, {"additionalProperties", with_words(before, type<T>(before))}};
  }
  template <class Struct>
  Json type(const Json& /*so_far*/, const Struct* /*of*/) {
    const std::string whole = boost::core::demangle(typeid(Struct).name());
    const std::string name = whole.substr(whole.rfind(':') + 1);
    if (!definitions_.contains(name)) {
      Json made = object<Struct>(part(part(so_far_, "definitions"), name));
      definitions_[name] = std::move(made);
    }
    return {{"$ref", "#/definitions/" + name}};
  }

  const Json& so_far_;
  Json definitions_ = Json::object();
};

}  // namespace lockbench::results
