// Runs the benchmark of this folder and prints its step time: see README.md.

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/version.h>

#include "benchmark.h"
#include "ranks.h"

void Fail(const std::string& why) {
  std::fprintf(stderr, "benchmark: %s\n", why.c_str());
  std::exit(3);
}

namespace {

// Return all operators and steps in the benchmark's files.
std::vector<Op*>& Operators() {
  static std::vector<Op*> all;
  return all;
}
std::vector<void (*)(Slots&)>& Steps() {
  static std::vector<void (*)(Slots&)> all;
  return all;
}
int64_t Nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Time between two operators of the original program: first idle time, in which the program waited,
// then busy time, such as Python's.
class Gaps {
 public:
  void Add(int64_t idle, int64_t busy) { rows_.push_back({idle, busy}); }
  bool any() const { return !rows_.empty(); }
  // Return the time passed since the beginning of the step.
  int64_t idle() const { return idle_; }
  int64_t busy() const { return busy_; }

  void BeginStep() {
    next_ = 0;
    idle_ = busy_ = 0;
    Left();
  }
  // Marks the return of an operator, or the end of a wait for a communication.
  void Left() {
    if (!rows_.empty()) left_ = Nanoseconds(CLOCK_MONOTONIC);
  }
  // Passes the next gap, less the time already taken by freeing memory and the like.
  void Pass() {
    if (next_ >= rows_.size()) return;
    const auto [idle, busy] = rows_[next_++];
    int64_t now = Nanoseconds(CLOCK_MONOTONIC);
    if (left_ + idle > now) {
      const int64_t end = left_ + idle;
      const timespec until = {end / 1'000'000'000, end % 1'000'000'000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
      const int64_t awake = Nanoseconds(CLOCK_MONOTONIC);
      idle_ += awake - std::exchange(now, awake);
    }
    int64_t begin = now;
    int64_t end = left_ + idle + busy;
    while (now < end) {
      const int64_t next = Nanoseconds(CLOCK_MONOTONIC);
      // A large step between readings means that another thread ran. That time did not pass in the
      // original program.
      if (const int64_t away = next - now; away > kAway) {
        begin += away;
        end += away;
      }
      now = next;
    }
    busy_ += now - begin;
  }

 private:
  static constexpr int64_t kAway = 50'000;
  struct Row {
    int64_t idle;
    int64_t busy;
  };
  std::vector<Row> rows_;  // before each call, and after the last; empty: no gaps
  size_t next_ = 0;
  int64_t left_ = 0;
  int64_t idle_ = 0;
  int64_t busy_ = 0;
};

Gaps gaps;
std::vector<c10::IValue> works;  // in progress
std::vector<size_t> batch;       // works begun since BeginBatch
const char* running = nullptr;   // the running operator

c10::Device device(c10::kCPU);

struct Form {
  c10::ScalarType dtype;
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};
std::vector<Form> forms;
std::vector<std::vector<int>> tables;

c10::ScalarType DTypeNamed(std::string_view name) {
  static const std::pair<const char*, c10::ScalarType> kNames[] = {
      {"float32", c10::kFloat},
      {"float64", c10::kDouble},
      {"float16", c10::kHalf},
      {"bfloat16", c10::kBFloat16},
      {"int64", c10::kLong},
      {"int32", c10::kInt},
      {"int16", c10::kShort},
      {"int8", c10::kChar},
      {"uint8", c10::kByte},
      {"bool", c10::kBool},
      {"complex64", c10::kComplexFloat},
      {"complex128", c10::kComplexDouble},
      {"complex32", c10::kComplexHalf},
      {"qint8", c10::kQInt8},
      {"quint8", c10::kQUInt8},
      {"qint32", c10::kQInt32},
      {"float8_e4m3fn", c10::ScalarType::Float8_e4m3fn},
      {"float8_e5m2", c10::ScalarType::Float8_e5m2},
      {"float8_e4m3fnuz", c10::ScalarType::Float8_e4m3fnuz},
      {"float8_e5m2fnuz", c10::ScalarType::Float8_e5m2fnuz},
      {"float8_e8m0fnu", c10::ScalarType::Float8_e8m0fnu},
      {"uint16", c10::ScalarType::UInt16},
      {"uint32", c10::ScalarType::UInt32},
      {"uint64", c10::ScalarType::UInt64},
  };
  for (const auto& [known, type] : kNames) {
    if (name == known) return type;
  }
  Fail("no element type " + std::string(name));
}

int64_t LayoutNamed(std::string_view name) {
  if (name == "strided") return static_cast<int64_t>(c10::kStrided);
  if (name == "sparse_coo") return static_cast<int64_t>(c10::kSparse);
  Fail("no layout " + std::string(name));
}

int64_t MemoryFormatNamed(std::string_view name) {
  if (name == "contiguous_format") return static_cast<int64_t>(c10::MemoryFormat::Contiguous);
  if (name == "preserve_format") return static_cast<int64_t>(c10::MemoryFormat::Preserve);
  if (name == "channels_last") return static_cast<int64_t>(c10::MemoryFormat::ChannelsLast);
  if (name == "channels_last_3d") return static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d);
  Fail("no memory format " + std::string(name));
}

// Makes a vector through the dispatcher, because ATen/ops/empty.h takes four seconds to compile.
at::Tensor Empty(int64_t count, c10::ScalarType dtype, c10::Device on = c10::kCPU) {
  using Function =
      at::Tensor(c10::SymIntArrayRef, std::optional<c10::ScalarType>, std::optional<c10::Layout>,
                 std::optional<c10::Device>, std::optional<bool>, std::optional<c10::MemoryFormat>);
  static const auto empty = c10::Dispatcher::singleton()
                                .findSchemaOrThrow("aten::empty", "memory_format")
                                .typed<Function>();
  const c10::SymInt size(count);
  return empty.call(size, dtype, std::nullopt, on, std::nullopt, std::nullopt);
}

// Makes a tensor on memory without running an operator.
at::Tensor Raw(const c10::Storage& storage, const Form& form) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(c10::computeDispatchKey(form.dtype, std::nullopt, storage.device())),
      c10::scalarTypeToTypeMeta(form.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(form.sizes, form.strides, form.offset);
  return tensor;
}

// Returns the element type of a list type; null for other types.
c10::TypePtr ElementType(const c10::TypePtr& type) {
  if (type->kind() != c10::TypeKind::ListType) return nullptr;
  return type->expectRef<c10::ListType>().getElementType();
}

bool IsTensorList(const c10::TypePtr& type, bool& optional) {
  c10::TypePtr element = ElementType(type);
  if (!element) return false;
  optional = element->kind() == c10::TypeKind::OptionalType;
  if (optional) element = element->expectRef<c10::OptionalType>().getElementType();
  return element->kind() == c10::TypeKind::TensorType;
}

bool IsTensorLists(const c10::TypePtr& type) {
  bool optional = false;
  const c10::TypePtr element = ElementType(type);
  return element && IsTensorList(element, optional) && !optional;
}

template <typename T, typename Get>
c10::IValue TypedList(const List& items, Get get) {
  c10::List<T> list;
  for (const Argument& item : items) list.push_back(get(item));
  return list;
}

bool HasNumbers(const Argument& argument) {
  const auto* list = std::get_if<List>(&argument.value);
  return std::holds_alternative<Number>(argument.value) ||
         (list != nullptr && std::any_of(list->begin(), list->end(), HasNumbers));
}

int64_t IntegerOf(const Argument& item, const int* numbers) {
  if (const auto* number = std::get_if<Number>(&item.value)) return numbers[number->number];
  return std::get<int64_t>(item.value);
}

double RealOf(const Argument& item, const int* numbers) {
  if (const auto* real = std::get_if<double>(&item.value)) return *real;
  return static_cast<double>(IntegerOf(item, numbers));
}

// Converts an argument. `numbers`: those of the call, for arguments that contain some.
c10::IValue Constant(const Argument& argument, c10::TypePtr type, const int* numbers = nullptr) {
  const bool is_optional = type->kind() == c10::TypeKind::OptionalType;
  if (is_optional) type = type->expectRef<c10::OptionalType>().getElementType();
  const bool wants_real = type->kind() == c10::TypeKind::FloatType;
  if (std::holds_alternative<None>(argument.value)) {
    const bool is_tensor = type->kind() == c10::TypeKind::TensorType && !is_optional;
    return is_tensor ? c10::IValue(at::Tensor()) : c10::IValue();
  }
  if (const auto* one = std::get_if<bool>(&argument.value)) return *one;
  if (std::holds_alternative<int64_t>(argument.value) ||
      std::holds_alternative<Number>(argument.value)) {
    const int64_t one = IntegerOf(argument, numbers);
    return wants_real ? c10::IValue(static_cast<double>(one)) : c10::IValue(one);
  }
  if (const auto* one = std::get_if<double>(&argument.value)) return *one;
  if (const auto* one = std::get_if<Complex>(&argument.value)) {
    return c10::complex<double>(one->real, one->imaginary);
  }
  if (const auto* one = std::get_if<std::string>(&argument.value)) return *one;
  c10::IValue made;
  if (const auto* one = std::get_if<Group>(&argument.value)) SetGroup(made, one->number);
  if (const auto* one = std::get_if<GroupName>(&argument.value)) SetGroupName(made, one->number);
  if (const auto* one = std::get_if<Reduction>(&argument.value)) SetReduction(made, one->name);
  if (!made.isNone()) return made;
  if (std::holds_alternative<RunDevice>(argument.value)) return device;
  if (const auto* one = std::get_if<DType>(&argument.value)) {
    return static_cast<int64_t>(DTypeNamed(one->name));
  }
  if (const auto* one = std::get_if<Layout>(&argument.value)) return LayoutNamed(one->name);
  if (const auto* one = std::get_if<MemoryFormat>(&argument.value)) {
    return MemoryFormatNamed(one->name);
  }
  const auto& items = std::get<List>(argument.value);
  switch (type->expectRef<c10::ListType>().getElementType()->kind()) {
    case c10::TypeKind::FloatType:
      return TypedList<double>(items, [&](const Argument& one) { return RealOf(one, numbers); });
    case c10::TypeKind::BoolType:
      return TypedList<bool>(items, [](const Argument& one) { return std::get<bool>(one.value); });
    case c10::TypeKind::NumberType: {
      c10::impl::GenericList list(c10::NumberType::get());
      for (const Argument& item : items) {
        list.push_back(Constant(item, c10::NumberType::get(), numbers));
      }
      return list;
    }
    default:
      return TypedList<int64_t>(items,
                                [&](const Argument& one) { return IntegerOf(one, numbers); });
  }
}

c10::OperatorHandle Find(const char* name, const char* overload) {
  auto found = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!found) {
    Fail(std::string("this torch has no operator ") + name + (*overload ? "." : "") + overload);
  }
  return *found;
}

