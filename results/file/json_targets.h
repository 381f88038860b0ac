#pragma once

#include <bitset>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "results/file/fields.h"
#include "results/file/json_scalars.h"

// What the values of a result file are read into while they come, so that no document stands in
// memory: one target for each value of fields.h. Others are passed over.
namespace lockbench::results::reading {

/// Elements of a list: of numbers, words and points of a series, and of larger objects.
inline constexpr std::size_t kMostSmall = 1'000'000, kMostLarge = 50'000;
inline constexpr std::size_t kSmall = 64;  ///< bytes
/// What a result may take.
inline constexpr std::size_t kMostMemory = std::size_t{256} << 20;

struct Context {
  std::size_t memory = 0;  ///< that was taken so far, in bytes
};

class Target {
 public:
  virtual ~Target() = default;
  virtual Problem scalar(Scalar value) = 0;
  virtual Problem begin(bool list) = 0;
  /// For the next value in it; null: it is passed over.
  virtual std::unique_ptr<Target> member(std::string_view /*name*/, Problem& /*problem*/) {
    return nullptr;
  }
  virtual std::unique_ptr<Target> element(Problem& /*problem*/) { return nullptr; }
  /// The first member that had to come and did not; empty: none.
  virtual std::string_view missing() { return {}; }
  virtual Problem end() { return {}; }
};

using TargetPtr = std::unique_ptr<Target>;

template <class T>
class ScalarTarget : public Target {
 public:
  explicit ScalarTarget(T& value) : value_(value) {}
  Problem scalar(Scalar value) override { return assign(value, value_); }
  Problem begin(bool /*list*/) override {
    if constexpr (std::is_same_v<T, Verdict>) {
      return scalar(nullptr);  // says which words there are
    } else {
      return wrong_type<T>();
    }
  }

 private:
  T& value_;
};

/// Visits the fields of an object, as in fields.h: to find the target of one, or the first of those
/// required that did not come.
class Fields {
 public:
  using Seen = std::bitset<64>;

  Fields(Context& context, Seen& seen, std::optional<std::string_view> wanted = {})
      : context_(context), seen_(seen), wanted_(wanted) {}

  template <class T>
  void operator()(const char* name, T& value) {
    field(name, true, [&] { return target_for(context_, value); });
  }
  template <class T>
  void where_there(const char* name, T& value) {
    field(name, false, [&] { return target_for(context_, value); });
  }
  void measured(const char* name, double& value, bool exists) {
    (*this)(name, value);
    if (!wanted_ && !exists && std::isnan(value)) value = 0;
  }
  template <class Fill>
  void group(const char* name, Fill fill);
  void constant(const char* name, const char* text);
  void points(Experiment& experiment);

  TargetPtr target(Problem& problem) {
    problem = std::move(problem_);
    return std::move(target_);
  }
  std::string_view missing() const { return missing_; }

 private:
  template <class Make>
  void field(const char* name, bool required, const Make& make) {
    const std::size_t place = next_++;
    if (!wanted_) {
      if (required && !seen_.test(place) && missing_.empty()) missing_ = name;
      return;
    }
    if (name != *wanted_) return;
    if (seen_.test(place)) problem_ = "is there twice";
    seen_.set(place);
    target_ = make();
  }

  Context& context_;
  Seen& seen_;
  const std::optional<std::string_view> wanted_;
  std::size_t next_ = 0;
  TargetPtr target_;
  Problem problem_;
  std::string_view missing_;
};

/// `Visit` shows the object's fields to a Fields; `Check` looks at the whole when it is there.
template <class Visit, class Check>
class ObjectTarget : public Target {
 public:
  ObjectTarget(Context& context, Visit visit, Check check)
      : context_(context), visit_(std::move(visit)), check_(std::move(check)) {}

  Problem scalar(Scalar /*value*/) override { return begin(true); }
  Problem begin(bool list) override { return list ? Problem(kNotAnObject) : Problem(); }
  TargetPtr member(std::string_view name, Problem& problem) override {
    Fields fields(context_, seen_, name);
    visit_(fields);
    return fields.target(problem);
  }
  std::string_view missing() override {
    Fields fields(context_, seen_);
    visit_(fields);
    return fields.missing();
  }
  Problem end() override { return check_(); }

