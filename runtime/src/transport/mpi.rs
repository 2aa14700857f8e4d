//! Frames as MPI messages.
//!
//! Only small messages are sent (at most 4 KiB), which every MPI library sends eagerly: they
//! need nothing from the receiver to complete, so that no PE ever waits for another inside MPI.
//! Sends are non-blocking, receives matched by `MPI_Improbe`; nothing here waits.
//!
//! MPI is to be initialised with `MPI_THREAD_SERIALIZED` or better: whoever holds the lane may
//! call, one at a time. `&mut self` everywhere sees to that.
#![allow(unsafe_code)]

use super::{Lane, LaneError, Sleeper};
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::{Communicator, SimpleCommunicator};
use std::ffi::c_int;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use ultramarine_topology::Pe;

/// The longest frame, in bytes. MPICH sends 8 KiB and more eagerly, Open MPI through shared memory
/// 4 KiB with its own header.
const FRAME_BYTES_MAX: usize = (4 << 10) - 64;

/// A frame longer than this was not sent by this program, and is not received.
const RECEIVED_BYTES_MAX: usize = 1 << 20;

/// Sends towards one PE that MPI has not completed; the next frame waits.
const SENDS_PER_PEER_MAX: u32 = 64;

/// A probe that finds nothing may have taken a message in that only the next probe finds. (MPICH
/// over shared memory, tasks of 100 µs: with the second probe 31,000 steals in 4 s, without 7,000.)
const PROBES_IN_VAIN_MAX: u32 = 2;

/// Buffers kept for the next sends.
const SPARE_BUFFERS_MAX: usize = 64;

/// Frames that one poll delivers.
const FRAMES_PER_POLL_MAX: usize = 64;

/// Tells our messages from others on the communicator.
const TAG: c_int = 0x0F15;

/// The lane of a job that MPI connects.
pub struct MpiLane {
    /// Never freed: that would be collective, and finalising MPI frees it anyway.
    comm: ManuallyDrop<SimpleCommunicator>,
    /// Sends that MPI has not completed yet.
    sends: Vec<PendingSend>,
    /// How many of those go to each PE.
    sends_to: Vec<u32>,
    /// Buffers for the next sends.
    spare: Vec<Vec<u8>>,
    received: Vec<u8>,
    alarm: Arc<Alarm>,
}

struct PendingSend {
    request: ffi::MPI_Request,
    to: Pe,
    /// What MPI reads from until the request is complete. Never touched before.
    frame: Vec<u8>,
}

// SAFETY: MPI handles are names (numbers or pointers to the library's own objects), which any
// thread may use when MPI was initialised for several threads; `new` demands that.
unsafe impl Send for MpiLane {}

impl MpiLane {
    /// The lane over a communicator of its own, in which rank `i` is PE `i`.
    ///
    /// # Panics
    ///
    /// If MPI was initialised for one thread only.
    pub fn new(comm: SimpleCommunicator) -> Result<Self, LaneError> {
        assert!(
            mpi::environment::threading_support() >= mpi::Threading::Serialized,
            "the launch asks MPI for serialised threads and checks what it gets"
        );
        // SAFETY: the communicator is valid; the handler is one of the library's constants.
        check("MPI_Comm_set_errhandler", unsafe {
            ffi::MPI_Comm_set_errhandler(comm.as_raw(), ffi::RSMPI_ERRORS_RETURN)
        })?;
        let pes = comm.size() as usize;
        Ok(MpiLane {
            comm: ManuallyDrop::new(comm),
            sends: Vec::new(),
            sends_to: vec![0; pes],
            spare: Vec::new(),
            received: vec![0; FRAME_BYTES_MAX],
            alarm: Arc::default(),
        })
    }

    /// Takes back the buffers of completed sends.
    fn complete_sends(&mut self) -> Result<(), LaneError> {
        // All of them: a PE that takes nothing must not hold up what goes to others.
        let mut next = 0;
        while let Some(send) = self.sends.get_mut(next) {
            let mut done = 0;
            // SAFETY: the request came from `MPI_Isend` and was not completed before, since it
            // is still among the sends; the status may be ignored.
            check("MPI_Test", unsafe {
                ffi::MPI_Test(&raw mut send.request, &raw mut done, ffi::RSMPI_STATUS_IGNORE)
            })?;
            if done == 0 {
                next += 1;
                continue;
            }
            let send = self.sends.swap_remove(next);
            self.sends_to[send.to.index()] -= 1;
            if self.spare.len() < SPARE_BUFFERS_MAX {
                self.spare.push(send.frame);
            }
        }
        Ok(())
    }