int InputOf(const Argument& argument) {
  if (std::holds_alternative<None>(argument.value)) return -1;
  return std::get<Tensor>(argument.value).input;
}

// An argument ready to be pushed, or its ingredients.
struct Ready {
  enum class Kind {
    kConstant,
    kNumbers,
    kTensor,
    kStorage,
    kTensors,
    kOptionalTensors,
    kTensorLists,
  };
  Kind kind = Kind::kConstant;
  c10::IValue constant;
  const Argument* written = nullptr;  // with numbers
  c10::TypePtr type;                  // target type
  std::vector<int> inputs;            // -1: none
  std::vector<std::vector<int>> lists;
};

Ready Prepare(const Argument& argument, const c10::TypePtr& type) {
  Ready ready;
  bool optional = false;
  if (const auto* one = std::get_if<Tensor>(&argument.value)) {
    ready.kind = Ready::Kind::kTensor;
    ready.inputs = {one->input};
  } else if (const auto* storage = std::get_if<Storage>(&argument.value)) {
    ready.kind = Ready::Kind::kStorage;
    ready.inputs = {storage->input};
  } else if (const auto* list = std::get_if<List>(&argument.value);
             list != nullptr && IsTensorList(type, optional)) {
    ready.kind = optional ? Ready::Kind::kOptionalTensors : Ready::Kind::kTensors;
    for (const Argument& item : *list) ready.inputs.push_back(InputOf(item));
  } else if (list != nullptr && IsTensorLists(type)) {
    ready.kind = Ready::Kind::kTensorLists;
    for (const Argument& item : *list) {
      std::vector<int>& inner = ready.lists.emplace_back();
      for (const Argument& one : std::get<List>(item.value)) inner.push_back(InputOf(one));
    }
  } else if (HasNumbers(argument)) {
    ready.kind = Ready::Kind::kNumbers;
    ready.written = &argument;
    ready.type = type;
  } else {
    ready.constant = Constant(argument, type);
  }
  return ready;
}

}  // namespace

