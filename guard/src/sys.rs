//! What the guard asks the system for: the only file with `unsafe` in it.
#![allow(unsafe_code)]

use rustix::process::Pid;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::ptr::{null, null_mut};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildExit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Which of the two processes this is after a fork.
pub(super) enum Fork {
    Parent { child: i32 },
    Child,
}

/// Signals held back, until restored. Dropping it restores nothing.
pub(super) struct HeldSignals {
    mask: libc::sigset_t,
    on_child: libc::sigaction,
}

/// Splits this process in two.
///
/// # Errors
///
/// This process has other threads, which the child would lack while their locks are held; or the
/// system has no room for one more.
pub(super) fn fork() -> io::Result<Fork> {
    demand_one_thread()?;
    // SAFETY: there is no other thread, so memory is in order in the child, too.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent { child }),
    }
}

/// Splits this process in two. The child has one thread, does this and no more: run the program
/// anew, say.
///
/// # Errors
///
/// The system has no room for one more process.
pub(super) fn fork_and(act: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the child lacks this process's other threads, whose locks may be held for ever. It
    // runs this crate's code alone, which takes no locks but the allocator's; and those the C
    // library (glibc) holds itself during a fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            act();
            exit(127)
        }
        child => Ok(child),
    }
}

/// Whether this process has a single thread.
pub(super) fn is_alone() -> bool {
    demand_one_thread().is_ok()
}

fn demand_one_thread() -> io::Result<()> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(|error| {
        io::Error::new(error.kind(), format!("its threads cannot be counted: {error}"))
    })?;
    if threads.count() == 1 {
        Ok(())
    } else {
        Err(io::Error::other("the process has several threads"))
    }
}

/// Holds back all signals that can be held back, and asks for word of a child's end.
pub(super) fn hold_signals() -> HeldSignals {
    let mut all = MaybeUninit::uninit();
    let mut mask = MaybeUninit::uninit();
    let mut on_child = MaybeUninit::uninit();
    // SAFETY: the sets and the action are valid for writing; `sigfillset` initialises the first,
    // the other calls the others, and none of them fails with valid arguments. All zeroes, with an
    // empty mask, is a valid action.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), mask.as_mut_ptr());
        // Where a launcher has SIGCHLD ignored, the system would not keep how a child ended.
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGCHLD, &raw const default, on_child.as_mut_ptr());
        HeldSignals { mask: mask.assume_init(), on_child: on_child.assume_init() }
    }
}

/// Makes signals as they were.
pub(super) fn restore_signals(held: &HeldSignals) {
    // SAFETY: both were written by the system in `hold_signals`.
    unsafe {
        libc::sigaction(libc::SIGCHLD, &raw const held.on_child, null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const held.mask, null_mut());
    }
}

/// The next signal that was held back, if one comes within this many milliseconds.
pub(super) fn next_signal(limit_ms: u32) -> Option<i32> {
    let mut all = MaybeUninit::uninit();
    let limit = libc::timespec {
        tv_sec: libc::time_t::from(limit_ms / 1000),
        tv_nsec: libc::c_long::from(limit_ms % 1000) * 1_000_000,
    };
    loop {
        // SAFETY: `sigfillset` initialises the set; the limit is valid for reading; a null pointer
        // asks for no details of the signal.
        let signal = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::sigtimedwait(all.as_ptr(), null_mut(), &raw const limit)
        };
        match signal {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return None,
            signal => return Some(signal),
        }
    }
}

/// How the child ended, if it has. Others that have ended, and have become this process's, are let
/// go.
pub(super) fn reap(child: i32) -> Option<ChildExit> {
    let mut status = 0;
    loop {
        // SAFETY: the status is valid for writing.
        let reaped = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        match reaped {
            reaped if reaped == child => break,
            0 | -1 => return None,
            _ => {}
        }
    }
    match status {
        status if libc::WIFEXITED(status) => Some(ChildExit::Code(libc::WEXITSTATUS(status))),
        status if libc::WIFSIGNALED(status) => Some(ChildExit::Signal(libc::WTERMSIG(status))),
        _ => None,
    }
}

