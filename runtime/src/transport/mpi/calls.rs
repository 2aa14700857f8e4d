//! The calls of MPI, and nothing else.
//!
//! Sends and receives are non-blocking; no call waits by design. After a process has died, a call
//! may hang all the same. One receive, for a frame from any PE, is posted while frames are looked
//! for. (A step of a stencil without work, two PEs of one host, MPICH: 1 to 5 % less time in the
//! median than with `MPI_Improbe`, 4 to 12 % in the lower quartile.)
#![allow(unsafe_code)]

use super::queues::FrameQueues;
use super::{FRAME_BYTES_MAX, FRAME_BYTES_OF_MPICH, ROUND_BYTES_MAX, ROUND_FRAMES_MAX};
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

/// Nothing more is received while frames wait for a poll in buffers of this many bytes.
const INCOMING_BYTES_MAX: usize = 8 << 20;

/// A cancelled receive is tested this often at most. It ends with the first test, or the second.
const CANCELLED_TESTS_MAX: u32 = 1000;

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
    /// The receive that is posted, once one is.
    posted: Option<ffi::MPI_Request>,
    /// Where MPI writes what it receives. It is touched only while no receive is posted. From the
    /// first one on it has room for the longest frame.
    received: Vec<u8>,
    /// The longest frame that any PE sends, in bytes.
    frame_bytes_max: usize,
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
        let (comm, sends, received) = (ManuallyDrop::new(comm), Vec::new(), Vec::new());
        let is_on_one_host = topology.is_on_one_host();
        let frame_bytes_max = if is_on_one_host { FRAME_BYTES_OF_MPICH } else { FRAME_BYTES_MAX };
        Ok(MpiCalls { comm, topology, sends, posted: None, received, frame_bytes_max, queues })
    }

    /// Takes back the buffers of completed sends. Returns whether the lane has room for a PE again
    /// for which it had none.
    fn complete_sends(&mut self) -> Result<bool, LaneError> {
        // All sends: a PE that takes nothing must not delay frames for other PEs.
        let (mut next, mut has_room_again) = (0, false);
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
            has_room_again |= self.queues.has_left(send.to, send.frame);
        }
        Ok(has_room_again)
    }

    /// Posts the receive for the next frame.
    fn post(&mut self) -> Result<(), LaneError> {
        let mut request = MaybeUninit::uninit();
        self.received.clear();
        self.received.reserve(self.frame_bytes_max);
        // SAFETY: the buffer has room for as much as is said. Until the request is complete it is
        // not touched, and if it never is, the buffer is not freed.
        check("MPI_Irecv", unsafe {
            ffi::MPI_Irecv(
                self.received.as_mut_ptr().cast(),
                self.frame_bytes_max as c_int,
                ffi::RSMPI_UINT8_T,
                ffi::RSMPI_ANY_SOURCE,
                TAG,
                self.comm.as_raw(),
                request.as_mut_ptr(),
            )
        })?;
        // SAFETY: `MPI_Irecv` succeeded and wrote the request.
        self.posted = Some(unsafe { request.assume_init() });
        Ok(())
    }

    /// What the posted receive has received, once it has ended.
    fn test_posted(&mut self) -> Result<Option<ffi::MPI_Status>, LaneError> {
        let Some(mut request) = self.posted.take() else { return Ok(None) };
        let mut done = 0;
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        // SAFETY: the request came from `MPI_Irecv` and was not completed before: after this call
        // it is posted again only if it is not complete.
        check("MPI_Test", unsafe {
            ffi::MPI_Test(&raw mut request, &raw mut done, status.as_mut_ptr())
        })?;
        if done == 0 {
            self.posted = Some(request);
            return Ok(None);
        }
        // SAFETY: `done` says that the status was written.
        Ok(Some(unsafe { status.assume_init() }))
    }

    /// Receives the next frame, if there is one. Returns its length.
    fn receive(&mut self) -> Result<Option<usize>, LaneError> {
        if self.posted.is_none() {
            self.post()?;
        }
        let Some(status) = self.test_posted()? else { return Ok(None) };
        let mut count = 0;
        // SAFETY: the status belongs to a message.
        check("MPI_Get_count", unsafe {
            ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut count)
        })?;
        let bytes = usize::try_from(count).ok().filter(|bytes| *bytes <= self.frame_bytes_max);
        let Some(bytes) = bytes else {
            let message = format!("{count} is no number of bytes that was asked for");
            return Err(LaneError::Mpi { call: "MPI_Get_count", message });
        };
        let mut frame = std::mem::replace(&mut self.received, self.queues.buffer());
        // SAFETY: MPI has written this many bytes, and the buffer has room for them.
        unsafe { frame.set_len(bytes) };
        let from = self.topology.pe_of(status.MPI_SOURCE as u32);
        self.queues.incoming.push((from, frame));
        Ok(Some(bytes))
    }

    /// Takes back the receive that is posted.
    fn cancel_posted(&mut self) -> Result<(), LaneError> {
        let Some(request) = &mut self.posted else { return Ok(()) };
        // SAFETY: the request came from `MPI_Irecv` and was not completed before.
        check("MPI_Cancel", unsafe { ffi::MPI_Cancel(&raw mut *request) })?;
        for _ in 0..CANCELLED_TESTS_MAX {
            if self.test_posted()?.is_some() {
                break;
            }
        }
        Ok(())
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
        let (mut received, mut bytes) = (0, 0);
        while received < ROUND_FRAMES_MAX
            && bytes < ROUND_BYTES_MAX
            && let Some(more) = self.receive()?
        {
            received += 1;
            bytes += more;
        }
        // Frames that have arrived do not wait for that, unless they keep coming.
        if received == 0 || self.sends.len() >= SENDS_UNTESTED_MAX {
            moved |= self.complete_sends()?;
        }
        Ok(moved || received > 0)
    }
}

impl Pump for MpiCalls {
    fn pump(&mut self) -> bool {
        let has_failed = self.queues.has_failed.load(Ordering::Relaxed);
        if has_failed || self.queues.incoming.len() >= INCOMING_BYTES_MAX / self.frame_bytes_max {
            return false;
        }
        self.round().unwrap_or_else(|error| {
            let mut failure = self.queues.failure();
            failure.get_or_insert(error);
            self.queues.has_failed.store(true, Ordering::Release);
            true
        })
    }

    fn end(&mut self) {
        // MPI may complain of a receive that is still posted when it is finalised.
        if let Err(error) = self.cancel_posted() {
            tracing::warn!("{error}");
        }
    }
}

impl Drop for MpiCalls {
    fn drop(&mut self) {
        // MPI may still use these buffers, so they are leaked. MPI is not called: it may be
        // finalised already.
        self.sends.drain(..).for_each(|send| std::mem::forget(send.frame));
        std::mem::forget(std::mem::take(&mut self.received));
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
