// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_CELL_MOUNT_CALLS_H_
#define HARNESS_CELL_MOUNT_CALLS_H_

#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

// System calls by number: glibc has had functions for them since 2.36 only, and a program that
// names these functions does not start on an older one. Each returns what the kernel returns, or -1
// and errno.
namespace bkm {

inline int OpenTree(int folder, const char* path, unsigned flags) {
  return static_cast<int>(::syscall(SYS_open_tree, folder, path, flags));
}
inline int MoveMount(int from_folder, const char* from, int to_folder, const char* to,
                     unsigned flags) {
  return static_cast<int>(::syscall(SYS_move_mount, from_folder, from, to_folder, to, flags));
}
inline int SetMountAttributes(int folder, const char* path, unsigned flags,
                              const mount_attr& attributes) {
  return static_cast<int>(
      ::syscall(SYS_mount_setattr, folder, path, flags, &attributes, sizeof attributes));
}
inline int OpenFileSystem(const char* type, unsigned flags) {
  return static_cast<int>(::syscall(SYS_fsopen, type, flags));
}
inline int ConfigureFileSystem(int context, unsigned command, const char* key, const char* value) {
  return static_cast<int>(::syscall(SYS_fsconfig, context, command, key, value, 0));
}
inline int MountFileSystem(int context, unsigned flags, unsigned attributes) {
  return static_cast<int>(::syscall(SYS_fsmount, context, flags, attributes));
}

}  // namespace bkm

#endif  // HARNESS_CELL_MOUNT_CALLS_H_
