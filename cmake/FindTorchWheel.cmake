# Finds libtorch inside an installed `torch` wheel, without torch's own CMake package: that one
# fails on CUDA wheels where no CUDA toolkit is installed.
#
#   ETUDE_TORCH_PYTHON   the Python whose torch is meant (variable or environment;
#                        default: .venv of the source tree, then python3 on the path)
#
# Defines the target torch_wheel and TORCH_WHEEL_ROOT, TORCH_WHEEL_VERSION, TORCH_WHEEL_CUDA; and the
# folders of headers that code for NCCL includes besides, TORCH_WHEEL_NCCL_INCLUDES, or
# TORCH_WHEEL_WHY_NO_NCCL.

if(NOT ETUDE_TORCH_PYTHON AND DEFINED ENV{ETUDE_TORCH_PYTHON})
  set(ETUDE_TORCH_PYTHON $ENV{ETUDE_TORCH_PYTHON})
endif()
if(NOT ETUDE_TORCH_PYTHON AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(ETUDE_TORCH_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
if(NOT ETUDE_TORCH_PYTHON)
  set(ETUDE_TORCH_PYTHON python3)
endif()

# Reads version.py instead of importing torch: no second of start-up, no side effects.
execute_process(
  COMMAND ${ETUDE_TORCH_PYTHON} -c "
import importlib.util, os, sys
spec = importlib.util.find_spec('torch')
if spec is None: sys.exit('no torch in ' + sys.executable)
root = os.path.dirname(spec.origin)
facts = {}
exec(open(os.path.join(root, 'version.py')).read(), facts)
print(root, facts['__version__'], facts.get('cuda') or 'none', sep=';', end='')"
  OUTPUT_VARIABLE torch_facts ERROR_VARIABLE torch_error RESULT_VARIABLE torch_result)
if(NOT torch_result EQUAL 0)
  message(FATAL_ERROR "No torch found for '${ETUDE_TORCH_PYTHON}': ${torch_error}\n"
    "Set ETUDE_TORCH_PYTHON to a Python that has torch >= 2.7, or build without libtorch: "
    "-DETUDE_TORCH=OFF")
endif()
list(GET torch_facts 0 TORCH_WHEEL_ROOT)
list(GET torch_facts 1 TORCH_WHEEL_VERSION)
list(GET torch_facts 2 TORCH_WHEEL_CUDA)

string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_number ${TORCH_WHEEL_VERSION})
if(torch_number VERSION_LESS 2.7)
  message(FATAL_ERROR "torch ${TORCH_WHEEL_VERSION} in ${TORCH_WHEEL_ROOT} is too old: its C++ "
    "ABI is the one before GCC 5. Etude needs torch >= 2.7.")
endif()
message(STATUS "torch ${TORCH_WHEEL_VERSION} (CUDA: ${TORCH_WHEEL_CUDA}) in ${TORCH_WHEEL_ROOT}")

add_library(torch_wheel INTERFACE)
target_include_directories(torch_wheel SYSTEM INTERFACE ${TORCH_WHEEL_ROOT}/include)
# NDEBUG: without it record_function.h asserts a flag that release builds of torch never set.
target_compile_definitions(torch_wheel INTERFACE NDEBUG _GLIBCXX_USE_CXX11_ABI=1)
target_link_directories(torch_wheel INTERFACE ${TORCH_WHEEL_ROOT}/lib)
# --no-as-needed: nothing references libtorch_cuda.so, which libtorch.so brings in. What that needs in its turn
# (cuDNN, NVSHMEM, …) may be found when programs start and not here.
target_link_options(torch_wheel INTERFACE "LINKER:--no-as-needed" "LINKER:--allow-shlib-undefined")
# The C++ library comes first: libtorch.so and libtorch_cpu.so export parts of an older one (std::filesystem), which would
# be called in its stead. In a PyTorch 2.11 for CUDA std::filesystem::remove_all then calls what is not there.
target_link_libraries(torch_wheel INTERFACE stdc++ torch torch_cpu c10)
if(EXISTS ${TORCH_WHEEL_ROOT}/lib/libtorch_cuda.so)
  target_link_libraries(torch_wheel INTERFACE torch_cuda c10_cuda)
endif()

# Headers of CUDA and NCCL: those of the packages that the wheel has its libraries from first, which
# are of the right version; what these lack is a toolkit's.
set(TORCH_WHEEL_NCCL_INCLUDES "")
set(TORCH_WHEEL_WHY_NO_NCCL "")
if(NOT EXISTS ${TORCH_WHEEL_ROOT}/lib/libtorch_cuda.so)
  set(TORCH_WHEEL_WHY_NO_NCCL "PyTorch ${TORCH_WHEEL_VERSION} has no NCCL")
else()
  file(GLOB torch_packages ${TORCH_WHEEL_ROOT}/../nvidia/*/include)
  foreach(header IN ITEMS nccl.h cuda_runtime.h crt/host_config.h nv/target cublas_v2.h cublasLt.h cusparse.h
      cusolverDn.h)
    find_path(torch_header ${header} NO_CACHE HINTS ${torch_packages} $ENV{CUDA_HOME}/include
      $ENV{CUDA_PATH}/include PATHS /usr/local/cuda/include)
    if(torch_header)
      list(APPEND TORCH_WHEEL_NCCL_INCLUDES ${torch_header})
    else()
      string(APPEND TORCH_WHEEL_WHY_NO_NCCL " ${header}")
    endif()
    unset(torch_header)
  endforeach()
  list(REMOVE_DUPLICATES TORCH_WHEEL_NCCL_INCLUDES)
  if(TORCH_WHEEL_WHY_NO_NCCL)
    string(PREPEND TORCH_WHEEL_WHY_NO_NCCL
      "Etude was built without NCCL, for want of headers (of a CUDA toolkit or of NVIDIA's packages):")
    message(STATUS "${TORCH_WHEEL_WHY_NO_NCCL}")
  endif()
endif()
set(TorchWheel_FOUND TRUE)