/// Sends a signal. A process that has ended gets none.
pub(super) fn send(process: i32, signal: i32) {
    // SAFETY: touches no memory of this process. A child's number is its own until it is reaped.
    unsafe { libc::kill(process, signal) };
}

/// Our process group. `None`: it belongs to a namespace outside of ours, and cannot be gone back
/// to.
pub(super) fn process_group() -> Option<Pid> {
    // SAFETY: It takes nothing and cannot fail.
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// Lets the system kill this process when its parent ends.
pub(super) fn end_with_parent() {
    // SAFETY: touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// The same for a process with this guard, which may have ended already.
pub(super) fn end_with(guard: u32) {
    end_with_parent();
    if parent_id() != guard {
        exit(1);
    }
}

/// Lets the system say SIGCHLD to this process when its parent ends, too.
pub(super) fn hear_of_parents_end() {
    // SAFETY: touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCHLD) };
}

/// Whether only this process has a file open or mapped. No other can open it then while this one
/// keeps it open. (The system lends a file out for writing only to its sole user.)
pub(super) fn is_sole_user(file: &impl AsRawFd) -> bool {
    // Linux' number; the `libc` crate has none.
    const F_SETSIG: c_int = 10;
    // If another process wants the file, this one gets a signal, which must not end it.
    // SAFETY: the file is open, and nothing else is touched.
    unsafe {
        libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) != -1
            && libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) != -1
    }
}

/// What tools call this process from now on; at most 15 bytes.
pub(super) fn rename(name: &str) {
    let Ok(name) = CString::new(name) else { return };
    // SAFETY: the name is a C string that the system copies.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Has the system make this process the parent of all below it whose own parents have ended.
pub(super) fn adopt_descendants() {
    // SAFETY: touches no memory.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Closes this process's copies of all files but these.
pub(super) fn close_all_but(kept: &[RawFd]) {
    let Ok(folder) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // Collected first: reading the folder has a file open that is in the folder.
    let open: Vec<RawFd> = numbers.collect();
    for file in open.into_iter().filter(|file| !kept.contains(file)) {
        // SAFETY: the caller never returns to code that owns any of them.
        unsafe { libc::close(file) };
    }
}

/// A file that was handed down by its number; closed in programs that this one starts.
///
/// # Errors
///
/// There is none by that number, or it is one of the standard ones.
pub(super) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: `fcntl` judges whether there is such a file.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and was handed down for the caller alone.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A second descriptor of a file that other code of this process owns.
///
/// # Errors
///
/// There is none by that number.
pub(super) fn shared(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: not -1; borrowed for the call, which judges whether there is such a file.
    unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()
}

/// Keeps a file open in programs that this one starts.
pub(super) fn hand_down(file: &impl AsRawFd) {
    // SAFETY: the file is open.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
}

/// Sets an environment variable.
///
/// # Errors
///
/// Other threads could be reading variables meanwhile.
pub(super) fn set_variable(name: &str, value: &str) -> io::Result<()> {
    demand_one_thread()?;
    // SAFETY: there is no other thread.
    unsafe { std::env::set_var(name, value) };
    Ok(())
}

/// Ends this process at once; nothing is flushed and no handler runs.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// Has `act` called with the code with which this process ends, if it ends by itself. What was
/// registered later is called before.
pub(super) fn at_exit(act: extern "C" fn(c_int, *mut c_void)) {
    unsafe extern "C" {
        fn on_exit(act: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    }
    // SAFETY: declared as the C library (glibc) has it; a function stays where it is.
    unsafe { on_exit(act, null_mut()) };
}

/// Has this process end at once when its program has come to its end, with the program's code:
/// nothing that was registered so far runs then, nor what libraries do when they are unloaded.
pub(super) fn end_without_ado() {
    extern "C" fn end(code: c_int, _: *mut c_void) {
        flush_and_exit(code)
    }
    at_exit(end);
}

/// Ends this process with what C code of the program has printed; no handler runs.
pub(super) fn flush_and_exit(code: i32) -> ! {
    // SAFETY: a null pointer means all streams.
    unsafe { libc::fflush(null_mut()) };
    exit(code)
}

/// Has a signal do to this thread's process what it does by default.
fn expose_to(signal: i32) {
    let mut only = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set; no handler is set but the default.
    unsafe {
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), signal);
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, only.as_ptr(), null_mut());
    }
}

