#include "src/formats/perfetto/perfetto_arguments.h"

#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "src/formats/json/json_text.h"
#include "src/formats/perfetto/perfetto_schema.h"
#include "src/formats/perfetto/perfetto_wire.h"

namespace etude::perfetto {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Appends the members in `json`, a text such as `"stream": 7, "correlation": 3`.
bool AddMembers(std::string_view json, std::string& members) {
  // Only texts whose only escapes are quotes are supported.
  if (json.size() < 2 || !json.starts_with('"')) return false;
  std::string own;
  for (size_t i = 1; i + 1 < json.size(); ++i) {
    if (json[i] == '\\' && i + 2 < json.size()) ++i;
    own += json[i];
  }
  if (!CheckJson("{" + own + "}").valid) return false;
  if (own.find_first_not_of(" \n\t") == std::string::npos) return true;
  if (!members.empty()) members += ", ";
  members += own;
  return true;
}

std::string NumberText(double number) {
  std::string text = fmt::format("{}", number);
  return std::isfinite(number) ? text : JsonString(text);
}

std::string JsonOf(std::string_view text) {
  const bool valid = utf8::IsValid(text) && CheckJson(text).valid;
  return valid ? std::string(text) : JsonString(utf8::Repair(text));
}

}  // namespace

StringId Arguments::Text(const Sequence::Texts& texts, uint64_t id) {
  const auto found = texts.find(id);
  if (found != texts.end()) return found->second;
  ++lost_texts_;
  return strings_.Intern(fmt::format("(text {})", id));
}

bool Arguments::Add(protozero::data_view annotation, const Sequence& sequence,
                    std::string& members) {
  constexpr std::string_view kMembers = "metadata";  // Kineto: JSON members in one text
  Argument argument;
  if (!Read(annotation, sequence, 0, argument)) return false;
  if (argument.name == kMembers && AddMembers(argument.value, members)) return true;
  if (!members.empty()) members += ", ";
  const bool renamed = argument.name == "correlation_id";
  members += JsonString(renamed ? "correlation" : argument.name) + ": " + argument.value;
  return true;
}

bool Arguments::Read(protozero::data_view view, const Sequence& sequence, size_t depth,
                     Argument& argument) {
  if (depth > most_depth_) return false;
  bool is_list = false;
  bool is_object = false;
  std::string inner;
  pbf_reader reader(view);
  while (reader.next()) {
    std::string& value = argument.value;
    switch (reader.tag_and_type()) {
      case Varint(AnnotationField::kNameId):
        argument.name = strings_.Get(Text(sequence.argument_names(), reader.get_uint64()));
        break;
      case Delimited(AnnotationField::kName):
        argument.name = strings_.Get(InternText(strings_, reader.get_view()));
        break;
      case Varint(AnnotationField::kBool): value = reader.get_bool() ? "true" : "false"; break;
      case Varint(AnnotationField::kUint):
      case Varint(AnnotationField::kPointer): value = std::to_string(reader.get_uint64()); break;
      case Varint(AnnotationField::kInt): value = std::to_string(reader.get_int64()); break;
      case Tag(AnnotationField::kDouble, pbf_wire_type::fixed64):
        value = NumberText(reader.get_double());
        break;
      case Delimited(AnnotationField::kText):
        value = JsonString(strings_.Get(InternText(strings_, reader.get_view())));
        break;
      case Varint(AnnotationField::kTextId):
        value = JsonString(strings_.Get(Text(sequence.argument_texts(), reader.get_uint64())));
        break;
      case Delimited(AnnotationField::kJson): value = JsonOf(View(reader.get_view())); break;
      case Delimited(AnnotationField::kEntries): {
        Argument entry;
        if (!Read(reader.get_view(), sequence, depth + 1, entry)) return false;
        inner += (inner.empty() ? "" : ", ") + JsonString(entry.name) + ": " + entry.value;
        is_object = true;
        break;
      }
      case Delimited(AnnotationField::kElements): {
        Argument element;
        if (!Read(reader.get_view(), sequence, depth + 1, element)) return false;
        inner += (inner.empty() ? "" : ", ") + element.value;
        is_list = true;
        break;
      }
      default: reader.skip();
    }
  }
  if (is_object && !is_list) argument.value = "{" + inner + "}";
  if (is_list && !is_object) argument.value = "[" + inner + "]";
  return true;
}

}  // namespace etude::perfetto
