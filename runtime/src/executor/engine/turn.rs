//! The engine, and what one turn does.

use super::boards::EngineBoards;
use super::failure::JobError;
use super::host::{EngineHost, EngineState, Results};
use super::send_queue::SendQueue;
use super::site::{EngineSite, Outgoing};
use crate::array::Array;
use crate::error::TaskError;
use crate::executor::task::start::{Effort, Fill};
use crate::numbered::Numbered;
use crate::protocol::{Leaving, Message, Need, Node, Phase, Pool, Statistics};
use crate::transport::link::{LinkCounters, LinkError, Progress, Silence};
use crate::transport::{Connections, Lane, LaneError, Port};
use crate::wire;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::Pe;

/// A turn sends at most this number of the things that workers left. Workers may leave them as fast
/// as a turn takes them, while received frames and timers wait.
const OUTGOING_PER_TURN: usize = 1024;

/// What one turn did.
#[derive(Default)]
pub struct Turn {
    /// Whether a message, or a part of a long one, was received or sent.
    pub something_happened: bool,
    /// The number of frames that the lane has taken.
    pub frames_sent: u64,
    /// Whether a long message is partly received or sent.
    pub is_streaming: bool,
    /// Whether tasks or results arrived.
    pub work_came: bool,
    /// When the next turn is due at the latest; `None` if nothing is due.
    pub due: Option<Duration>,
}

/// Protocol, port and futures.
pub struct Engine<S: EngineSite> {
    pub(crate) node: Node,
    pub(crate) port: Port,
    pub(crate) state: EngineState<S>,
    /// The lane to go over to when the port's cannot be trusted any more.
    pub(crate) fallback: Option<Box<dyn Lane>>,
    pub(crate) leaving: Leaving,
    /// When to look next whether others have gone over to the fallback lane.
    pub(crate) check_fallback_at: Duration,
    /// Whether the last turn only moved messages.
    has_only_moved: bool,
}

impl<S: EngineSite> Engine<S> {
    /// The engine of PE `me`. It goes over to `fallback`, if there is one, when the port's lane
    /// cannot be trusted any more. The pool is shared with the PE's workers.
    pub fn new(
        me: Pe,
        node: Node,
        port: Port,
        fallback: Option<Box<dyn Lane>>,
        pool: Pool<S::Shelf>,
        seed: u64,
    ) -> Self {
        let state = EngineState {
            me,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            pool,
            futures: Numbered::default(),
            last_future: 0,
            send_queue: SendQueue::default(),
            boards: None,
            results: Vec::new(),
            tasks_came: false,
            took_fork: false,
            effort: Effort::Brief,
            to_pack_later: None,
            failure: None,
        };
        Engine {
            node,
            port,
            state,
            fallback,
            leaving: Leaving::default(),
            check_fallback_at: Duration::ZERO,
            has_only_moved: false,
        }
    }

    /// Lets tasks be taken from the boards of this host.
    pub(crate) fn use_boards(&mut self, boards: EngineBoards) {
        self.state.boards = Some(boards);
    }

    /// What has been counted so far.
    pub fn statistics(&self) -> Statistics {
        let boards = self.state.boards.as_ref().map_or(0, EngineBoards::open);
        Statistics { boards, ..self.node.statistics().clone() }
    }

    /// Whether everything that this PE sent has arrived.
    fn is_idle(&mut self) -> bool {
        self.state.send_queue.is_empty() && self.port.is_idle()
    }

    /// Whether this PE may go.
    pub fn may_leave(&mut self) -> bool {
        let is_idle = self.is_idle();
        self.leaving.may_leave(&self.node, is_idle)
    }

    /// The PEs from which an answer is missing, while this one waits to leave.
    pub(crate) fn unanswered(&self) -> Vec<Pe> {
        self.port.unanswered()
    }

    /// Whether this PE leaves without an answer of the others.
    pub(crate) fn leaves_unanswered(&self) -> bool {
        self.leaving.leaves_unanswered()
    }

    /// Leaves at once, as there is nothing to wait for.
    pub(crate) fn leave_unanswered(&mut self, pe: &Arc<S>) {
        let Engine { node, state, leaving, .. } = self;
        leaving.leave_unanswered(node, &mut EngineHost { state, pe });
    }

    /// Takes leave when the job has ended and there is nothing to wait for any more.
    fn take_leave(&mut self, pe: &Arc<S>, now: Duration) {
        let Engine { node, port, state, leaving, .. } = self;
        if node.phase() == Phase::Running {
            // The port is not asked then: that looks at each peer.
            return;
        }
        port.hasten(now);
        let is_sent = state.send_queue.is_empty();
        let is_idle = is_sent && port.is_idle();
        let has_reached = |pes| is_sent && port.has_reached(pes);
        leaving.try_take_leave(node, now, is_idle, has_reached, &mut EngineHost { state, pe });
    }

