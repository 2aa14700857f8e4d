//! The calls of MPI, and nothing else.
//!
//! Sends are non-blocking, and receives are matched by `MPI_Improbe`; no call waits by design.
//! After a process has died, a call may hang all the same.
#![allow(unsafe_code)]

use super::queues::FrameQueues;
use crate::transport::error::LaneError;
use crate::transport::lane::Pump;
use mpi::ffi;
use mpi::raw::{AsRaw, FromRaw};
use mpi::topology::SimpleCommunicator;
use std::ffi::c_int;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_topology::{Pe, Topology};

/// The most frames that one round receives.
const PUMP_FRAMES_MAX: usize = 64;

/// Nothing more is received while this many frames wait for a poll.
const INCOMING_FRAMES_MAX: usize = 1024;

/// This program sends no longer frame, in bytes; a longer one is not received.
const RECEIVED_BYTES_MAX: usize = 1 << 20;

/// A probe that finds nothing may have taken in a message that only the next probe finds. (MPICH
/// over shared memory, tasks of 100 µs: with the second probe 31,000 steals in 4 s, without 7,000.)
const PROBES_IN_VAIN_MAX: u32 = 2;

/// With this number of sends that may be complete, they are looked at even if frames arrive.
const SENDS_UNTESTED_MAX: usize = 16;

/// The tag of all messages of the lane.
const TAG: c_int = 0x0F15;

/// The lane's [`Pump`].
pub(super) struct MpiCalls {
    /// Never freed: that would be collective, and finalising MPI frees it anyway.
    comm: ManuallyDrop<SimpleCommunicator>,
    /// Knows which PE has which rank.
    topology: Arc<Topology>,
    /// Sends that MPI has not completed yet.
    sends: Vec<PendingSend>,
    queues: Arc<FrameQueues>,
}

/// A copy of a communicator that is being made (`MPI_Comm_idup`). All processes of the communicator
/// must ask for it.
pub struct CommDup {
    comm: Box<ffi::MPI_Comm>,
    request: ffi::MPI_Request,
}

impl CommDup {
    /// Asks for a copy.
    ///
    /// # Errors
    /// MPI refuses it.
    pub fn begin(of: &SimpleCommunicator) -> Result<Self, LaneError> {
        // SAFETY: the constant is the library's own.
        let mut comm = Box::new(unsafe { ffi::RSMPI_COMM_NULL });
        let mut request = MaybeUninit::uninit();
        // SAFETY: the communicator is valid. The new one is written into the box, which is neither
        // moved out of nor freed before the request is complete.
        check("MPI_Comm_idup", unsafe {
            ffi::MPI_Comm_idup(of.as_raw(), &raw mut *comm, request.as_mut_ptr())
        })?;
        // SAFETY: `MPI_Comm_idup` succeeded and wrote the request.
        Ok(CommDup { comm, request: unsafe { request.assume_init() } })
    }

    /// The copy, once it is made, and only once; `None` before and after that. Does not wait.
    ///
    /// # Errors
    /// MPI failed.
    pub fn poll(&mut self) -> Result<Option<SimpleCommunicator>, LaneError> {
        let mut done = 0;
        // SAFETY: the request came from `MPI_Comm_idup`, or was completed and so is null, which may
        // be tested as well; the status may be ignored.
        check("MPI_Test", unsafe {
            ffi::MPI_Test(&raw mut self.request, &raw mut done, ffi::RSMPI_STATUS_IGNORE)
        })?;
        // SAFETY: the constant is the library's own.
        let nothing = unsafe { ffi::RSMPI_COMM_NULL };
        let comm = if done == 0 { nothing } else { std::mem::replace(&mut *self.comm, nothing) };
        // SAFETY: the request is complete, so this is a communicator, and it was taken out of its
        // place.
        Ok((comm != nothing).then(|| unsafe { SimpleCommunicator::from_raw(comm) }))
    }
}

/// MPI may still write to the box of a copy that was given up, so the box is leaked.
impl Drop for CommDup {
    fn drop(&mut self) {
        // SAFETY: the constant is the library's own.
        let nothing = unsafe { ffi::RSMPI_COMM_NULL };
        std::mem::forget(std::mem::replace(&mut self.comm, Box::new(nothing)));
    }
}

struct PendingSend {
    request: ffi::MPI_Request,
    to: Pe,
    /// MPI reads from it until the request is complete. Until then it is not touched.
    frame: Vec<u8>,
}

