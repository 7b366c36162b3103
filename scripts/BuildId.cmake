# Writes OUTPUT, which defines build_id(): a hash of the headers whose types the program and the CUDA plugin
# exchange, and of `options` (compiler and flags). SOURCE is the project's folder.
file(GLOB_RECURSE headers RELATIVE "${SOURCE}"
  "${SOURCE}/lib/core/*.h" "${SOURCE}/lib/comm/*.h" "${SOURCE}/lib/graph/*.h")
file(GLOB interfaces RELATIVE "${SOURCE}" "${SOURCE}/lib/backend/*.h")
list(APPEND headers ${interfaces} lib/backend/cuda/plugin.h)
set(text "${options}")
foreach(header IN LISTS headers)
  file(SHA256 "${SOURCE}/${header}" hash)
  string(APPEND text " ${header} ${hash}")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING "${id}" 0 16 id)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
#include "backend/cuda/plugin.h"

const char* halfstep::backend::cuda::build_id() { return "@id@"; }
]] @ONLY)