    /// Takes one turn: sends what waits, receives what has arrived, and fishes if needed. `now` is
    /// the time since any fixed moment, and must not go back.
    ///
    /// If messages have moved, all else is left to the next turn: so what has come is handled, and
    /// what is to go leaves, sooner. The driver takes that one at once, and a worker after the next
    /// task at which one is due. (A placed task there and back took 3.7
    /// µs, and takes 3.2.)
    ///
    /// # Errors
    ///
    /// This PE cannot go on in the job.
    pub fn turn(
        &mut self,
        pe: &Arc<S>,
        now: Duration,
        need: Need,
        effort: Effort,
    ) -> Result<Turn, JobError> {
        self.state.effort = effort;
        self.handle_failures(pe, now)?;
        self.check_fallback(pe, now);
        let sent_before = self.port.frames_sent();
        self.take_outgoing(pe);
        self.node.note_need(need);
        if let Some(boards) = &mut self.state.boards {
            boards.note_short_tasks(pe.has_short_tasks());
        }
        let (packets, polled) = self.receive(pe, now);
        let is_streaming = match polled {
            Ok(progress) => progress.is_streaming,
            Err(error) => {
                self.handle_port_error(pe, error)?;
                false
            }
        };
        let mut something_happened = self.send_queued(pe, now)? || packets > 0 || is_streaming;
        self.has_only_moved = something_happened && !self.has_only_moved;
        let mut due = Some(now);
        if !self.has_only_moved {
            let (has_acted, next) = self.look_after_all_else(pe, now, need)?;
            something_happened |= has_acted;
            due = next;
        }
        pe.note_away(self.state.futures.len());
        let work_came =
            std::mem::take(&mut self.state.tasks_came) || !self.state.results.is_empty();
        let frames_sent = self.port.frames_sent() - sent_before;
        Ok(Turn { something_happened, frames_sent, is_streaming, work_came, due })
    }

    /// What a turn does beside moving messages. Returns whether it did something, and when the next
    /// turn is due.
    fn look_after_all_else(
        &mut self,
        pe: &Arc<S>,
        now: Duration,
        need: Need,
    ) -> Result<(bool, Option<Duration>), JobError> {
        let fishing_due = self.node.tick(now, need, &mut EngineHost { state: &mut self.state, pe });
        self.take_leave(pe, now);
        self.report_silences(pe);
        let boards = self.state.boards.as_mut();
        let has_used_boards = boards.is_some_and(|boards| {
            self.state.failure = self.state.failure.take().or_else(|| boards.take_failure());
            boards.take_used()
        });
        let is_running = self.node.phase() == Phase::Running;
        // Once the job is ending, all that counts is that every PE hears of it.
        if let Some(failure) = self.state.failure.take().filter(|_| is_running) {
            return Err(failure);
        }
        let sent = self.send_queued(pe, now)?;
        let more = (!pe.outbox().is_empty()).then_some(now);
        let due = [fishing_due, self.port.next_deadline(), more].into_iter().flatten().min();
        Ok((sent || has_used_boards, due))
    }

    /// Takes what threads have left, or a part of it if that is much.
    fn take_outgoing(&mut self, pe: &Arc<S>) {
        let Engine { node, state, .. } = self;
        let host = &mut EngineHost { state, pe };
        for _ in 0..OUTGOING_PER_TURN {
            let Some(outgoing) = pe.outbox().pop() else { break };
            match outgoing {
                Outgoing::Tell(pes, body) => node.tell(pes, body, host),
                Outgoing::Cancel(futures) => {
                    host.state.cancel(&futures);
                    node.cancel(futures, host);
                    // They may be thousands, and so may those of the next entry.
                    break;
                }
                // While the job ends, no one waits for a straggling task's messages.
                outgoing if node.phase() != Phase::Running => {
                    let future = outgoing.into_future();
                    let ended = future.map(|future| (future, Err(TaskError::ShuttingDown)));
                    host.state.results.extend(ended);
                }
                Outgoing::Message(to, message) => host.state.send_queue.push(to, message),
                Outgoing::Task(to, task) => {
                    let Some(parcel) = host.state.add_future(pe.slot(), task) else { continue };
                    node.place(to, parcel, host);
                }
                Outgoing::Ask(to, task) => {
                    let Some(parcel) = host.state.add_future(pe.slot(), task) else { continue };
                    node.ask(to, parcel, host);
                }
                Outgoing::Stolen(fish, task) => match host.state.add_future(pe.slot(), task) {
                    Some(parcel) => node.hand_over(&fish, parcel, host),
                    // The thief may get another task.
                    None => host.state.send_queue.push(host.state.me, Message::Fish(fish)),
                },
            }
        }
    }

    /// Receives what has arrived. Returns the number of packets.
    fn receive(&mut self, pe: &Arc<S>, now: Duration) -> (u32, Result<Progress, LinkError>) {
        let Engine { node, port, state, .. } = self;
        let mut packets = 0;
        let polled = port.poll(now, &mut |from, packet, array| {
            packets += 1;
            let mut host = EngineHost { state: &mut *state, pe };
            if let Err(error) = handle_packet(node, &mut host, now, from, packet, array) {
                state.failure = Some(error);
            }
        });
        (packets, polled)
    }

