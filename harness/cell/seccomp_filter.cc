// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/seccomp_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/cell/system_error.h"

namespace bkm {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr uint32_t kForeignNumbers = 0x40000000;  // x32
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr uint32_t kForeignNumbers = 0x80000000;
#else
#error "seccomp_filter.cc does not know this architecture"
#endif

// Calls that a cell may make, whatever their arguments are if no rule below looks at them. Each
// acts on the caller, on processes and files that the sandbox shows, or on nothing. All others fail
// with ENOSYS, those of newer kernels included, so that programs fall back.
std::vector<int> AllowedCalls() {
  return {
    // Files: open, read and write.
    SYS_openat, SYS_close, SYS_close_range, SYS_read, SYS_readv, SYS_pread64, SYS_preadv,
        SYS_preadv2, SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_lseek,
        SYS_ftruncate, SYS_truncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_sync_file_range,
        SYS_copy_file_range, SYS_sendfile, SYS_splice, SYS_tee, SYS_readahead, SYS_fadvise64,
        SYS_dup, SYS_dup3, SYS_fcntl, SYS_flock, SYS_ioctl, SYS_pipe2,
        // Names and attributes.
        SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_faccessat,
        SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_chdir, SYS_fchdir,
        SYS_mkdirat, SYS_mknodat, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_linkat,
        SYS_symlinkat, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_umask,
        SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_listxattr, SYS_llistxattr, SYS_flistxattr,
        // Memory.
        SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_mincore,
        SYS_msync, SYS_mlock, SYS_mlock2, SYS_munlock, SYS_mlockall, SYS_munlockall, SYS_pkey_alloc,
        SYS_pkey_free, SYS_pkey_mprotect, SYS_mbind, SYS_get_mempolicy, SYS_set_mempolicy,
        SYS_set_mempolicy_home_node, SYS_membarrier,
        // Processes and threads.
        SYS_clone, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid,
        SYS_set_tid_address, SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_futex,
        SYS_futex_waitv, SYS_gettid, SYS_getpid, SYS_getppid, SYS_getpgid, SYS_setpgid, SYS_getsid,
        SYS_setsid, SYS_pidfd_open, SYS_prctl, SYS_personality, SYS_restart_syscall,
        // Users and rights: a cell has one user and no capability, so it can only give up more.
        SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getresuid, SYS_getresgid,
        SYS_getgroups, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid,
        SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_setgroups, SYS_capget, SYS_capset,
        SYS_seccomp, SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self,
        // Signals.
        SYS_kill, SYS_tkill, SYS_tgkill, SYS_pidfd_send_signal, SYS_rt_sigaction,
        SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigtimedwait,
        SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_rt_sigsuspend, SYS_sigaltstack,
        SYS_signalfd4,
        // Waiting and time.
        SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait,
        SYS_epoll_pwait2, SYS_eventfd2, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime,
        SYS_clock_getres, SYS_gettimeofday, SYS_getitimer, SYS_setitimer, SYS_timer_create,
        SYS_timer_settime, SYS_timer_gettime, SYS_timer_getoverrun, SYS_timer_delete,
        SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_times,
        // Scheduling and limits.
        SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_sched_getparam,
        SYS_sched_setparam, SYS_sched_getscheduler, SYS_sched_setscheduler, SYS_sched_getattr,
        SYS_sched_setattr, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
        SYS_sched_rr_get_interval, SYS_getpriority, SYS_setpriority, SYS_ioprio_get, SYS_ioprio_set,
        SYS_getrlimit, SYS_setrlimit, SYS_prlimit64, SYS_getrusage, SYS_getcpu,
        // Sockets of the families that the rules below name.
        SYS_socket, SYS_socketpair, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_connect,
        SYS_shutdown, SYS_getsockname, SYS_getpeername, SYS_getsockopt, SYS_setsockopt, SYS_sendto,
        SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
        // The machine.
        SYS_uname, SYS_sysinfo, SYS_getrandom,
#if defined(__x86_64__)
        // Older forms of the calls above.
        SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents, SYS_mkdir,
        SYS_rmdir, SYS_mknod, SYS_unlink, SYS_rename, SYS_link, SYS_symlink, SYS_chmod, SYS_chown,
        SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat, SYS_dup2, SYS_pipe, SYS_fork, SYS_vfork,
        SYS_getpgrp, SYS_poll, SYS_select, SYS_epoll_create, SYS_epoll_wait, SYS_eventfd,
        SYS_signalfd, SYS_pause, SYS_alarm, SYS_time, SYS_arch_prctl,
#endif
  };
}

struct Denied {
  std::vector<int> calls;
  int error;
  bool worker;  // denied to the worker, too
};

// Calls that fail with another error than ENOSYS, and calls that only the worker may make, which
// sets up cells.
std::vector<Denied> DeniedCalls() {
  return {
    // A handle names a file past every mount and folder permission.
    {{SYS_open_by_handle_at, SYS_name_to_handle_at}, EPERM, true},
        // Large interfaces of the kernel with a history of privilege escalation; a trainer needs
        // none.
        {{SYS_bpf, SYS_userfaultfd, SYS_perf_event_open, SYS_io_uring_setup, SYS_io_uring_enter,
          SYS_io_uring_register, SYS_remap_file_pages, SYS_vmsplice},
         EPERM,
         true},
        // Keyrings are not separated by namespaces: they belong to a user.
        {{SYS_keyctl, SYS_add_key, SYS_request_key}, EPERM, true},
        // They read or steer another process.
        {{SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd,
          SYS_process_madvise, SYS_process_mrelease, SYS_migrate_pages, SYS_move_pages},
         EPERM,
         true},
        // They administer the machine.
        {{SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module,
          SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_syslog, SYS_quotactl, SYS_quotactl_fd,
          SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_vhangup,
          SYS_lookup_dcookie, SYS_nfsservctl},
         EPERM,
         true},
#if defined(__x86_64__)
        // Direct access to devices, segments of 16 bits, calls that the kernel has dropped.
        {{SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl,
          SYS_create_module, SYS_get_kernel_syms, SYS_query_module},
         EPERM,
         true},
#endif
        // They see or change what the whole machine does with its files.
        {{SYS_fanotify_init, SYS_fanotify_mark}, EPERM, true},
        // New namespaces and mounts: with them the kernel offers far more of itself.
        {{SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree,
          SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr},
         EPERM,
         false},
        {{SYS_sethostname, SYS_setdomainname}, EPERM, false},
        // A user has 128 inotify instances, so one cell could take those of all others.
        {{
#if defined(__x86_64__)
             SYS_inotify_init,
#endif
             SYS_inotify_init1},
         EMFILE,
         false},
        // Memory that no process maps, and that the watchdog does not see; without a namespace,
        // also that of other users' programs. torch shares tensors by files in /dev/shm.
        {{SYS_memfd_create, SYS_memfd_secret, SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget,
          SYS_semop, SYS_semtimedop, SYS_semctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl,
          SYS_mq_open, SYS_mq_unlink},
         ENOSYS,
         false},
        // Some file systems count attributes nowhere; Landlock knows none.
        {{SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr,
          SYS_fremovexattr},
         EOPNOTSUPP,
         false},
        // Their arguments lie in memory, where a filter cannot check them. glibc falls back to
        // clone and openat.
        {{SYS_clone3, SYS_openat2}, ENOSYS, false},
        // Flushing every file system of the machine would slow all cells. The caller sees success.
        {{SYS_sync, SYS_syncfs}, 0, true},
  };
}

constexpr int kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                               CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr int kOtherUsersRights = S_ISUID | S_ISGID;
// Without one of these flags, the kernel does not look at the mode.
constexpr int kCreates = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);

