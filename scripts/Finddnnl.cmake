# oneDNN of at least the requested version, found by its header and library: its own
# dnnl-config.cmake refuses another major version, and Debian's stops without OpenCL's headers, which
# nothing here includes. CMAKE_PREFIX_PATH and dnnl_ROOT are looked into first.
#   DNNL::dnnl, dnnl_VERSION
find_path(dnnl_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(dnnl_LIBRARY dnnl)
mark_as_advanced(dnnl_INCLUDE_DIR dnnl_LIBRARY)

set(dnnl_VERSION "")
if(dnnl_INCLUDE_DIR)
  file(STRINGS "${dnnl_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" dnnl_version_lines
    REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3"
    dnnl_VERSION "${dnnl_version_lines}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(dnnl
  REQUIRED_VARS dnnl_LIBRARY dnnl_INCLUDE_DIR VERSION_VAR dnnl_VERSION)

if(dnnl_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION "${dnnl_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${dnnl_INCLUDE_DIR}")
endif()
