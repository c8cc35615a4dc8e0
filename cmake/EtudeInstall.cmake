# `cmake --install`: the tools, the torch-free library with its headers, the Python package, and the
# CMake package that `find_package(etude)` finds.
include(CMakePackageConfigHelpers)

install(TARGETS etude_tool RUNTIME)
if(ETUDE_TORCH)
  install(TARGETS etude_torch_tool RUNTIME)
  install(TARGETS etude_recorder LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/etude)
endif()
install(TARGETS etude EXPORT etude-targets ARCHIVE)
# Users include <etude/…>; what these headers include comes with them.
install(DIRECTORY include/etude DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/etude/include)
foreach(module base trace run formats transform analysis sim synth compose standalone report jobs)
  install(DIRECTORY src/${module} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/etude/src
    FILES_MATCHING PATTERN "*.h" PATTERN assets EXCLUDE)
endforeach()
install(FILES src/compat/chakra/et_feeder.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/etude/src/compat/chakra)
install(DIRECTORY python/etude DESTINATION ${CMAKE_INSTALL_DATADIR}/etude/python
  PATTERN __pycache__ EXCLUDE)

install(EXPORT etude-targets NAMESPACE etude:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/etude)
configure_package_config_file(cmake/etude-config.cmake.in
  ${PROJECT_BINARY_DIR}/etude-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/etude)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/etude-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/etude-config.cmake
  ${PROJECT_BINARY_DIR}/etude-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/etude)