struct Op::Prepared {
  c10::OperatorHandle handle;
  std::vector<Ready> arguments;
};

Op::Op(const char* name, const char* overload, std::initializer_list<Argument> arguments)
    : name_(name), overload_(overload), written_(arguments) {
  Operators().push_back(this);
}

Op::~Op() = default;

void Op::FindAll() {
  for (Op* op : Operators()) op->Find();
}

void Op::Find() {
  prepared_ = std::make_unique<Prepared>(Prepared{::Find(name_, overload_), {}});
  const auto& wanted = prepared_->handle.schema().arguments();
  if (wanted.size() != written_.size()) {
    Fail(std::string(name_) + " has a different schema in this torch");
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    prepared_->arguments.push_back(Prepare(written_[i], wanted[i].real_type()));
  }
}

StepCode::StepCode(int number, void (*step)(Slots&)) {
  const auto place = static_cast<size_t>(number);
  if (Steps().size() <= place) Steps().resize(place + 1);
  Steps()[place] = step;
}

void Op::operator()(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
                    std::initializer_list<int> numbers) const {
  Run(t, inputs, results, numbers);
}

void Op::Finish(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
                std::initializer_list<int> numbers) const {
  WaitFor(Run(t, inputs, results, numbers));
  gaps.Left();
}

void Op::Begin(int work, Slots& t, std::initializer_list<int> inputs,
               std::initializer_list<int> results, std::initializer_list<int> numbers) const {
  const auto place = static_cast<size_t>(work);
  if (works.size() <= place) works.resize(place + 1);
  works[place] = Run(t, inputs, results, numbers);
  batch.push_back(place);
}

void BeginBatch(int group) {
  batch.clear();
  BeginGroupBatch(group);
}

void EndBatch(int group) {
  c10::IValue work;
  EndGroupBatch(group, work);
  if (work.isNone()) return;
  for (const size_t place : batch) works[place] = work;
}

void Await(int work) {
  const auto place = static_cast<size_t>(work);
  if (place >= works.size()) return;
  WaitFor(std::exchange(works[place], {}));
  gaps.Left();
}

c10::IValue Op::Run(Slots& t, std::initializer_list<int> inputs, std::initializer_list<int> results,
                    std::initializer_list<int> numbers) const {
  thread_local torch::jit::Stack stack;
  const auto input = [&](int number) {
    const int slot = number < 0 ? -1 : inputs.begin()[number];
    return slot < 0 ? at::Tensor() : t[static_cast<size_t>(slot)];
  };
  stack.clear();
  for (const Ready& argument : prepared_->arguments) {
    switch (argument.kind) {
      case Ready::Kind::kConstant: stack.push_back(argument.constant); break;
      case Ready::Kind::kNumbers:
        stack.push_back(Constant(*argument.written, argument.type, numbers.begin()));
        break;
      case Ready::Kind::kTensor: stack.emplace_back(input(argument.inputs.front())); break;
      case Ready::Kind::kStorage:
        stack.emplace_back(input(argument.inputs.front()).storage());
        break;
      case Ready::Kind::kTensors: {
        c10::List<at::Tensor> list;
        list.reserve(argument.inputs.size());
        for (const int number : argument.inputs) list.push_back(input(number));
        stack.emplace_back(std::move(list));
        break;
      }
      case Ready::Kind::kOptionalTensors: {
        c10::List<std::optional<at::Tensor>> list;
        list.reserve(argument.inputs.size());
        for (const int number : argument.inputs) {
          list.push_back(number < 0 ? std::nullopt : std::optional(input(number)));
        }
        stack.emplace_back(std::move(list));
        break;
      }
      case Ready::Kind::kTensorLists: {
        c10::List<c10::List<at::Tensor>> lists;
        for (const std::vector<int>& inner : argument.lists) {
          c10::List<at::Tensor> list;
          for (const int number : inner) list.push_back(input(number));
          lists.push_back(std::move(list));
        }
        stack.emplace_back(std::move(lists));
        break;
      }
    }
  }
  running = name_;
  gaps.Pass();
  prepared_->handle.callBoxed(stack);
  gaps.Left();
  const int* result = results.begin();
  const auto keep = [&](const auto& self, const c10::IValue& value) -> void {
    if (value.isTensor()) {
      if (result != results.end() && *result++ >= 0)
        t[static_cast<size_t>(result[-1])] = value.toTensor();
    } else if (value.isList()) {
      const auto list = value.toListRef();
      for (const c10::IValue& item : list) self(self, item);
    }
  };
  for (const c10::IValue& value : stack) keep(keep, value);
  const bool goes_on = !stack.empty() && stack.back().isCustomClass();
  c10::IValue work = goes_on ? stack.back() : c10::IValue();
  stack.clear();
  return work;
}

