# Writes OUTPUT from TEMPLATE with the commit of SOURCE and whether the sources differ from it, with version,
# build_type and compiler as given. The commit is "" outside a checkout, and in a folder that another
# project's checkout holds without tracking it.
set(commit "")
set(dirty false)
execute_process(COMMAND git -C "${SOURCE}" ls-files --error-unmatch CMakeLists.txt
  RESULT_VARIABLE untracked OUTPUT_QUIET ERROR_QUIET)
if(untracked EQUAL 0)
  execute_process(COMMAND git -C "${SOURCE}" rev-parse HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git -C "${SOURCE}" status --porcelain --untracked-files=no -- .
    OUTPUT_VARIABLE changes ERROR_QUIET)
  # The build takes every source in these folders, tracked or not.
  execute_process(COMMAND git -C "${SOURCE}" ls-files --others --exclude-standard -- lib app
    OUTPUT_VARIABLE additions ERROR_QUIET)
  if(NOT "${changes}${additions}" STREQUAL "")
    set(dirty true)
  endif()
endif()
configure_file("${TEMPLATE}" "${OUTPUT}" @ONLY)