    /// Receives the next frame into `received`: from whom, and how long.
    fn receive(&mut self) -> Result<Option<(Pe, usize)>, LaneError> {
        let mut found = 0;
        let mut message = MaybeUninit::uninit();
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        // SAFETY: all out-parameters are valid for writing.
        check("MPI_Improbe", unsafe {
            ffi::MPI_Improbe(
                ffi::RSMPI_ANY_SOURCE,
                TAG,
                self.comm.as_raw(),
                &raw mut found,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            )
        })?;
        if found == 0 {
            return Ok(None);
        }
        // SAFETY: `found` says that message and status were written.
        let (mut message, status) = unsafe { (message.assume_init(), status.assume_init()) };
        let mut count = 0;
        // SAFETY: the status belongs to a message.
        check("MPI_Get_count", unsafe {
            ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut count)
        })?;
        let bytes = usize::try_from(count).unwrap_or(usize::MAX);
        if bytes > RECEIVED_BYTES_MAX {
            return Err(LaneError::FrameTooLong { bytes, limit: RECEIVED_BYTES_MAX });
        }
        if bytes > self.received.len() {
            self.received.resize(bytes, 0);
        }
        // SAFETY: the buffer has room for `count` bytes, and the message is received once. The
        // message is eager, so that it is here as a whole and this does not wait.
        check("MPI_Mrecv", unsafe {
            ffi::MPI_Mrecv(
                self.received.as_mut_ptr().cast(),
                count,
                ffi::RSMPI_UINT8_T,
                &raw mut message,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })?;
        Ok(Some((Pe::new(status.MPI_SOURCE as u32), bytes)))
    }
}

impl Lane for MpiLane {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn frame_bytes_max(&self) -> usize {
        FRAME_BYTES_MAX
    }

    fn send(&mut self, to: Pe, frame: &[u8]) -> Result<bool, LaneError> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(LaneError::FrameTooLong { bytes: frame.len(), limit: FRAME_BYTES_MAX });
        }
        let waiting = self.sends_to.get_mut(to.index()).ok_or(LaneError::NoSuchPe(to))?;
        if *waiting >= SENDS_PER_PEER_MAX {
            return Ok(false);
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(frame);
        let mut request = MaybeUninit::uninit();
        // SAFETY: the buffer moves into `sends` and is neither changed nor freed before the
        // request is complete (moving the `Vec` leaves its heap memory where it is).
        check("MPI_Isend", unsafe {
            ffi::MPI_Isend(
                copy.as_ptr().cast(),
                copy.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to.number() as c_int,
                TAG,
                self.comm.as_raw(),
                request.as_mut_ptr(),
            )
        })?;
        *waiting += 1;
        // SAFETY: `MPI_Isend` succeeded and wrote the request.
        let request = unsafe { request.assume_init() };
        self.sends.push(PendingSend { request, to, frame: copy });
        Ok(true)
    }

    fn poll(&mut self, deliver: &mut dyn FnMut(Pe, &[u8])) -> Result<usize, LaneError> {
        self.complete_sends()?;
        let (mut delivered, mut vain) = (0, 0);
        while delivered < FRAMES_PER_POLL_MAX && vain < PROBES_IN_VAIN_MAX {
            match self.receive()? {
                None => vain += 1,
                Some((from, bytes)) => {
                    vain = 0;
                    delivered += 1;
                    deliver(from, &self.received[..bytes]);
                }
            }
        }
        Ok(delivered)
    }

    fn is_flushed(&mut self) -> bool {
        self.complete_sends().is_err() || self.sends.is_empty()
    }

    fn sleeper(&self) -> Arc<dyn Sleeper> {
        self.alarm.clone()
    }
}

impl Drop for MpiLane {
    fn drop(&mut self) {
        // Whatever MPI may still read from must stay where it is.
        let _ = self.complete_sends();
        self.sends.drain(..).for_each(|send| std::mem::forget(send.frame));
    }
}

/// MPI has nothing to sleep in: whoever sleeps here must look for messages from time to time.
#[derive(Default)]
struct Alarm {
    rung: Mutex<bool>,
    bell: Condvar,
}

impl Sleeper for Alarm {
    fn sleep(&self, at_most: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.bell.wait_timeout_while(rung, at_most, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn wake(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_one();
    }

    fn wakes_on_traffic(&self) -> bool {
        false
    }
}

/// The error that a return code stands for.
fn check(call: &'static str, code: c_int) -> Result<(), LaneError> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = vec![0u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut length = 0;
    // SAFETY: the buffer is as long as the library demands.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &raw mut length) };
    text.truncate(usize::try_from(length).unwrap_or(0));
    Err(LaneError::Mpi { call, message: String::from_utf8_lossy(&text).into_owned() })
}