void Clear(Slots& t, std::initializer_list<int> slots) {
  for (const int slot : slots) t[static_cast<size_t>(slot)].reset();
}

void ClearRange(Slots& t, int begin, int end) {
  for (int slot = begin; slot < end; ++slot) t[static_cast<size_t>(slot)].reset();
}

int Table(int table, int index) {
  return tables[static_cast<size_t>(table)][static_cast<size_t>(index)];
}

void View(Slots& t, int slot, int base, int form) {
  const at::Tensor& owner = t[static_cast<size_t>(base)];
  t[static_cast<size_t>(slot)] = owner.defined() && owner.has_storage()
                                     ? Raw(owner.storage(), forms[static_cast<size_t>(form)])
                                     : owner;
}

void Fit(Slots& t, int slot, int form) {
  at::Tensor& tensor = t[static_cast<size_t>(slot)];
  if (!tensor.defined()) return;
  const Form& wanted = forms[static_cast<size_t>(form)];
  if (tensor.sizes() != at::IntArrayRef(wanted.sizes)) {
    const int64_t count =
        std::accumulate(wanted.sizes.begin(), wanted.sizes.end(), int64_t{1}, std::multiplies<>());
    const at::Tensor flat = tensor.reshape({-1});
    if (flat.numel() >= count) {
      tensor = flat.narrow(0, 0, count).reshape(wanted.sizes);
    } else if (flat.numel() == 0) {
      tensor = tensor.new_zeros(wanted.sizes);
    } else {
      const int64_t times = (count + flat.numel() - 1) / flat.numel();
      tensor = flat.repeat({times}).narrow(0, 0, count).reshape(wanted.sizes);
    }
  }
  tensor = tensor.to(wanted.dtype);
}

void CopyBytes(Slots& t, int to, int from) {
  const at::Tensor& target = t[static_cast<size_t>(to)];
  const at::Tensor& source = t[static_cast<size_t>(from)];
  if (!target.defined() || !target.has_storage() || !source.defined()) return;
  const auto bytes =
      static_cast<int64_t>(std::min(target.storage().nbytes(), source.storage().nbytes()));
  if (bytes == 0) return;
  const Form whole = {c10::kByte, 0, {bytes}, {1}};
  if (target.is_cpu() && source.is_cpu()) {
    std::memcpy(target.storage().mutable_data(), source.storage().data(),
                static_cast<size_t>(bytes));
  } else {
    Raw(target.storage(), whole).copy_(Raw(source.storage(), whole));
  }
}

namespace {

// Reads the words of step.data in order.
class Words {
 public:
  explicit Words(const std::string& path) : file_(path) {
    if (!file_) Fail(path + ": cannot read it");
  }

  std::string Word() {
    std::string word;
    if (!(file_ >> word)) Fail("step.data ends early");
    return word;
  }
  void Expect(const char* expected) {
    const std::string word = Word();
    if (word != expected) Fail("step.data: found " + word + ", expected " + expected);
  }
  int64_t Number() {
    const std::string word = Word();
    int64_t number = 0;
    const auto end = std::from_chars(word.data(), word.data() + word.size(), number);
    if (end.ptr != word.data() + word.size())
      Fail("step.data: found " + word + ", expected a number");
    return number;
  }
  std::vector<int64_t> Numbers(int64_t count) {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(Number());
    return numbers;
  }

