# What `cmake --install` installs. cmake/Packages.cmake makes Debian packages of the components.
install(TARGETS lockbench COMPONENT program)
# What find_beside() looks for.
set(parts ${CMAKE_INSTALL_LIBEXECDIR}/lockbench)
install(TARGETS lockbench-supervisor lockbench_clock_shim lockbench_hosts_shim lockbench_sync_shim COMPONENT program
        RUNTIME DESTINATION ${parts} LIBRARY DESTINATION ${parts})
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
# Copied and adapted by whoever uses them: nothing of it is in force after the installation.
install(FILES exporter/lockbench-probe.service exporter/lockbench-watch.service exporter/watch.toml
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program)
install(DIRECTORY dashboards DESTINATION ${CMAKE_INSTALL_DATADIR}/lockbench COMPONENT program)
install(FILES results/schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/lockbench COMPONENT program)

# The manual pages are written by the program, and the completions ask it.
set(pages ${CMAKE_BINARY_DIR}/man)
add_custom_command(
  OUTPUT ${pages}/written
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
  COMMAND lockbench manual ${pages}
  COMMAND ${CMAKE_COMMAND} -E touch ${pages}/written
  VERBATIM)
add_custom_target(lockbench_manual DEPENDS ${pages}/written)
install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program FILES_MATCHING PATTERN *.1)
set(completions cli/completions)
install(FILES ${completions}/lockbench.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME lockbench COMPONENT program)
install(FILES ${completions}/_lockbench DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(FILES ${completions}/lockbench.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)

# All that an installation needs: `cmake --install` builds nothing.
add_custom_target(installable)
add_dependencies(installable lockbench lockbench_manual lockbench-supervisor lockbench_clock_shim lockbench_hosts_shim lockbench_sync_shim)
if(LOCKBENCH_METRICS)
  add_dependencies(installable lockbench_embed)
endif()
include(cmake/Packages.cmake)
