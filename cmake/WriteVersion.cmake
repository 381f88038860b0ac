execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
                WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
set(build_type ${BUILD_TYPE})
if(SANITIZE)
  string(APPEND build_type "+${SANITIZE}")
endif()
# Written only when it changed, so that a second build has nothing to do.
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once
#define LOCKBENCH_VERSION \"${VERSION}\"
#define LOCKBENCH_COMMIT \"${commit}\"
#define LOCKBENCH_BUILD_TYPE \"${build_type}\"
")