 private:
  std::ifstream file_;
};

struct Fill {
  std::string kind;
  double real = 0;
  int64_t low = 0;
  int64_t high = 0;
};

// Returns integers in [low, high), the n-th most frequent with a share proportional to n^-exponent.
std::vector<int64_t> Indices(size_t count, const Fill& fill, std::mt19937_64& random) {
  const int64_t width = std::max<int64_t>(fill.high - fill.low, 1);
  std::vector<int64_t> values(count);
  if (fill.real <= 0 || width == 1) {
    std::uniform_int_distribution<int64_t> any(fill.low, fill.low + width - 1);
    for (int64_t& value : values) value = any(random);
    return values;
  }
  std::vector<double> sums(static_cast<size_t>(width));
  double sum = 0;
  for (int64_t i = 0; i < width; ++i) {
    sums[static_cast<size_t>(i)] = sum += std::pow(static_cast<double>(i + 1), -fill.real);
  }
  int64_t stride = width / 2 + 1;
  while (std::gcd(stride, width) != 1) ++stride;
  std::uniform_real_distribution<double> any(0, sum);
  for (int64_t& value : values) {
    const auto rank = std::upper_bound(sums.begin(), sums.end(), any(random)) - sums.begin();
    value = fill.low + std::min<int64_t>(rank, width - 1) * stride % width;
  }
  return values;
}

std::vector<int64_t> Integers(size_t count, const Fill& fill, std::mt19937_64& random) {
  std::vector<int64_t> values(count, fill.low);
  if (fill.kind == "index") return Indices(count, fill, random);
  if (fill.kind == "bytes" || fill.kind == "coin") {
    for (int64_t& value : values)
      value = static_cast<int64_t>(random() % (fill.kind == "coin" ? 2 : 128));
  } else if (fill.kind == "offsets" || fill.kind == "steps") {
    const int64_t parts = std::max<int64_t>(static_cast<int64_t>(count) - fill.low, 1);
    for (size_t i = 0; i < count; ++i) {
      values[i] =
          static_cast<int64_t>(static_cast<__int128>(fill.high) * static_cast<int64_t>(i) / parts);
    }
    if (fill.kind == "steps")
      std::adjacent_difference(values.begin(), values.end(), values.begin());
  } else if (fill.kind == "lengths" && count > 0) {
    values[0] = std::min(fill.low, fill.high);
    const auto others = static_cast<int64_t>(count) - 1;
    const int64_t left = fill.high - values[0];
    for (int64_t i = 0; i < others; ++i) {
      values[static_cast<size_t>(i) + 1] = std::min(left / others + (i < left % others), values[0]);
    }
  } else if (fill.kind == "mask") {
    const auto wanted =
        static_cast<size_t>(std::clamp<int64_t>(fill.high, 0, static_cast<int64_t>(count)));
    std::fill(values.begin(), values.end(), 0);
    std::fill_n(values.begin(), wanted, 1);
    std::shuffle(values.begin(), values.end(), random);
  } else if (fill.kind == "distinct") {
    for (size_t i = 0; i < count; ++i) {
      const auto part = static_cast<__int128>(std::max<int64_t>(fill.high - fill.low, 1)) *
                        static_cast<int64_t>(i) / static_cast<int64_t>(count);
      values[i] = fill.low + static_cast<int64_t>(part);
    }
  }
  return values;
}

// Fills a CPU tensor that covers the whole memory.
void FillTensor(const at::Tensor& tensor, const Fill& fill, std::mt19937_64& random) {
  const auto count = static_cast<size_t>(tensor.numel());
  if (count == 0) return;
  const auto as = [&](const void* data, c10::ScalarType type) {
    const at::Tensor values = Empty(tensor.numel(), type);
    std::memcpy(values.data_ptr(), data, count * c10::elementSize(type));
    tensor.copy_(values);
  };
  if (fill.kind == "normal" || fill.kind == "uniform") {
    // Repeats a block with a prime number of values.
    constexpr size_t kBlock = 65521;
    std::vector<float> values(count);
    std::normal_distribution<float> normal(0, static_cast<float>(fill.real));
    std::uniform_real_distribution<float> uniform(0.5F, 1.0F);
    for (size_t i = 0; i < std::min(count, kBlock); ++i) {
      values[i] = fill.kind == "normal" ? normal(random) : uniform(random);
    }
    for (size_t i = kBlock; i < count; ++i) values[i] = values[i - kBlock];
    as(values.data(), c10::kFloat);
  } else if (fill.kind != "mask" && fill.kind != "distinct" &&
             (c10::isFloatingType(tensor.scalar_type()) ||
              c10::isComplexType(tensor.scalar_type()))) {
    tensor.fill_(1.0);
  } else {
    as(Integers(count, fill, random).data(), c10::kLong);
  }
}

// Settings that make glibc's heap behave like the original program's, which determines the page
// faults of a step.
struct Heap {
  int64_t map_threshold = 0;  // 0: unknown
  bool keeps_freed = false;
  int64_t given_back = 0;  // bytes of the tensors that a step frees
};

std::atomic<int64_t> give_back = 0;

void Free(void* block) {
#if defined(__GLIBC__)
  constexpr size_t kLeast = 64 << 10;
  if (block != nullptr && give_back.load(std::memory_order_relaxed) > 0) {
    const size_t bytes = malloc_usable_size(block);
    const int64_t left = bytes < kLeast ? 0 : give_back.fetch_sub(static_cast<int64_t>(bytes));
    constexpr uintptr_t kPage = 4096;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(block) + kPage - 1) / kPage * kPage;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(block) + bytes) / kPage * kPage;
    if (left > 0 && end > begin) {
      madvise(reinterpret_cast<void*>(begin),
              std::min<uintptr_t>(end - begin, static_cast<uintptr_t>(left)), MADV_DONTNEED);
    }
  }
#endif
  c10::free_cpu(block);
}

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* block = c10::alloc_cpu(bytes);
    return {block, block, &Free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

void SetHeap(const Heap& heap) {
#if defined(__GLIBC__)
  if (heap.map_threshold <= 0) return;
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(heap.map_threshold));
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(2 * heap.map_threshold));
  if (!heap.keeps_freed) return;
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_MMAP_MAX, 0);
  static Allocator allocator;
  if (heap.given_back > 0) c10::SetCPUAllocator(&allocator, 1);