/// Ends this process in this many seconds, whatever it does then.
pub(super) fn end_within(seconds: u32) {
    expose_to(libc::SIGALRM);
    // SAFETY: touches no memory.
    unsafe { libc::alarm(seconds) };
}

/// Ends this process by a signal, as if it had been meant for it; without leaving a core file.
pub(super) fn end_by(signal: i32) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is valid for reading.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    expose_to(signal);
    // SAFETY: touches no memory.
    unsafe { libc::raise(signal) };
    // The signal does not end a process by default.
    exit(128 + signal)
}

/// Introduces this process to its `PMIx` server and takes leave of it, by means of a library
/// (`None`: whichever are loaded) in which the two functions have these names.
///
/// # Errors
///
/// The library lacks them, or they fail.
pub(super) fn visit_pmix(library: Option<&Path>, init: &str, finalize: &str) -> Result<(), String> {
    type Init = unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> c_int;
    type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;
    let name = |text: &str| CString::new(text).map_err(|_| format!("{text:?} is no name"));
    let file = library.map(|path| name(&path.to_string_lossy())).transpose()?;
    let file = file.as_ref().map_or(null::<c_char>(), |file| file.as_ptr());
    let names = [name(init)?, name(finalize)?];
    // SAFETY: a null pointer stands for the program itself. Libraries that MPI's own process has
    // loaded do in this one, at loading, what they did there.
    let handle = unsafe { libc::dlopen(file, libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err("the library cannot be loaded".to_owned());
    }
    // SAFETY: the handle was just made, and the names are C strings.
    let found = names.each_ref().map(|name| unsafe { libc::dlsym(handle, name.as_ptr()) });
    if found.iter().any(|function| function.is_null()) {
        return Err(format!("{init} is not in it"));
    }
    // At least the size of a `pmix_proc_t`: 256 bytes of a name, and a rank.
    let mut who = [0u64; 128];
    // SAFETY: these are the signatures of PMIx 2 to 5; `who` outlives the calls; null and 0 stand
    // for no further wishes.
    let codes = unsafe {
        let start = std::mem::transmute::<*mut c_void, Init>(found[0]);
        let end = std::mem::transmute::<*mut c_void, Finalize>(found[1]);
        let started = start(who.as_mut_ptr().cast(), null_mut(), 0);
        [started, if started == 0 { end(null(), 0) } else { 0 }]
    };
    if codes == [0, 0] { Ok(()) } else { Err(format!("it answers {codes:?}")) }
}

/// Maps a file for the rest of this process's life, as MPI libraries map what they share.
#[cfg(test)]
pub(super) fn map(path: &Path) -> io::Result<()> {
    let file = std::fs::File::options().read(true).write(true).open(path)?;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which no code touches.
    let at = unsafe { libc::mmap(null_mut(), 1, both, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has a function of the calling crate run before `main`, in every program that contains that
/// crate. There is one thread then, and nothing may panic.
///
/// The system calls what is in the section `.init_array`; there is no way to say so without the
/// word `unsafe`, and this macro has it so that no other crate needs to.
#[macro_export]
macro_rules! before_main {
    ($function:path) => {
        const _: () = {
            #[used]
            #[unsafe(link_section = ".init_array")]
            static RUN_BEFORE_MAIN: extern "C" fn() = run_before_main;

            extern "C" fn run_before_main() {
                $function();
            }
        };
    };
}
