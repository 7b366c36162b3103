# One interface target holds language level and warnings; every module links it privately.
add_library(halfstep_options INTERFACE)
target_compile_features(halfstep_options INTERFACE cxx_std_20)
target_include_directories(halfstep_options INTERFACE "${PROJECT_SOURCE_DIR}/lib")
target_compile_options(halfstep_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  # IEEE results that do not depend on whether the compiler fuses a multiply and an add.
  -ffp-contract=off
  # GCC 12 reports overlaps in std::string that are not there.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # libstdc++ 12 deprecates a function that its own stable_sort uses.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  $<$<BOOL:${HALFSTEP_WERROR}>:-Werror>)
if(HALFSTEP_SANITIZE)
  target_compile_options(halfstep_options INTERFACE
    -fsanitize=${HALFSTEP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(halfstep_options INTERFACE -fsanitize=${HALFSTEP_SANITIZE})
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# Code that runs once a run, or in tests, is compiled for build time rather than for speed: -Og takes
# 20 to 30 % less processor time than -O1. Precompiled headers save at most 5 % of a unit of 25 files.
add_library(halfstep_cold INTERFACE)
target_compile_options(halfstep_cold INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-Og>)

# Files of a module are compiled up to 25 at a time, in units of equal size, because most of the time goes into
# headers and into templates that the files share. Names in
# the unnamed namespaces of a module must therefore differ. Off in the preset that checks each file by itself.
option(HALFSTEP_UNITY "Compile the files of a module together" ON)
function(halfstep_unity target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR units "(${count} + 24) / 25")
  math(EXPR batch "(${count} + ${units} - 1) / ${units}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HALFSTEP_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
endfunction()

# halfstep_module(name DEPS modules... LIBS third-party...): the library of one module of lib/. COLD:
# see halfstep_cold. APART: no unity build (halfstep_unity), for hot loops and files with flags of
# their own. Sources are the folder's *.cc and those of the folders in LEAVES.
function(halfstep_module name)
  cmake_parse_arguments(ARG "COLD;APART" "" "DEPS;LIBS;LEAVES;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  foreach(leaf IN LISTS ARG_LEAVES)
    file(GLOB leaf_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${leaf}/*.cc")
    list(APPEND sources ${leaf_sources})
  endforeach()
  foreach(file IN LISTS ARG_EXCLUDE)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  if(NOT sources)
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/empty.cc" "")
    set(sources "${CMAKE_CURRENT_BINARY_DIR}/empty.cc")
  endif()
  add_library(halfstep_${name} STATIC ${sources})
  target_link_libraries(halfstep_${name} PUBLIC halfstep_options PRIVATE ${ARG_LIBS})
  if(NOT ARG_APART)
    halfstep_unity(halfstep_${name})
  endif()
  if(ARG_COLD)
    target_link_libraries(halfstep_${name} PRIVATE halfstep_cold)
  endif()
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(halfstep_${name} PUBLIC halfstep_${dep})
  endforeach()
endfunction()

# halfstep_check_headers(folder): the target check_headers, outside of `all`, which compiles every
# header of the folder alone.
function(halfstep_check_headers folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/*.h")
  # These include the toolkit's.
  if(NOT HALFSTEP_CUDA_FOUND)
    list(FILTER headers EXCLUDE REGEX "^backend/cuda/vendor/real/")
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" source "${header}")
    set(source "${PROJECT_BINARY_DIR}/check_headers/${source}.cc")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${header}\"\n")
    list(APPEND sources "${source}")
  endforeach()
  add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(check_headers PRIVATE halfstep_options fmt::fmt)
  if(HALFSTEP_CUDA_FOUND)
    target_include_directories(check_headers SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
endfunction()
