#include "src/python/arrow.h"

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace etude::python {
namespace {

static_assert(std::endian::native == std::endian::little, "bits are stored in words");

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

// An array from which schema and array are exported.
struct Field {
  std::string format;
  std::string name;
  int64_t length = 0;
  bool nullable = false;
  std::vector<const void*> buffers;  // the first one: validity bits, or null
  std::vector<Field> children;
  std::vector<Field> dictionary;  // at most one
  std::vector<std::shared_ptr<const void>> owners;
};

struct SchemaHold {
  std::string format;
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary{};
};

struct ArrayHold {
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary{};
  std::vector<std::shared_ptr<const void>> owners;
};

// Children that the consumer has moved have no release function.
template <typename Thing, typename Hold>
void Release(Thing* thing) {
  auto* hold = static_cast<Hold*>(thing->private_data);
  for (Thing& child : hold->children) ReleaseArrow(child);
  ReleaseArrow(hold->dictionary);
  delete hold;
  thing->release = nullptr;
}

ArrowSchema ExportSchema(const Field& field) {
  auto hold = std::make_unique<SchemaHold>();
  hold->format = field.format;
  hold->name = field.name;
  for (const Field& child : field.children) hold->children.push_back(ExportSchema(child));
  for (ArrowSchema& child : hold->children) hold->pointers.push_back(&child);
  if (!field.dictionary.empty()) hold->dictionary = ExportSchema(field.dictionary.front());
  ArrowSchema schema{.format = hold->format.c_str(),
                     .name = hold->name.c_str(),
                     .metadata = nullptr,
                     .flags = field.nullable ? kNullable : 0,
                     .n_children = static_cast<int64_t>(hold->pointers.size()),
                     .children = hold->pointers.data(),
                     .dictionary = field.dictionary.empty() ? nullptr : &hold->dictionary,
                     .release = Release<ArrowSchema, SchemaHold>,
                     .private_data = nullptr};
  schema.private_data = hold.release();
  return schema;
}

ArrowArray ExportArray(Field field) {
  auto hold = std::make_unique<ArrayHold>();
  const bool has_dictionary = !field.dictionary.empty();
  for (Field& child : field.children) hold->children.push_back(ExportArray(std::move(child)));
  for (ArrowArray& child : hold->children) hold->pointers.push_back(&child);
  if (has_dictionary) hold->dictionary = ExportArray(std::move(field.dictionary.front()));
  hold->buffers = std::move(field.buffers);
  hold->owners = std::move(field.owners);
  ArrowArray array{.length = field.length,
                   .null_count = hold->buffers[0] == nullptr ? 0 : -1,
                   .offset = 0,
                   .n_buffers = static_cast<int64_t>(hold->buffers.size()),
                   .n_children = static_cast<int64_t>(hold->pointers.size()),
                   .buffers = hold->buffers.data(),
                   .children = hold->pointers.data(),
                   .dictionary = has_dictionary ? &hold->dictionary : nullptr,
                   .release = Release<ArrowArray, ArrayHold>,
                   .private_data = nullptr};
  array.private_data = hold.release();
  return array;
}

ArrowPair Export(Field field) {
  ArrowPair pair;
  pair.schema = ExportSchema(field);
  pair.array = ExportArray(std::move(field));
  return pair;
}

template <typename T>
const void* Keep(std::vector<T> values, Field& field) {
  auto kept = std::make_shared<std::vector<T>>(std::move(values));
  const void* data = kept->data();
  field.owners.push_back(std::move(kept));
  return data;
}

// Returns the validity bits; null if all values are known.
const void* ValidityOf(const Column& column, Field& field) {
  if (column.meaning == Column::Meaning::kNumber) return column.known;
  if (column.meaning == Column::Meaning::kName) return nullptr;
  std::vector<uint64_t> bits((column.rows + 63) / 64);
  bool all = true;
  for (size_t i = 0; i < column.rows; ++i) {
    if (column.is_known(i)) {
      bits[i / 64] |= uint64_t{1} << (i % 64);
    } else {
      all = false;
    }
  }
  return all ? nullptr : Keep(std::move(bits), field);
}

// Returns the values contiguously.
const void* ValuesOf(const Column& column, Field& field) {
  const size_t bytes = column.value_bytes();
  if (column.stride == bytes) return column.data;
  std::vector<char> values(column.rows * bytes);
  for (size_t i = 0; i < column.rows; ++i) {
    std::memcpy(&values[i * bytes], static_cast<const char*>(column.data) + i * column.stride,
                bytes);
  }
  return Keep(std::move(values), field);
}

Field TextsField(const TracePtr& trace) {
  const Texts& texts = trace->texts();
  return {.format = "U",
          .length = static_cast<int64_t>(texts.begins.size()) - 1,
          .buffers = {nullptr, texts.begins.data(), texts.bytes.data()},
          .owners = {trace}};
}

Field NamesField(std::span<const std::string_view> names) {
  auto texts = std::make_shared<Texts>();
  texts->begins.push_back(0);
  for (const std::string_view name : names) {
    texts->bytes += name;
    texts->begins.push_back(static_cast<int64_t>(texts->bytes.size()));
  }
  Field field{.format = "U",
              .length = static_cast<int64_t>(names.size()),
              .buffers = {nullptr, texts->begins.data(), texts->bytes.data()}};
  field.owners.push_back(std::move(texts));
  return field;
}

// Makes large lists of int64, copied row by row.
void FillIntLists(const Column& column, Field& field) {
  std::vector<int64_t> offsets = {0};
  std::vector<int64_t> items;
  for (size_t i = 0; i < column.rows; ++i) {
    if (column.is_known(i)) {
      const IntListId list(static_cast<uint32_t>(column.Get(i)));
      const auto ints = column.trace->trace().ints(list);
      items.insert(items.end(), ints.begin(), ints.end());
    }
    offsets.push_back(static_cast<int64_t>(items.size()));
  }
  Field child{.format = "l", .name = "item", .length = static_cast<int64_t>(items.size())};
  child.buffers = {nullptr, Keep(std::move(items), child)};
  field.format = "+L";
  field.buffers = {ValidityOf(column, field), Keep(std::move(offsets), field)};
  field.children.push_back(std::move(child));
}

std::string FormatOf(Column::Type type) {
  switch (type) {
    case Column::Type::kInt8: return "c";
    case Column::Type::kInt32: return "i";
    case Column::Type::kInt64: return "l";
    case Column::Type::kUInt64: return "L";
  }
  return "l";
}

Field FieldOf(const Column& column) {
  Field field{.name = column.name,
              .length = static_cast<int64_t>(column.rows),
              .nullable = column.meaning != Column::Meaning::kName,
              .owners = {column.trace, column.memory}};
  if (column.meaning == Column::Meaning::kIntList) {
    FillIntLists(column, field);
    return field;
  }
  field.format = FormatOf(column.type);
  field.buffers = {ValidityOf(column, field), ValuesOf(column, field)};
  if (column.meaning == Column::Meaning::kText) {
    field.dictionary.push_back(TextsField(column.trace));
  } else if (column.meaning == Column::Meaning::kName) {
    field.dictionary.push_back(NamesField(column.names));
  }
  return field;
}

Field FieldOf(const Columns& columns) {
  Field field{.format = "+s", .length = static_cast<int64_t>(columns.rows), .buffers = {nullptr}};
  for (const Column& column : columns.columns) field.children.push_back(FieldOf(column));
  return field;
}

struct StreamHold {
  Field batch;
  bool done = false;
};

StreamHold& HoldOf(ArrowArrayStream* stream) {
  return *static_cast<StreamHold*>(stream->private_data);
}

int GetSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  *out = ExportSchema(HoldOf(stream).batch);
  return 0;
}

// After the batch, an array without release function marks the end.
int GetNext(ArrowArrayStream* stream, ArrowArray* out) {
  StreamHold& hold = HoldOf(stream);
  *out = std::exchange(hold.done, true) ? ArrowArray{} : ExportArray(hold.batch);
  return 0;
}

}  // namespace

