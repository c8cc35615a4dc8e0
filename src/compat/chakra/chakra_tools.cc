#include "src/compat/chakra/chakra_tools.h"

#include <optional>
#include <vector>

#include "src/compat/chakra/et_converter.h"
#include "src/compat/chakra/jsonizer.h"
#include "src/compat/chakra_link/critical_path.h"
#include "src/compat/chakra_link/device_trace.h"
#include "src/compat/chakra_link/et_trace.h"
#include "src/compat/chakra_link/host_trace.h"
#include "src/compat/chakra_link/linked_et.h"
#include "src/compat/chakra_link/linked_writer.h"
#include "src/compat/chakra_link/linker.h"
#include "src/formats/io/atomic_file.h"
#include "src/formats/io/file_text.h"

namespace etude::compat {
namespace {

// Writes to a file while nodes are processed in the order of the traces' texts, whose pages it
// releases from time to time.
class NodeListWriter {
 public:
  // Both must outlive the writer; `text` is the main input.
  NodeListWriter(AtomicFile& file, const FileText& text) : file_(file), text_(text) {}

  Status Write(std::string_view bytes) {
    constexpr uint64_t kReleaseBytes = uint64_t{16} << 20;
    if ((written_ += bytes.size()) > kReleaseBytes) {
      text_.Release();
      written_ = 0;
    }
    return file_.Write(bytes);
  }

 private:
  AtomicFile& file_;
  const FileText& text_;
  uint64_t written_ = 0;
};

// `text`: source of the trace's nodes.
Status WriteEt(EtTrace& trace, const FileText& text, const std::string& name,
               const std::string& output, Existing existing) {
  // Created on first write, so that a refused trace leaves no file behind.
  std::optional<AtomicFile> file;
  std::optional<NodeListWriter> writer;
  ETUDE_RETURN_IF_ERROR(WriteChakraEt(trace, name, [&](std::string_view bytes) -> Status {
    if (!file) {
      ETUDE_ASSIGN_OR_RETURN(file, AtomicFile::Create(output, existing));
      writer.emplace(*file, text);
    }
    return writer->Write(bytes);
  }));
  return file->Commit();
}

}  // namespace

Status TraceLink(const LinkRequest& request, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const FileText host_text, FileText::Open(request.host, context.limits));
  NodeTextReader reader(context.limits.depth);
  ETUDE_ASSIGN_OR_RETURN(HostTrace host, ReadHostTrace(host_text.text(), request.host,
                                                       {.want_members = !request.linked.empty(),
                                                        .want_et_nodes = !request.et.empty()},
                                                       context.limits, reader));
  host_text.Release();
  ETUDE_ASSIGN_OR_RETURN(const FileText device_text,
                         FileText::Open(request.device, context.limits));
  ETUDE_ASSIGN_OR_RETURN(DeviceTrace device,
                         ReadDeviceTrace(device_text.text(), request.device, context.limits));
  ETUDE_ASSIGN_OR_RETURN(const std::vector<SyncDep> sync_deps,
                         FindCriticalSyncDeps(device, request.device));
  device_text.Release();
  ETUDE_ASSIGN_OR_RETURN(
      LinkedTrace linked,
      LinkTraces(host, device, sync_deps, {.host = request.host, .device = request.device}));
  if (!request.linked.empty()) {
    ETUDE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(request.linked));
    NodeListWriter writer(file, host_text);
    ETUDE_RETURN_IF_ERROR(WriteLinkedJson(
        host, device, linked, [&](std::string_view bytes) { return writer.Write(bytes); }));
    ETUDE_RETURN_IF_ERROR(file.Commit());
    host.members = {};
  }
  if (!request.et.empty()) {
    host_text.Release();
    EtTrace trace = MakeLinkedEt(host, device, linked, reader);
    // The trace needs only the texts and the reader's decoded strings.
    device.events = {};
    linked = {};
    host_text.Release();
    ETUDE_RETURN_IF_ERROR(WriteEt(trace, host_text, request.host, request.et, request.existing));
  }
  return {};
}

Status ConvertPyTorch(const std::string& input, const std::string& output,
                      const RunContext& context, Existing existing) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(input, context.limits));
  NodeTextReader reader(context.limits.depth);
  ETUDE_ASSIGN_OR_RETURN(EtTrace trace, ReadEtTrace(file.text(), input, context.limits, reader));
  file.Release();
  return WriteEt(trace, file, input, output, existing);
}

Status ConvertTextFile(const TextRequest& request, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(request.input, context.limits));
  return ConvertText(file.text(), request, WriteFile);
}

Status Jsonize(const std::string& input, const std::string& output, const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(input, context.limits));
  ETUDE_ASSIGN_OR_RETURN(AtomicFile to, AtomicFile::Create(output));
  ETUDE_RETURN_IF_ERROR(
      WriteChakraJson(file.text(), input, [&](std::string_view bytes) { return to.Write(bytes); }));
  return to.Commit();
}

Status Generate(const GeneratorRequest& request) { return GenerateChakra(request, WriteFile); }

}  // namespace etude::compat