#endif
}

// Memory that exists before the step.
struct Memory {
  int64_t operators = 0;  // of the recorded step, and of these, the ones that run
  int64_t operators_run = 0;
  std::string time_coverage;  // share of the recorded time, or "unknown"
  int64_t threads = 1;
  Heap heap;
  Slots slots;
  std::vector<int64_t> released;
  int64_t state_bytes = 0;  // made by the original program in its first step
  uint64_t seed = 0;        // for the random numbers of each step
  std::vector<std::pair<at::Tensor, at::Tensor>>
      restored;  // tensors that steps change, with copies

  void Restore() const {
    for (const auto& [whole, original] : restored) whole.copy_(original);
  }
};

void MakeMemory(Words& words, std::mt19937_64& random, Memory& memory) {
  const int64_t bytes = words.Number();
  const c10::ScalarType dtype = DTypeNamed(words.Word());
  Fill fill{.kind = words.Word(), .real = std::strtod(words.Word().c_str(), nullptr)};
  fill.low = words.Number();
  fill.high = words.Number();
  const bool restored = words.Number() != 0;
  if (words.Number() != 0) memory.state_bytes += bytes;
  const at::Tensor whole = Empty(std::max<int64_t>(bytes, 0), c10::kByte, device);
  const int64_t count = bytes / static_cast<int64_t>(c10::elementSize(dtype));
  if (count > 0) {
    const at::Tensor typed = Raw(whole.storage(), {dtype, 0, {count}, {1}});
    if (device.is_cpu()) {
      FillTensor(typed, fill, random);
    } else {
      const at::Tensor host = Empty(count, dtype);
      FillTensor(host, fill, random);
      typed.copy_(host);
    }
  }
  if (restored) memory.restored.emplace_back(whole, whole.clone());
  for (int64_t n = words.Number(); n > 0; --n) {
    const int64_t slot = words.Number();
    memory.slots[static_cast<size_t>(slot)] =
        Raw(whole.storage(), forms[static_cast<size_t>(words.Number())]);
  }
}

at::Tensor MakeNumber(const std::string& kind, const std::string& text) {
  c10::Scalar value = static_cast<int64_t>(std::strtoll(text.c_str(), nullptr, 10));
  if (kind == "float") value = std::strtod(text.c_str(), nullptr);
  if (kind == "bool") value = text != "0";
  at::Tensor tensor = Empty(1, value.type()).fill_(value).reshape({});
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

Memory ReadMemory(const std::string& path, uint64_t seed) {
  Words words(path);
  std::mt19937_64 random(seed);
  Memory memory;
  memory.seed = seed;
  words.Expect("benchmark");
  words.Expect("3");
  words.Expect("covers");
  memory.operators = words.Number();
  memory.operators_run = words.Number();
  memory.time_coverage = words.Word();
  words.Expect("threads");
  memory.threads = words.Number();
  words.Expect("heap");
  memory.heap.map_threshold = words.Number();
  memory.heap.keeps_freed = words.Number() != 0;
  memory.heap.given_back = words.Number();
  SetHeap(memory.heap);
  words.Expect("slots");
  memory.slots.resize(static_cast<size_t>(words.Number()));
  words.Expect("forms");
  for (int64_t n = words.Number(); n > 0; --n) {
    Form form{.dtype = DTypeNamed(words.Word()), .offset = words.Number()};
    const int64_t rank = words.Number();
    form.sizes = words.Numbers(rank);
    form.strides = words.Numbers(rank);
    forms.push_back(std::move(form));
  }
  words.Expect("memory");
  for (int64_t n = words.Number(); n > 0; --n) MakeMemory(words, random, memory);
  words.Expect("numbers");
  for (int64_t n = words.Number(); n > 0; --n) {
    const auto slot = static_cast<size_t>(words.Number());
    const std::string kind = words.Word();
    memory.slots[slot] = MakeNumber(kind, words.Word());
  }
  words.Expect("released");
  memory.released = words.Numbers(words.Number());
  words.Expect("tables");
  for (int64_t n = words.Number(); n > 0; --n) {
    const std::vector<int64_t> table = words.Numbers(words.Number());
    tables.emplace_back(table.begin(), table.end());
  }
  return memory;
}

// Returns heap memory left over from the setup to the system. The step would otherwise reuse it.
void GiveBackFree() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

// Reads the gaps. Fails if they are missing and were requested.
void ReadGaps(const std::string& path, bool must) {
  if (!std::ifstream(path)) {
    if (must) Fail("--gaps recorded: the gaps of the original program are unknown");
    return;
  }
  Words words(path);
  words.Expect("gaps");
  words.Expect("1");
  words.Expect("calls");
  for (int64_t n = words.Number() + 1; n > 0; --n) {
    const int64_t idle = words.Number();
    gaps.Add(idle, words.Number());
  }
}

// Waits until the device has finished all work.
void Synchronize() {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeDevice(device.has_index() ? device.index() : 0);
}

double Milliseconds(clockid_t clock) { return static_cast<double>(Nanoseconds(clock)) / 1e6; }

struct Figures {
  double median, least, most;
};

Figures Summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

struct Options {
  int64_t iterations = 20;
  int64_t warmup = 5;
  int64_t threads = 0;
  uint64_t seed = 0;
  bool json = false;
  bool paced = false;
  std::string gaps;  // "recorded" or "none"; "": recorded if known
  std::string device = "cpu";
  std::string folder;
  std::vector<std::string> libraries;
};

constexpr const char* kUsage =
    "usage: benchmark [--iterations 20] [--warmup 5] [--threads N] [--device cpu] [--seed 0] "
    "[--json]\n                 [--gaps recorded|none]\n                 [--library FILE]... "
    "[--data FOLDER] [--paced]\nRuns the step and prints its time. --gaps recorded includes the "
    "gaps between operators of the\noriginal program, --gaps none leaves them out. --library loads "
    "a shared library of operators.\n--data names the folder with the data files (default: next to "
    "the program). --paced runs one step\nper line on standard input and prints its figures as "
    "JSON, for `etude compare --run --benchmark`.\n";

Options ParseOptions(int count, char** words) {
  Options options;
  constexpr int64_t kMostSteps = 1'000'000'000;
  constexpr int64_t kMostThreads = 1024;
  options.folder = std::string(words[0]).substr(0, std::string(words[0]).rfind('/') + 1);
  if (!std::ifstream(options.folder + DataFile(0))) options.folder = BENCHMARK_FOLDER "/";
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&]() -> std::string {
      if (i + 1 < count) return words[++i];
      std::fprintf(stderr, "benchmark: %s requires a value\n%s", word.c_str(), kUsage);
      std::exit(2);
    };
    const auto number = [&](int64_t least, int64_t most) {
      const std::string text = value();
      int64_t found = 0;
      const auto end = std::from_chars(text.data(), text.data() + text.size(), found);
      if (end.ec == std::errc() && end.ptr == text.data() + text.size() && found >= least &&
          found <= most) {
        return found;
      }
      std::fprintf(stderr, "benchmark: %s: found '%s', expected a whole number from %lld to %lld\n",
                   word.c_str(), text.c_str(), static_cast<long long>(least),
                   static_cast<long long>(most));
      std::exit(2);
    };
    if (word == "--iterations")
      options.iterations = number(1, kMostSteps);
    else if (word == "--warmup")
      options.warmup = number(0, kMostSteps);
    else if (word == "--threads")
      options.threads = number(1, kMostThreads);
    else if (word == "--seed")
      options.seed = static_cast<uint64_t>(number(0, INT64_MAX));
    else if (word == "--device")
      options.device = value();
    else if (word == "--gaps") {
      options.gaps = value();
      if (options.gaps != "recorded" && options.gaps != "none") {
        std::fprintf(stderr, "benchmark: --gaps: found '%s', expected recorded or none\n",
                     options.gaps.c_str());
        std::exit(2);
      }
    } else if (word == "--data")
      options.folder = value() + "/";
    else if (word == "--library")
      options.libraries.push_back(value());
    else if (word == "--json")
      options.json = true;
    else if (word == "--paced")
      options.paced = true;
    else {
      const bool help = word == "--help" || word == "-h";
      std::fprintf(help ? stdout : stderr, "%s", kUsage);
      std::exit(help ? 0 : 2);
    }
  }
  return options;
}