 private:
  Context& context_;
  const Visit visit_;
  const Check check_;
  Fields::Seen seen_;
};

template <class Visit, class Check>
TargetPtr object_target(Context& context, Visit visit, Check check) {
  return std::make_unique<ObjectTarget<Visit, Check>>(context, std::move(visit), std::move(check));
}

template <class T>
class ListTarget : public Target {
 public:
  ListTarget(Context& context, std::vector<T>& values) : context_(context), values_(values) {
    values_.clear();
  }
  Problem scalar(Scalar /*value*/) override { return wrong_type<std::vector<T>>(); }
  Problem begin(bool list) override { return list ? Problem() : wrong_type<std::vector<T>>(); }
  TargetPtr element(Problem& problem) override {
    constexpr std::size_t kMost = sizeof(T) <= kSmall ? kMostSmall : kMostLarge;
    if (values_.size() == kMost) {
      problem = fmt::format("is beyond the {} elements that are read", kMost);
      return nullptr;
    }
    context_.memory += sizeof(T);
    return target_for(context_, values_.emplace_back());
  }

 private:
  Context& context_;
  std::vector<T>& values_;
};

template <class T>
class MapTarget : public Target {
 public:
  MapTarget(Context& context, std::map<std::string, T>& values)
      : context_(context), values_(values) {}
  Problem scalar(Scalar /*value*/) override { return begin(true); }
  Problem begin(bool list) override { return list ? Problem(kNotAnObject) : Problem(); }
  TargetPtr member(std::string_view name, Problem& problem) override {
    const auto [place, fresh] = values_.try_emplace(std::string(name));
    if (!fresh) problem = "is there twice";
    context_.memory += sizeof(*place) + name.size() + kSmall;
    return target_for(context_, place->second);
  }

 private:
  Context& context_;
  std::map<std::string, T>& values_;
};

/// A list of so many values, each of a type of its own. `Whole` is what it stands for.
template <class Whole, class... Ts>
class TupleTarget : public Target {
 public:
  TupleTarget(Context& context, Ts&... values) : context_(context), values_(values...) {}
  Problem scalar(Scalar /*value*/) override { return wrong_type<Whole>(); }
  Problem begin(bool list) override { return list ? Problem() : wrong_type<Whole>(); }
  TargetPtr element(Problem& /*problem*/) override {
    TargetPtr found;
    std::size_t place = 0;
    std::apply(
        [&](auto&... values) {
          ((place++ == next_ ? void(found = target_for(context_, values)) : void()), ...);
        },
        values_);
    ++next_;
    return found;
  }
  Problem end() override { return next_ == sizeof...(Ts) ? Problem() : wrong_type<Whole>(); }

 private:
  Context& context_;
  std::tuple<Ts&...> values_;
  std::size_t next_ = 0;
};

/// Null, or what T is.
template <class T>
class OptionalTarget : public Target {
 public:
  OptionalTarget(Context& context, std::optional<T>& value) : context_(context), value_(value) {}
  Problem scalar(Scalar value) override {
    value_.reset();
    return std::holds_alternative<std::nullptr_t>(value) ? Problem()
                                                         : open().scalar(std::move(value));
  }
  Problem begin(bool list) override { return open().begin(list); }
  TargetPtr member(std::string_view name, Problem& problem) override {
    return inner_->member(name, problem);
  }
  TargetPtr element(Problem& problem) override { return inner_->element(problem); }
  std::string_view missing() override { return inner_->missing(); }
  Problem end() override { return inner_->end(); }

 private:
  Target& open() {
    inner_ = target_for(context_, value_.emplace());
    return *inner_;
  }

  Context& context_;
  std::optional<T>& value_;
  TargetPtr inner_;
};

class OptionTarget : public ScalarTarget<OptionValue> {
 public:
  OptionTarget(Context& context, OptionValue& value)
      : ScalarTarget(value), context_(context), value_(value) {}
  Problem begin(bool list) override {
    if (!list) return wrong_type<OptionValue>();
    texts_.emplace(context_, value_.emplace<std::vector<std::string>>());
    return {};
  }
  TargetPtr element(Problem& problem) override { return texts_->element(problem); }

 private:
  Context& context_;
  OptionValue& value_;
  std::optional<ListTarget<std::string>> texts_;
};

class ConstantTarget : public Target {
 public:
  explicit ConstantTarget(const char* text) : text_(text) {}
  Problem scalar(Scalar value) override {
    const auto* read = std::get_if<std::string>(&value);
    return read != nullptr && *read == text_ ? Problem() : begin(false);
  }
  Problem begin(bool /*list*/) override { return fmt::format("is not \"{}\"", text_); }