ArrowPair ToArrow(const Column& column) { return Export(FieldOf(column)); }

ArrowPair ToArrow(const Columns& columns) { return Export(FieldOf(columns)); }

ArrowPair ToArrow(const Dependencies& dependencies) {
  Field waits{.format = "+s",
              .name = "item",
              .length = static_cast<int64_t>(dependencies.targets.rows),
              .buffers = {nullptr}};
  waits.children.push_back(FieldOf(dependencies.targets));
  waits.children.push_back(FieldOf(dependencies.kinds));
  Field field{.format = "+L",
              .name = "waits_for",
              .length = static_cast<int64_t>(dependencies.offsets.rows) - 1,
              .buffers = {nullptr, dependencies.offsets.data},
              .owners = {dependencies.offsets.trace, dependencies.offsets.memory}};
  field.children.push_back(std::move(waits));
  return Export(std::move(field));
}

ArrowArrayStream ToArrowStream(const Columns& columns) {
  auto hold = std::make_unique<StreamHold>(StreamHold{.batch = FieldOf(columns)});
  return {.get_schema = GetSchema,
          .get_next = GetNext,
          .get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; },
          .release =
              [](ArrowArrayStream* stream) {
                delete &HoldOf(stream);
                stream->release = nullptr;
              },
          .private_data = hold.release()};
}

}  // namespace etude::python
