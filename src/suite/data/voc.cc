#include "src/suite/data/voc.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/formats/io/byte_source.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/data/xml.h"

namespace etude::suite {
namespace {

constexpr float kLargestVocSide = 65'535;  // maximum of a JPEG picture

// One annotation file.
class VocAnnotation {
 public:
  static Result<VocAnnotation> Read(const std::string& path, const RunContext& context) {
    ETUDE_RETURN_IF_ERROR(CheckRegular(path));
    ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, context.limits));
    ETUDE_ASSIGN_OR_RETURN(XmlElement root, ParseXml(path, text, context.limits));
    VocAnnotation file(path);
    ETUDE_RETURN_IF_ERROR(file.Take(root));
    return file;
  }

  const Annotation& annotation() const { return annotation_; }
  // Returns the classes of the objects.
  const std::vector<std::string>& names() const { return names_; }

 private:
  explicit VocAnnotation(const std::string& path) : path_(path) {}

  Status Take(const XmlElement& root) {
    if (root.name != "annotation") {
      return BadInput(fmt::format("{}: found <{}>, expected <annotation>", path_, root.name));
    }
    ETUDE_ASSIGN_OR_RETURN(const XmlElement* size, Part(root, "size"));
    ETUDE_ASSIGN_OR_RETURN(annotation_.size.width, Number(*size, "width"));
    ETUDE_ASSIGN_OR_RETURN(annotation_.size.height, Number(*size, "height"));
    for (const float side : {annotation_.size.width, annotation_.size.height}) {
      if (side >= 1 && side <= kLargestVocSide) continue;
      return BadInput(fmt::format("{}: found an image of {} × {} pixels, expected 1 to {}", path_,
                                  annotation_.size.width, annotation_.size.height,
                                  kLargestVocSide));
    }
    for (const XmlElement& element : root.children) {
      if (element.name == "object") ETUDE_RETURN_IF_ERROR(TakeObject(element));
    }
    return {};
  }

  Status TakeObject(const XmlElement& element) {
    ETUDE_ASSIGN_OR_RETURN(const XmlElement* name, Part(element, "name"));
    if (name->text.empty()) return BadInput(path_ + ": found an object without a name");
    ETUDE_ASSIGN_OR_RETURN(const XmlElement* box, Part(element, "bndbox"));
    Object object;
    ETUDE_ASSIGN_OR_RETURN(const float left, Number(*box, "xmin"));
    ETUDE_ASSIGN_OR_RETURN(const float top, Number(*box, "ymin"));
    ETUDE_ASSIGN_OR_RETURN(const float right, Number(*box, "xmax"));
    ETUDE_ASSIGN_OR_RETURN(const float bottom, Number(*box, "ymax"));
    const auto [width, height] = annotation_.size;
    if (!(left >= 1 && left <= right && right <= width && top >= 1 && top <= bottom &&
          bottom <= height)) {
      return BadInput(fmt::format(
          "{}: found {} at ({}, {}) to ({}, {}), expected a box within (1, 1) to ({}, {})", path_,
          name->text, left, top, right, bottom, width, height));
    }
    object.box = {left - 1, top - 1, right, bottom};
    const XmlElement* difficult = element.Child("difficult");
    object.difficult = difficult != nullptr && difficult->text == "1";
    if (difficult != nullptr && difficult->text != "0" && difficult->text != "1") {
      return BadInput(
          fmt::format("{}: <difficult>: found '{}', expected 0 or 1", path_, difficult->text));
    }
    annotation_.objects.push_back(object);
    names_.push_back(name->text);
    return {};
  }

  Result<const XmlElement*> Part(const XmlElement& of, std::string_view name) const {
    const XmlElement* part = of.Child(name);
    if (part == nullptr) {
      return BadInput(
          fmt::format("{}: found <{}> without <{}>, expected one", path_, of.name, name));
    }
    return part;
  }

  Result<float> Number(const XmlElement& of, std::string_view name) const {
    ETUDE_ASSIGN_OR_RETURN(const XmlElement* part, Part(of, name));
    const std::string& text = part->text;
    float value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
      return BadInput(fmt::format("{}: <{}>: found '{}', expected a number", path_, name, text));
    }
    return value;
  }

  std::string path_;
  Annotation annotation_;
  std::vector<std::string> names_;
};

// Pictures of a part, with the class names of their objects.
struct VocPart {
  std::vector<VocPicture> pictures;
  std::vector<std::vector<std::string>> names;
};

Result<VocPart> ReadVocPart(const std::string& folder, std::string_view name,
                            const RunContext& context) {
  const std::string list = fmt::format("{}/ImageSets/Main/{}.txt", folder, name);
  ETUDE_RETURN_IF_ERROR(CheckRegular(list));
  ETUDE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(list, context.limits));
  VocPart part;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (line.find('/') != std::string_view::npos) {
      return BadInput(fmt::format("{}: found '{}', expected the name of an image", list, line));
    }
    ETUDE_ASSIGN_OR_RETURN(
        const VocAnnotation file,
        VocAnnotation::Read(fmt::format("{}/Annotations/{}.xml", folder, line), context));
    part.pictures.push_back({fmt::format("{}/JPEGImages/{}.jpg", folder, line), file.annotation()});
    part.names.push_back(file.names());
    if (context.stopped()) return MakeError(ErrorCode::kInterrupted, "stopped");
  }
  if (part.pictures.empty())
    return BadInput(list + ": found no images, expected one name per line");
  return part;
}

}  // namespace

Result<VocPictures> ReadVoc(const std::string& folder, const RunContext& context) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return Unavailable(folder + ": missing; unpack the archives of VOC 2007 (trainval and test)");
  }
  ETUDE_ASSIGN_OR_RETURN(VocPart train, ReadVocPart(folder, "trainval", context));
  ETUDE_ASSIGN_OR_RETURN(VocPart test, ReadVocPart(folder, "test", context));
  VocPictures all;
  for (const VocPart* part : {&train, &test}) {
    for (const std::vector<std::string>& names : part->names) {
      all.classes.insert(all.classes.end(), names.begin(), names.end());
    }
  }
  std::ranges::sort(all.classes);
  all.classes.erase(std::ranges::unique(all.classes).begin(), all.classes.end());
  for (VocPart* part : {&train, &test}) {
    for (size_t picture = 0; picture < part->pictures.size(); ++picture) {
      std::vector<Object>& objects = part->pictures[picture].annotation.objects;
      for (size_t i = 0; i < objects.size(); ++i) {
        objects[i].label =
            std::ranges::lower_bound(all.classes, part->names[picture][i]) - all.classes.begin();
      }
    }
  }
  all.train = std::move(train.pictures);
  all.test = std::move(test.pictures);
  return all;
}

Result<at::Tensor> ReadVocPicture(const VocPicture& picture, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(at::Tensor pixels, ReadJpeg(picture.path, context));
  const auto [width, height] = picture.annotation.size;
  if (static_cast<float>(pixels.size(2)) != width || static_cast<float>(pixels.size(1)) != height) {
    return BadInput(fmt::format("{}: found {} × {} pixels, expected {} × {} as annotated",
                                picture.path, pixels.size(2), pixels.size(1), width, height));
  }
  return pixels;
}

}  // namespace etude::suite
