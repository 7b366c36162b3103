# Writes OUTPUT from TEMPLATE with the commit of SOURCE and whether a tracked file differs from it, with
# version, build_type and compiler as given. Outside a checkout the commit is "".
execute_process(COMMAND git -C "${SOURCE}" rev-parse HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git -C "${SOURCE}" status --porcelain --untracked-files=no
  OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(dirty false)
if(changes)
  set(dirty true)
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