// Builds a filter of blocks. A block tests one call and leaves the others to the next block.
class Program {
 public:
  Program() {
    Load(offsetof(seccomp_data, arch));
    Jump(BPF_JEQ, kArchitecture, 1, 0);
    Return(SECCOMP_RET_KILL_PROCESS);
    Load(offsetof(seccomp_data, nr));
    Deny(-1, ENOSYS);
    Jump(BPF_JGE, kForeignNumbers, 0, 1);
    Return(SECCOMP_RET_KILL_PROCESS);
  }

  void Allow(int call) { Answer(call, SECCOMP_RET_ALLOW); }
  void Deny(int call, int error) { Answer(call, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)); }

  // Denies `call` when its argument has one of these bits.
  void DenyBits(int call, int argument, uint32_t bits, int error = EPERM,
                uint32_t otherwise = SECCOMP_RET_ALLOW) {
    Jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 4);
    LoadArgument(argument);
    Jump(BPF_JSET, bits, 0, 1);
    Return(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
    Return(otherwise);
  }

  // The same, and only when argument `flags` has one of the bits `needed`.
  void DenyBitsOf(int call, int flags, uint32_t needed, int argument, uint32_t bits) {
    Jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 6);
    LoadArgument(flags);
    Jump(BPF_JSET, needed, 0, 3);
    LoadArgument(argument);
    Jump(BPF_JSET, bits, 0, 1);
    Return(SECCOMP_RET_ERRNO | EPERM);
    Return(SECCOMP_RET_ALLOW);
  }

  // Denies `call` when its argument is one of `values`.
  void DenyValues(int call, int argument, const std::vector<uint32_t>& values) {
    Jump(BPF_JEQ, static_cast<uint32_t>(call), 0, static_cast<uint8_t>(2 + 2 * values.size()));
    LoadArgument(argument);
    for (const uint32_t value : values) {
      Jump(BPF_JEQ, value, 0, 1);
      Return(SECCOMP_RET_ERRNO | EPERM);
    }
    Return(SECCOMP_RET_ALLOW);
  }

  // Allows `call` only when its argument is one of `values`.
  void AllowValues(int call, int argument, const std::vector<uint32_t>& values) {
    Jump(BPF_JEQ, static_cast<uint32_t>(call), 0, static_cast<uint8_t>(2 + 2 * values.size()));
    LoadArgument(argument);
    for (const uint32_t value : values) {
      Jump(BPF_JEQ, value, 0, 1);
      Return(SECCOMP_RET_ALLOW);
    }
    Return(SECCOMP_RET_ERRNO | EPERM);
  }

  void AllowSockets(bool own_network) {
    std::vector<sock_filter> block;
    std::swap(block, code_);
    LoadArgument(0);
    // Ranks talk to each other by TCP.
    for (const uint32_t family : {AF_INET, AF_INET6}) {
      if (own_network) {
        Family(family, {SOCK_STREAM, SOCK_DGRAM}, {0, IPPROTO_TCP, IPPROTO_UDP});
      } else {
        Family(family, {SOCK_STREAM}, {0, IPPROTO_TCP});
      }
    }
    // Paths and abstract names end at the cell's root and network.
    if (own_network) Family(AF_UNIX, {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}, {0});
    // getifaddrs(3), by which gloo finds its interface.
    Family(AF_NETLINK, {SOCK_RAW, SOCK_DGRAM}, {NETLINK_ROUTE});
    Return(SECCOMP_RET_ERRNO | EPERM);
    std::swap(block, code_);
    Jump(BPF_JEQ, SYS_socket, 0, static_cast<uint8_t>(block.size()));
    code_.insert(code_.end(), block.begin(), block.end());
  }

  void Return(uint32_t value) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, value)); }

  std::vector<sock_filter>& code() { return code_; }

 private:
  void Answer(int call, uint32_t answer) {
    Jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 1);
    Return(answer);
  }
  void Load(size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  }
  // The kernel itself looks only at the lower half of these arguments.
  void LoadArgument(int index) {
    Load(offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<size_t>(index));
  }
  void Jump(uint16_t test, uint32_t value, uint8_t if_true, uint8_t if_false) {
    code_.push_back(
        BPF_JUMP(static_cast<uint16_t>(BPF_JMP | test | BPF_K), value, if_true, if_false));
  }
  // With the family loaded: decides about its sockets.
  void Family(uint32_t family, const std::vector<uint32_t>& types,
              const std::vector<uint32_t>& protocols) {
    const size_t size = 2 + types.size() + 1 + 1 + 2 * protocols.size() + 1;
    Jump(BPF_JEQ, family, 0, static_cast<uint8_t>(size));
    LoadArgument(1);
    code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf));  // the rest are flags
    for (size_t i = 0; i < types.size(); ++i)
      Jump(BPF_JEQ, types[i], static_cast<uint8_t>(types.size() - i), 0);
    Return(SECCOMP_RET_ERRNO | EPERM);
    LoadArgument(2);
    for (const uint32_t protocol : protocols) {
      Jump(BPF_JEQ, protocol, 0, 1);
      Return(SECCOMP_RET_ALLOW);
    }
    Return(SECCOMP_RET_ERRNO | EPERM);
  }

  std::vector<sock_filter> code_;
};

