# The Python module etude._core with its stub. Beside them, in build/python, stands the rest of the
# package as links into the source tree: with that folder on PYTHONPATH the package is whole.
#
# Python_EXECUTABLE says which Python; without it, that of ETUDE_TORCH_PYTHON or the first found.
if(NOT Python_EXECUTABLE AND ETUDE_TORCH_PYTHON)
  set(Python_EXECUTABLE ${ETUDE_TORCH_PYTHON})
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT RESULT_VARIABLE no_nanobind)
if(no_nanobind)
  message(FATAL_ERROR "No nanobind in ${Python_EXECUTABLE}: pip install nanobind, or build without "
    "the Python module: -DETUDE_PYTHON=OFF")
endif()
find_package(nanobind CONFIG REQUIRED)

etude_sources(ETUDE_PYTHON_SOURCES python)
nanobind_add_module(_core NB_STATIC ${ETUDE_PYTHON_SOURCES})
etude_compile_options(_core)
etude_unity_build(_core)
# Headers of Python and nanobind are not ours to warn about.
target_include_directories(_core SYSTEM PRIVATE ${NB_DIR}/include ${Python_INCLUDE_DIRS})
target_link_libraries(_core PRIVATE etude nlohmann_json::nlohmann_json)

set(ETUDE_PYTHON_PACKAGE ${PROJECT_BINARY_DIR}/python/etude)
set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ETUDE_PYTHON_PACKAGE})
file(MAKE_DIRECTORY ${ETUDE_PYTHON_PACKAGE})
file(GLOB entries CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/etude/*)
foreach(entry ${entries})
  get_filename_component(name ${entry} NAME)
  if(NOT name STREQUAL __pycache__)
    file(CREATE_LINK ${entry} ${ETUDE_PYTHON_PACKAGE}/${name} SYMBOLIC)
  endif()
endforeach()

nanobind_add_stub(_core_stub MODULE etude._core OUTPUT ${ETUDE_PYTHON_PACKAGE}/_core.pyi
  PYTHON_PATH ${PROJECT_BINARY_DIR}/python DEPENDS _core)

# What a wheel holds besides the package: stub, tool, and the sources of what needs libtorch, which
# etude.torch_tool builds on first use.
if(SKBUILD)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "
import os, sysconfig
print(os.path.relpath(sysconfig.get_path('platlib'), sysconfig.get_path('scripts')), end='')"
    OUTPUT_VARIABLE site_from_scripts COMMAND_ERROR_IS_FATAL ANY)
  # '..' is where pip install --target puts the package.
  set(ETUDE_PYTHON_FOLDERS "${site_from_scripts}:..")
  if(SKBUILD_STATE STREQUAL "editable")
    string(APPEND ETUDE_PYTHON_FOLDERS ":${PROJECT_SOURCE_DIR}/python")
  endif()
  set_property(SOURCE src/cli/app/installation.cc APPEND PROPERTY COMPILE_DEFINITIONS
    ETUDE_WHEEL_PYTHON="python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}")
  install(TARGETS _core LIBRARY DESTINATION etude COMPONENT wheel)
  install(FILES ${ETUDE_PYTHON_PACKAGE}/_core.pyi DESTINATION etude COMPONENT wheel)
  # What lets ETUDE_RECORD into programs that simply run.
  install(FILES python/etude_record.pth python/_etude_record.py DESTINATION . COMPONENT wheel)
  install(TARGETS etude_tool RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
  set(sources etude/torch_source)
  install(FILES CMakeLists.txt LICENSE DESTINATION ${sources} COMPONENT wheel)
  install(DIRECTORY cmake DESTINATION ${sources} COMPONENT wheel)
  install(FILES docs/suite/calibration.json docs/suite/variation.json DESTINATION ${sources}/docs/suite COMPONENT wheel)
  install(FILES python/etude/_version.py DESTINATION ${sources}/python/etude COMPONENT wheel)
  install(DIRECTORY src DESTINATION ${sources} COMPONENT wheel
    FILES_MATCHING PATTERN "*.h" PATTERN "*.cc" PATTERN "assets/*"
    PATTERN "*_test.cc" EXCLUDE PATTERN "*_fuzz.cc" EXCLUDE PATTERN "*_bench.cc" EXCLUDE)
endif()