void Report(const Options& options, const Job& job, const std::vector<double>& wall,
            const std::vector<double>& cpu) {
  const Figures walls = Summarise(wall);
  const Figures cpus = Summarise(cpu);
  const std::vector<double> walls_of_ranks = Gather(walls.median);
  const std::vector<double> cpus_of_ranks = Gather(cpus.median);
  if (job.rank != 0) return;
  if (options.json) {
    std::printf(
        "{\"language\": \"C++\", \"device\": \"%s\", \"threads\": %d, \"gaps\": \"%s\", "
        "\"steps\": %zu, "
        "\"wall_ms\": {\"median\": %.6f, \"min\": %.6f, \"max\": %.6f}, "
        "\"cpu_ms\": {\"median\": %.6f, \"min\": %.6f, \"max\": %.6f}",
        device.str().c_str(), at::get_num_threads(), gaps.any() ? "recorded" : "none", wall.size(),
        walls.median, walls.least, walls.most, cpus.median, cpus.least, cpus.most);
    for (size_t rank = 0; job.size > 1 && rank < walls_of_ranks.size(); ++rank) {
      std::printf("%s{\"rank\": %zu, \"wall_ms\": %.6f, \"cpu_ms\": %.6f}",
                  rank == 0 ? ", \"ranks\": [" : ", ", rank, walls_of_ranks[rank],
                  cpus_of_ranks[rank]);
    }
    std::printf("%s}\n", job.size > 1 ? "]" : "");
    return;
  }
  const auto line = [&](const char* name, const Figures& of) {
    std::printf("step, %s time: median %.3f ms, %.3f to %.3f ms, %zu steps\n", name, of.median,
                of.least, of.most, wall.size());
  };
  line("wall", walls);
  line("cpu", cpus);
  for (size_t rank = 0; job.size > 1 && rank < walls_of_ranks.size(); ++rank) {
    std::printf("rank %zu: wall time %.3f ms, cpu time %.3f ms\n", rank, walls_of_ranks[rank],
                cpus_of_ranks[rank]);
  }
}

// Selects the device. Fails if it does not exist or cannot hold values.
void UseDevice(const std::string& name) {
  try {
    device = c10::Device(name);
  } catch (const std::exception& error) {
    const std::string why = error.what();
    Fail("--device " + name + ": " + why.substr(0, why.find('\n')));
  }
  if (device.is_meta()) Fail("--device meta: expected a device that holds values");
  try {
    Empty(0, c10::kByte, device);
  } catch (const std::exception& error) {
    const std::string why = error.what();  // the first sentence is enough
    Fail("--device " + device.str() + ": " +
         why.substr(0, std::min(why.find(". "), why.find('\n'))));
  }
}