void AddCellRules(Program& program, bool has_namespaces) {
  program.DenyBits(SYS_clone, 0, static_cast<uint32_t>(kNewNamespaces));
  // A program that another user starts with this user's rights would outlive the cell. Without
  // namespaces no mode is changed at all, because Landlock knows no attributes: a cell could take
  // all rights from what others read. Programs that set them on their own files see success.
  const uint32_t mode = has_namespaces ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO;
  program.DenyBits(SYS_fchmod, 1, kOtherUsersRights, EPERM, mode);
  program.DenyBits(SYS_fchmodat, 2, kOtherUsersRights, EPERM, mode);
  program.DenyBitsOf(SYS_openat, 2, kCreates, 3, kOtherUsersRights);
  program.DenyBits(SYS_mkdirat, 2, kOtherUsersRights);
  program.DenyBits(SYS_mknodat, 2, kOtherUsersRights);
#if defined(__x86_64__)
  program.DenyBits(SYS_chmod, 1, kOtherUsersRights, EPERM, mode);
  program.DenyBitsOf(SYS_open, 1, kCreates, 2, kOtherUsersRights);
  program.DenyBits(SYS_creat, 1, kOtherUsersRights);
  program.DenyBits(SYS_mkdir, 1, kOtherUsersRights);
  program.DenyBits(SYS_mknod, 1, kOtherUsersRights);
#endif
  // The kernel's limit on the size of a file does not bound these blocks.
  program.DenyBits(SYS_fallocate, 1, FALLOC_FL_KEEP_SIZE, EOPNOTSUPP);
  // Connecting without connect(2), which Landlock does not see.
  program.DenyBits(SYS_sendto, 3, MSG_FASTOPEN);
  program.DenyBits(SYS_sendmsg, 2, MSG_FASTOPEN);
  program.DenyBits(SYS_sendmmsg, 3, MSG_FASTOPEN);
  // Of other families, the kernel may load a module before it says that they have no pairs.
  program.AllowValues(SYS_socketpair, 0, {AF_UNIX});
  // They type into a terminal, or change attributes of files that others read.
  program.DenyValues(SYS_ioctl, 1,
                     {TIOCSTI, TIOCLINUX, TIOCSETD, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR});
  // A lease keeps others from opening the file until it is broken.
  program.DenyValues(SYS_fcntl, 1, {F_SETLEASE, F_NOTIFY});
  // Other personalities relax how memory is protected.
  program.AllowValues(SYS_personality, 0, {PER_LINUX, ADDR_NO_RANDOMIZE, 0xffffffff});
}