 private:
  const char* const text_;
};

/// The name decides of what type the points are.
class ExperimentName : public Target {
 public:
  explicit ExperimentName(Experiment::Points& points) : points_(points) {}
  Problem scalar(Scalar value) override {
    const auto* name = std::get_if<std::string>(&value);
    if (name == nullptr) return begin(false);
    if (*name == Experiment::kNames[0]) {
      points_.emplace<0>();
    } else if (*name == Experiment::kNames[1]) {
      points_.emplace<1>();
    } else {
      return begin(false);
    }
    return {};
  }
  Problem begin(bool /*list*/) override {
    return fmt::format("is none of {}", fmt::join(Experiment::kNames, ", "));
  }

 private:
  Experiment::Points& points_;
};

template <class T>
Problem problem_of(const T& /*object*/) {
  return {};
}

inline Problem problem_of(const std::vector<Distribution::Bucket>& buckets, std::uint64_t overflow,
                          std::uint64_t count) {
  double before = -1;
  std::uint64_t samples = overflow;
  for (const Distribution::Bucket& bucket : buckets) {
    if (!(bucket.upper >= 0) || bucket.upper <= before) return "has buckets that do not grow";
    before = bucket.upper;
    if (samples <= count) samples += bucket.count;
  }
  return samples <= count ? Problem() : Problem("has more samples in its buckets than it counts");
}

inline Problem problem_of(const Distribution& distribution) {
  Problem problem = problem_of(distribution.buckets, distribution.overflow, distribution.count);
  if (!problem.empty()) return problem;
  const Distribution::Censored& censored = distribution.censored;
  return problem_of(censored.buckets, censored.overflow, censored.count);
}

template <class T>
concept ScalarValue = Is<T, bool> || Is<T, std::string> || Is<T, std::uint64_t> || Is<T, int> ||
    Is<T, double> || Is<T, Verdict>;

TargetPtr target_for(Context& /*context*/, ScalarValue auto& value) {
  return std::make_unique<ScalarTarget<std::remove_reference_t<decltype(value)>>>(value);
}
inline TargetPtr target_for(Context& context, OptionValue& value) {
  return std::make_unique<OptionTarget>(context, value);
}
inline TargetPtr target_for(Context& context, Distribution::Bucket& bucket) {
  return std::make_unique<TupleTarget<Distribution::Bucket, double, std::uint64_t>>(
      context, bucket.upper, bucket.count);
}
inline TargetPtr target_for(Context& context, NodeVotes& votes) {
  using Count = std::uint64_t;
  return std::make_unique<TupleTarget<NodeVotes, std::string, Count, Count, Count>>(
      context, votes.node, votes.granted, votes.refused, votes.failed);
}
template <class T>
TargetPtr target_for(Context& context, std::optional<T>& value) {
  return std::make_unique<OptionalTarget<T>>(context, value);
}
template <class T>
TargetPtr target_for(Context& context, std::vector<T>& values) {
  return std::make_unique<ListTarget<T>>(context, values);
}
template <class T>
TargetPtr target_for(Context& context, std::map<std::string, T>& values) {
  return std::make_unique<MapTarget<T>>(context, values);
}
template <class Struct>
TargetPtr target_for(Context& context, Struct& object) {
  return object_target(
      context, [&object](Fields& fields) { describe(fields, object); },
      [&object] { return problem_of(object); });
}

template <class Fill>
void Fields::group(const char* name, Fill fill) {
  field(name, true, [&] { return object_target(context_, fill, [] { return Problem(); }); });
}

inline void Fields::constant(const char* name, const char* text) {
  field(name, true, [&] { return std::make_unique<ConstantTarget>(text); });
}

inline void Fields::points(Experiment& experiment) {
  const std::size_t name = next_;
  field("name", true, [&] { return std::make_unique<ExperimentName>(experiment.points); });
  field("points", true, [&] {
    if (!seen_.test(name)) problem_ = "comes before its name, or name is missing";
    return std::visit([&](auto& points) { return target_for(context_, points); },
                      experiment.points);
  });
}

}  // namespace lockbench::results::reading
