#include "src/compat/chakra_tools.h"

#include "src/compat/et_converter.h"
#include "src/compat/et_trace.h"
#include "src/compat/file_text.h"
#include "src/formats/atomic_file.h"

namespace etude::compat {
namespace {

Status WriteEt(EtTrace& trace, const std::string& name, const std::string& output) {
  // Made only when there is something to write: a trace that is refused leaves no file behind.
  std::optional<AtomicFile> file;
  ETUDE_RETURN_IF_ERROR(WriteChakraEt(trace, name, [&](std::string_view bytes) -> Status {
    if (!file) {
      ETUDE_ASSIGN_OR_RETURN(file, AtomicFile::Create(output));
    }
    return file->Write(bytes);
  }));
  return file->Commit();
}

}  // namespace

Status ConvertPyTorch(const std::string& input, const std::string& output,
                      const RunContext& context) {
  ETUDE_ASSIGN_OR_RETURN(const FileText file, FileText::Open(input, context.limits));
  NodeTextReader reader(context.limits.depth);
  ETUDE_ASSIGN_OR_RETURN(EtTrace trace, ReadEtTrace(file.text(), input, context.limits, reader));
  return WriteEt(trace, input, output);
}

}  // namespace etude::compat