// Where the files and processes of its user are a cell's own.
void AddRulesWithoutNamespaces(Program& program) {
  std::vector<int> times = {SYS_utimensat};
  std::vector<int> denied = {SYS_fchown, SYS_fchownat, SYS_setpriority, SYS_ioprio_set};
#if defined(__x86_64__)
  times.insert(times.end(), {SYS_utime, SYS_utimes, SYS_futimesat});
  denied.insert(denied.end(), {SYS_chown, SYS_lchown});
#endif
  for (const int call : times) program.Deny(call, 0);  // as modes in AddCellRules()
  for (const int call : denied) program.Deny(call, EPERM);
  // 0 is the caller.
  for (const int call : {SYS_prlimit64, SYS_sched_setaffinity, SYS_sched_setscheduler,
                         SYS_sched_setparam, SYS_sched_setattr})
    program.AllowValues(call, 0, {0});
}

}  // namespace

absl::Status InstallSeccompFilter(Filtered filtered) {
  Program program;
  for (const Denied& group : DeniedCalls()) {
    for (const int call : group.calls) {
      if (filtered == Filtered::kWorker && !group.worker) {
        program.Allow(call);
      } else {
        program.Deny(call, group.error);
      }
    }
  }
  if (filtered != Filtered::kWorker) {
    const bool has_namespaces = filtered == Filtered::kCell;
    if (!has_namespaces) AddRulesWithoutNamespaces(program);
    AddCellRules(program, has_namespaces);
    if (filtered == Filtered::kWithoutSockets) {
      program.Deny(SYS_socket, EPERM);
    } else {
      program.AllowSockets(filtered == Filtered::kCell);
    }
  }
  for (const int call : AllowedCalls()) program.Allow(call);
  program.Return(SECCOMP_RET_ERRNO | ENOSYS);
  sock_fprog code = {static_cast<uint16_t>(program.code().size()), program.code().data()};
  // Without the flag, older kernels slow every cell by turning speculation off.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &code) != 0)
    return SystemError("cannot install a seccomp filter");
  return absl::OkStatus();
}

}  // namespace bkm