// Devices without a generator draw on the CPU.
void SeedTorch(uint64_t seed) {
  for (const c10::Device& on : {c10::Device(c10::kCPU), device}) {
    try {
      at::Generator generator = at::globalContext().defaultGenerator(on);
      generator.set_current_seed(seed);
    } catch (const c10::Error&) {
      if (on.is_cpu()) throw;
    }
  }
}

// Runs one step on this rank, after all ranks are ready. Times are in milliseconds.
struct Took {
  double wall = 0;
  double cpu = 0;
};

Took RunStep(void (*step)(Slots&), Memory& memory) {
  SeedTorch(memory.seed);
  Meet();
  const double begin = Milliseconds(CLOCK_MONOTONIC);
  const double begin_cpu = Milliseconds(CLOCK_PROCESS_CPUTIME_ID);
  give_back = memory.heap.given_back;
  gaps.BeginStep();
  step(memory.slots);
  for (c10::IValue& work : works) {
    if (work.isNone()) continue;
    WaitFor(std::exchange(work, {}));
    gaps.Left();
  }
  running = nullptr;
  for (const int64_t slot : memory.released) memory.slots[static_cast<size_t>(slot)].reset();
  gaps.Pass();
  Synchronize();
  const Took took = {Milliseconds(CLOCK_MONOTONIC) - begin,
                     Milliseconds(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu};
  give_back = 0;
  return took;
}

// Returns the value of `key`, such as "VmHWM:", in the status of this process, in bytes; -1 if it
// is missing.
int64_t StatusBytes(std::string_view key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) == 0) return std::atoll(line.c_str() + key.size()) * 1024;
  }
  return -1;
}

// Runs steps on request from standard input, on all ranks.
void ServeSteps(const Job& job, void (*step)(Slots&), Memory& memory) {
  if (job.rank == 0) {
    std::printf(
        "{\"device\": \"%s\", \"torch\": \"%s\", \"operators\": {\"total\": %lld, \"replayed\": "
        "%lld}, "
        "\"coverage\": {\"time\": %s}, \"memory\": {\"resident_before_steps_bytes\": %lld, "
        "\"copied_bytes\": 0}}\n",
        device.str().c_str(), TORCH_VERSION, static_cast<long long>(memory.operators),
        static_cast<long long>(memory.operators_run),
        memory.time_coverage == "unknown" ? "null" : memory.time_coverage.c_str(),
        static_cast<long long>(StatusBytes("VmRSS:") - memory.state_bytes));
    std::fflush(stdout);
  }
  char line[256];
  const auto is_asked = [&] { return std::fgets(line, sizeof line, stdin) != nullptr; };
  while (Tell(job.rank == 0 && is_asked())) {
    memory.Restore();
    if (std::ofstream peak("/proc/self/clear_refs"); peak) peak << "5";
    rusage before{};
    getrusage(RUSAGE_SELF, &before);
    const Took took = RunStep(step, memory);
    rusage after{};
    getrusage(RUSAGE_SELF, &after);
    if (job.rank != 0) continue;
    std::printf(
        "{\"pid\": %d, \"wall_ns\": %.0f, \"cpu_ns\": %.0f, \"busy_gaps_ns\": %lld, "
        "\"idle_gaps_ns\": %lld, \"minor_faults\": %ld, "
        "\"voluntary_switches\": %ld, \"involuntary_switches\": %ld, "
        "\"peak_resident_bytes\": %lld}\n",
        static_cast<int>(getpid()), took.wall * 1e6, took.cpu * 1e6,
        static_cast<long long>(gaps.busy()), static_cast<long long>(gaps.idle()),
        after.ru_minflt - before.ru_minflt, after.ru_nvcsw - before.ru_nvcsw,
        after.ru_nivcsw - before.ru_nivcsw, static_cast<long long>(StatusBytes("VmHWM:")));
    std::fflush(stdout);
  }
}

int Run(const Options& options) {
  for (const std::string& library : options.libraries) {
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) Fail(dlerror());
  }
  UseDevice(options.device);
  const Job job = Join(options.folder, device);
  Op::FindAll();
  const auto step = Steps().at(static_cast<size_t>(job.step));
  Memory memory = ReadMemory(options.folder + DataFile(job.data), options.seed);
  GiveBackFree();
  if (options.gaps != "none") {
    ReadGaps(options.folder + GapFile(job.rank), options.gaps == "recorded");
  }
  at::set_num_threads(static_cast<int>(options.threads > 0 ? options.threads : memory.threads));
  if (options.paced) {
    ServeSteps(job, step, memory);
    Leave();
    return 0;
  }
  std::vector<double> wall;
  std::vector<double> cpu;
  for (int64_t i = 0; i < options.warmup + options.iterations; ++i) {
    memory.Restore();
    const Took took = RunStep(step, memory);
    if (i < options.warmup) continue;
    wall.push_back(took.wall);
    cpu.push_back(took.cpu);
  }
  Report(options, job, wall, cpu);
  Leave();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return Run(ParseOptions(count, words));
  } catch (const std::exception& error) {
    // torch appends the place of the error to its message.
    const std::string_view text = error.what();
    std::string why(text.substr(0, text.find('\n')));
    if (running != nullptr) why = std::string(running) + ": " + why;
    if (const char* rank = std::getenv("RANK")) why = "rank " + std::string(rank) + ": " + why;
    Fail(why);
  }
}
