# The Debian package: the program, its configs and documents. `scripts/package.sh` makes and checks it.
# It holds no CUDA plugin, which would need NVIDIA's libraries that Debian's main archive does not have.
set(HALFSTEP_CONTACT "halfstep maintainers <maintainers@halfstep.example>" CACHE STRING
  "Maintainer that the Debian package names")

# The release's version and day are those of the newest entry of CHANGELOG.md.
file(STRINGS CHANGELOG.md halfstep_release REGEX "^## [0-9]+\\.[0-9]+\\.[0-9]+ " LIMIT_COUNT 1)
if(NOT halfstep_release MATCHES "^## ${PROJECT_VERSION} \\(([0-9]+-[0-9]+-[0-9]+)\\)$")
  message(FATAL_ERROR "CHANGELOG.md begins with '${halfstep_release}'; wanted '## ${PROJECT_VERSION} (YEAR-MONTH-DAY)'")
endif()
set(halfstep_date "${CMAKE_MATCH_1}")

if(UNIX AND NOT APPLE)
  # The manual page and bash's completion, which the built program writes.
  install(CODE "
    set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    set(manual \"\${root}/${CMAKE_INSTALL_MANDIR}/man1/halfstep.1\")
    set(completion \"\${root}/${CMAKE_INSTALL_DATADIR}/bash-completion/completions/halfstep\")
    file(WRITE \"\${manual}\" \"\")
    file(WRITE \"\${completion}\" \"\")
    execute_process(COMMAND \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/halfstep\" help man
      OUTPUT_FILE \"\${manual}\" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/halfstep\" completion bash
      OUTPUT_FILE \"\${completion}\" COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND gzip -9nf \"\${manual}\" COMMAND_ERROR_IS_FATAL ANY)
  ")
  # Debian's own files beside the documents: a changelog in its format, ours by its name, and the terms.
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")
    execute_process(COMMAND date -u -R -d \"${halfstep_date}\" OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
    file(WRITE \"\${folder}/changelog.Debian\"
      \"halfstep (${PROJECT_VERSION}-1) unstable; urgency=medium\\n\\n\"
      \"  * Release ${PROJECT_VERSION}: see /usr/share/doc/halfstep/changelog.gz.\\n\\n\"
      \" -- ${HALFSTEP_CONTACT}  \${date}\\n\")
    file(RENAME \"\${folder}/CHANGELOG.md\" \"\${folder}/changelog\")
    execute_process(COMMAND gzip -9nf \"\${folder}/changelog.Debian\" \"\${folder}/changelog\")
    file(WRITE \"\${folder}/copyright\"
      \"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\\n\"
      \"Upstream-Name: halfstep\\n\\n\"
      \"Files: *\\nCopyright: 2026 the halfstep contributors\\nLicense: Apache-2.0\\n\"
      \" The text of the license is in /usr/share/common-licenses/Apache-2.0.\\n\"
      \"Comment: The program holds Chart.js, under the MIT license of chart_licence.txt in this folder.\\n\")
  " COMPONENT debian)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${HALFSTEP_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains neural networks in mixed precision and compares precisions")
set(CPACK_PACKAGE_DESCRIPTION
  "halfstep trains networks that a YAML file describes in float32, mixed
 bfloat16 or mixed float16, or lets an automatic graph rewrite choose the
 dtype of each op. It reports step time, accuracy and skipped steps as JSON,
 compares precisions with confidence intervals and explains the dtype of
 every op.")
string(REPLACE "\n " "\n" CPACK_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS dataset-fashion-mnist)
include(CPack)