    /// Goes on after an error of the port, if possible.
    fn handle_port_error(&mut self, pe: &Arc<S>, error: LinkError) -> Result<(), JobError> {
        match error {
            LinkError::Lane(LaneError::HasLeft(_)) if self.node.phase() != Phase::Running => Ok(()),
            // Only the failure detector says which PE is dead.
            LinkError::Lane(LaneError::HasLeft(other)) if pe.liveness().suspect(other) => Ok(()),
            LinkError::Lane(LaneError::HasLeft(other)) if other == pe.liveness().root() => {
                // The root needs no PE any more, and did not wait for this one to hear of the end.
                self.node.end(&mut EngineHost { state: &mut self.state, pe });
                self.leave_unanswered(pe);
                Ok(())
            }
            LinkError::Lane(error) if self.try_fail_over(pe, &error) => Ok(()),
            source => Err(JobError::Link { me: self.state.me, source }),
        }
    }

    /// Has the failure detector check PEs that acknowledge nothing; only the detector says which PE
    /// is dead. Without a detector, PEs are threads of one process: they may be slow, but none is
    /// lost.
    fn report_silences(&mut self, pe: &Arc<S>) {
        for Silence { pe: silent, lasting } in self.port.take_silences() {
            tracing::debug!(pe = self.state.me.number(), ?lasting, "{silent} acknowledges nothing");
            pe.liveness().suspect(silent);
            if self.fallback.is_none() && lasting > pe.patience() {
                tracing::warn!(
                    pe = self.state.me.number(),
                    "{silent} lives and acknowledges nothing: its connection is made anew"
                );
                self.port.reconnect(silent);
            }
        }
        if self.port.take_stuck() && self.fallback.is_some() {
            let lane = self.port.lane_name();
            tracing::warn!(
                pe = self.state.me.number(),
                "the lane {lane} carries nothing: it is left"
            );
            pe.abandon_mpi();
            self.fail_over(pe);
        }
    }

    /// Hands queued messages to the port, as far as it has room. Returns whether it took any.
    fn send_queued(&mut self, pe: &Arc<S>, now: Duration) -> Result<bool, JobError> {
        if self.state.send_queue.is_empty()
            || !self.state.send_queue.post(self.state.me, &mut self.port)?
        {
            return Ok(false);
        }
        self.port.flush(now).or_else(|error| self.handle_port_error(pe, error))?;
        Ok(true)
    }

    /// The connections of the lane, and of the fallback lane.
    pub(crate) fn connections(&self) -> Connections {
        let waiting = self.fallback.as_ref().map(|lane| lane.connections());
        self.port.connections() + waiting.unwrap_or_default()
    }

    /// The port's counters.
    pub fn link_counters(&self) -> LinkCounters {
        self.port.counters()
    }

    /// The number of living PEs with which this one has exchanged messages.
    pub fn peers(&self) -> usize {
        self.port.peers()
    }

    /// Begins the end of the job, on the root.
    pub fn end(&mut self, pe: &Arc<S>) {
        self.node.end(&mut EngineHost { state: &mut self.state, pe });
    }

    /// Tells the root that this PE cannot go on, if that can still be told.
    pub(crate) fn give_up(&mut self, pe: &Arc<S>, error: &JobError, now: Duration) {
        let (reason, root) = (error.to_string(), pe.liveness().root());
        if self.state.me != root && !error.leaves_silently() {
            self.state.send_queue.push(root, Message::Failed { reason });
        }
        // The turn has not come to that. If the lane itself is what broke, others will notice.
        let _ = self.send_queued(pe, now);
    }

    /// Takes the results that have arrived, in exchange for an empty list.
    pub fn take_results(&mut self, empty: Results) -> Results {
        std::mem::replace(&mut self.state.results, empty)
    }

    /// Takes large arrays that are not needed any more. The caller drops them after the lock.
    pub fn take_discarded(&mut self) -> Vec<Array> {
        self.port.take_discarded()
    }

    /// The futures whose tasks are on other PEs, when this PE has left: no result will arrive.
    pub(crate) fn into_futures(self) -> impl Iterator<Item = Arc<dyn Fill>> {
        self.state.futures.into_values()
    }
}

/// Has the node handle the messages in a packet, of which the first has the array.
fn handle_packet<S: EngineSite>(
    node: &mut Node,
    host: &mut EngineHost<'_, S>,
    now: Duration,
    from: Pe,
    mut packet: &[u8],
    mut array: Option<Array>,
) -> Result<(), JobError> {
    let me = host.state.me;
    loop {
        let message = wire::decode_first::<Message>(&mut packet);
        let mut message = message.map_err(|source| JobError::Message { me, from, source })?;
        let is_whole = array.take().is_none_or(|array| message.put_array(array));
        if is_whole && message.is_of_a_job_of(host.pe.topology().pes()) {
            node.handle(now, from, message, host);
        } else {
            host.state.failure = Some(JobError::Nonsense { me, from });
        }
        if packet.is_empty() {
            return Ok(());
        }
    }
}
