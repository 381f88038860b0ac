# Debian packages, by scripts/package.sh: one for each component of the installation.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "lockbench <lockbench@localhost>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
# The commit decides the version, so it is read when the package is made.
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/PackageVersion.cmake)
set(CPACK_LOCKBENCH_SOURCE ${CMAKE_SOURCE_DIR})
set(CPACK_LOCKBENCH_VERSION ${PROJECT_VERSION})

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME lockbench)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "It measures locks on Redis, memcached, ZooKeeper, etcd and PostgreSQL, audits every run, and injects faults.")
# useradd, in postinst
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS passwd)
# The private servers: who has servers of their own, or one kind of store, needs none of the others.
file(STRINGS packages.txt servers REGEX "^run ")
list(TRANSFORM servers REPLACE "^run +([^ ]+).*" "\\1")
list(JOIN servers ", " servers)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS packages.txt)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "${servers}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "bash-completion")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/postinst)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