// SAFETY: MPI handles are names (numbers or pointers to the library's own objects), which any
// thread may use when MPI was initialised for several threads; `new` demands that.
unsafe impl Send for MpiCalls {}

impl MpiCalls {
    /// Over a communicator that nothing else uses, with the launcher's ranks.
    pub(super) fn new(
        comm: SimpleCommunicator,
        topology: Arc<Topology>,
        queues: Arc<FrameQueues>,
    ) -> Result<Self, LaneError> {
        assert!(
            mpi::environment::threading_support() >= mpi::Threading::Serialized,
            "the launch asks MPI for serialised threads and checks what it gets"
        );
        // SAFETY: the communicator is valid; the handler is one of the library's constants.
        check("MPI_Comm_set_errhandler", unsafe {
            ffi::MPI_Comm_set_errhandler(comm.as_raw(), ffi::RSMPI_ERRORS_RETURN)
        })?;
        Ok(MpiCalls { comm: ManuallyDrop::new(comm), topology, sends: Vec::new(), queues })
    }

    /// Takes back the buffers of completed sends.
    fn complete_sends(&mut self) -> Result<(), LaneError> {
        // All sends: a PE that takes nothing must not delay frames for other PEs.
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
            self.queues.has_left(send.to, send.frame);
        }
        Ok(())
    }

    /// Receives the next frame, if there is one.
    fn receive(&self) -> Result<bool, LaneError> {
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
            return Ok(false);
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
        let mut frame = self.queues.buffer();
        frame.reserve(bytes);
        // SAFETY: the buffer has room for `count` bytes, and the message is received once. The
        // message is eager, so that it is here as a whole and this does not wait.
        check("MPI_Mrecv", unsafe {
            ffi::MPI_Mrecv(
                frame.as_mut_ptr().cast(),
                count,
                ffi::RSMPI_UINT8_T,
                &raw mut message,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })?;
        // SAFETY: `MPI_Mrecv` wrote this many bytes, for which there was room.
        unsafe { frame.set_len(bytes) };
        let from = self.topology.pe_of(status.MPI_SOURCE as u32);
        self.queues.incoming.push((from, frame));
        Ok(true)
    }

    /// Hands a frame to MPI.
    fn send(&mut self, to: Pe, frame: Vec<u8>) -> Result<(), LaneError> {
        let mut request = MaybeUninit::uninit();
        // SAFETY: the buffer moves into `sends` and is neither changed nor freed before the
        // request is complete (moving the `Vec` leaves its heap memory where it is).
        check("MPI_Isend", unsafe {
            ffi::MPI_Isend(
                frame.as_ptr().cast(),
                frame.len() as c_int,
                ffi::RSMPI_UINT8_T,
                self.topology.rank_of(to) as c_int,
                TAG,
                self.comm.as_raw(),
                request.as_mut_ptr(),
            )
        })?;
        // SAFETY: `MPI_Isend` succeeded and wrote the request.
        let request = unsafe { request.assume_init() };
        self.sends.push(PendingSend { request, to, frame });
        Ok(())
    }

    /// Sends frames that wait, and receives frames that have arrived.
    fn round(&mut self) -> Result<bool, LaneError> {
        let mut moved = false;
        while let Some((to, frame)) = self.queues.outgoing.pop() {
            self.send(to, frame)?;
            moved = true;
        }
        let (mut received, mut vain) = (0, 0);
        while received < PUMP_FRAMES_MAX && vain < PROBES_IN_VAIN_MAX {
            if self.receive()? {
                (received, vain) = (received + 1, 0);
            } else {
                vain += 1;
            }
        }
        // Frames that have arrived do not wait for that, unless they keep coming.
        if received == 0 || self.sends.len() >= SENDS_UNTESTED_MAX {
            self.complete_sends()?;
        }
        Ok(moved || received > 0)
    }
}

impl Pump for MpiCalls {
    fn pump(&mut self) -> bool {
        if self.queues.incoming.len() >= INCOMING_FRAMES_MAX {
            return false;
        }
        self.round().unwrap_or_else(|error| {
            let mut failure = self.queues.failure();
            failure.get_or_insert(error);
            self.queues.has_failed.store(true, Ordering::Release);
            true
        })
    }
}

impl Drop for MpiCalls {
    fn drop(&mut self) {
        // MPI may still read from these buffers, so they are leaked. MPI is not called: it may be
        // finalised already.
        self.sends.drain(..).for_each(|send| std::mem::forget(send.frame));
    }
}

/// The error that a return code stands for, if it is one.
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
