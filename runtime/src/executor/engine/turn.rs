//! The engine, and what one turn of it does.

use super::failure::JobError;
use super::host::{EngineHost, EngineState, Results};
use super::send_queue::SendQueue;
use super::site::{EngineSite, Outgoing};
use crate::array::Array;
use crate::error::TaskError;
use crate::executor::task::start::{Effort, Fill};
use crate::numbered::Numbered;
use crate::protocol::{Message, Need, Node, Phase, Pool, Statistics};
use crate::transport::link::{LinkCounters, LinkError, Silence};
use crate::transport::{Connections, Lane, LaneError, Port};
use crate::wire;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::time::Duration;
use ultramarine_topology::Pe;

/// Once somebody has died, a PE that leaves gives others so long to acknowledge what it sent them
/// last, apart from the news of the end itself, which must have arrived.
const LINGER: Duration = Duration::from_millis(50);

/// Nor does it then wait longer than this for others, which may have left in the same way: a PE
/// that missed the news hears it from goodbyes.
const LINGER_MAX: Duration = Duration::from_millis(500);

/// How much of what workers leave a turn takes at most. They may leave it as fast as a turn takes
/// it, and what has come, and the timers, are waiting.
const OUTGOING_PER_TURN: usize = 1024;

/// What a turn brought.
#[derive(Default)]
pub(crate) struct Turn {
    /// Whether a message, or a part of a long one, came or went.
    pub(crate) something_happened: bool,
    /// Whether there is more to come or to go of a long one.
    pub(crate) is_streaming: bool,
    /// Whether tasks or results came.
    pub(crate) work_came: bool,
    /// When the next turn is due at the latest, if ever.
    pub(crate) due: Option<Duration>,
}

/// Protocol and port.
pub(crate) struct Engine<S: EngineSite> {
    pub(crate) node: Node,
    pub(crate) port: Port,
    pub(crate) state: EngineState<S>,
    /// The lane to go over to when the port's cannot be trusted any more.
    pub(crate) fallback: Option<Box<dyn Lane>>,
    /// When the job's end began here.
    ending_since: Option<Duration>,
    /// Whether this PE leaves although others did not answer.
    is_let_go: bool,
    /// When to look next whether others have gone over to it.
    pub(crate) check_fallback_at: Duration,
}

impl<S: EngineSite> Engine<S> {
    pub(crate) fn new(
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
            results: Vec::new(),
            tasks_came: false,
            took_a_part: false,
            effort: Effort::Brief,
            put_off: None,
            failure: None,
        };
        Engine {
            node,
            port,
            state,
            fallback,
            ending_since: None,
            is_let_go: false,
            check_fallback_at: Duration::ZERO,
        }
    }

    pub(crate) fn statistics(&self) -> &Statistics {
        self.node.statistics()
    }

    /// Whether this PE may go.
    pub(crate) fn is_released(&mut self) -> bool {
        let needs_no_answer = self.node.has_failures() || self.is_let_go;
        self.node.phase() == Phase::Released
            && (needs_no_answer || self.state.send_queue.is_empty() && self.port.is_idle())
    }

    /// Whether this PE leaves although others did not answer.
    pub(crate) fn is_let_go(&self) -> bool {
        self.is_let_go
    }

    /// Leaves at once, as there is nothing to wait for.
    pub(crate) fn let_go(&mut self, pe: &Arc<S>) {
        self.node.let_go(&mut EngineHost { state: &mut self.state, pe });
        self.is_let_go = true;
    }

    /// Takes leave when the job has ended and there is nothing to wait for any more.
    fn take_leave(&mut self, pe: &Arc<S>, now: Duration) {
        if self.node.phase() == Phase::Running {
            return;
        }
        let since = *self.ending_since.get_or_insert(now);
        // After a death others may have left already, and acknowledge nothing any more.
        let has_failures = self.node.has_failures();
        let has_lingered = has_failures && now >= since + LINGER;
        if has_failures && now >= since + LINGER_MAX {
            self.let_go(pe);
        } else if self.state.send_queue.is_empty()
            && (self.port.is_idle() || has_lingered && self.port.has_reached(self.node.children()))
        {
            self.node.take_leave(&mut EngineHost { state: &mut self.state, pe });
        }
    }

    /// Sends what waits to be sent, takes in what has come, goes fishing if need be.
    pub(crate) fn turn(
        &mut self,
        pe: &Arc<S>,
        now: Duration,
        need: Need,
        effort: Effort,
    ) -> Result<Turn, JobError> {
        self.state.effort = effort;
        self.handle_failures(pe)?;
        self.check_fallback(pe, now);
        let Engine { node, port, state, .. } = self;
        let mut messages = 0u32;
        for _ in 0..OUTGOING_PER_TURN {
            let Some(outgoing) = pe.outbox().pop() else { break };
            match outgoing {
                // What a straggling task still has to say at the end, nobody waits for.
                Outgoing::Message(to, message) if node.phase() == Phase::Running => {
                    state.send_queue.push(to, message);
                }
                Outgoing::Task(to, task) if node.phase() == Phase::Running => {
                    let Some(parcel) = state.enter(pe.slot(), task) else { continue };
                    node.place(to, parcel, &mut EngineHost { state: &mut *state, pe });
                }
                Outgoing::Ask(to, task) if node.phase() == Phase::Running => {
                    let Some(parcel) = state.enter(pe.slot(), task) else { continue };
                    node.ask(to, parcel, &mut EngineHost { state: &mut *state, pe });
                }
                Outgoing::Stolen(fish, task) if node.phase() == Phase::Running => {
                    match state.enter(pe.slot(), task) {
                        Some(parcel) => {
                            node.hand_over(
                                &fish,
                                parcel,
                                &mut EngineHost { state: &mut *state, pe },
                            );
                        }
                        // There may be another.
                        None => state.send_queue.push(state.me, Message::Fish(fish)),
                    }
                }
                Outgoing::Tell(pes, body) => {
                    node.tell(pes, body, &mut EngineHost { state: &mut *state, pe });
                }
                Outgoing::Cancel(futures) => {
                    let known = futures.iter().filter_map(|future| state.futures.remove(*future));
                    let cancelled = known.map(|future| (future, Err(TaskError::Cancelled)));
                    state.results.extend(cancelled);
                    node.cancel(futures, &mut EngineHost { state: &mut *state, pe });
                    // They may be thousands, and the next one the same.
                    break;
                }
                Outgoing::Message(..) => {}
                Outgoing::Task(_, task) | Outgoing::Ask(_, task) | Outgoing::Stolen(_, task) => {
                    state.results.push((task.future, Err(TaskError::ShuttingDown)));
                }
            }
        }
        let mut host = EngineHost { state, pe };
        let me = host.state.me;
        let mut deliver = |from: Pe, mut packet: &[u8], mut array: Option<Array>| {
            messages += 1;
            loop {
                match wire::decode_first::<Message>(&mut packet) {
                    Ok(mut message) => {
                        let is_whole = array.take().is_none_or(|array| message.put_array(array));
                        if is_whole && message.is_of_a_job_of(pe.topology().pes()) {
                            node.handle(now, from, message, &mut host);
                        } else {
                            host.state.failure = Some(JobError::Nonsense { me, from });
                        }
                    }
                    Err(source) => {
                        host.state.failure = Some(JobError::Message { me, from, source });
                        break;
                    }
                }
                if packet.is_empty() {
                    break;
                }
            }
        };
        let polled = port.poll(now, &mut deliver);
        let fishing_due = node.tick(now, need, &mut host);
        self.take_leave(pe, now);
        let is_streaming = match polled {
            Ok(progress) => progress.is_streaming,
            Err(error) => {
                self.endure(pe, error)?;
                false
            }
        };
        self.heed_silence(pe);
        let Engine { node, state, .. } = self;
        // Once the job is ending, all that counts is that everybody hears of it.
        if let Some(failure) = state.failure.take().filter(|_| node.phase() == Phase::Running) {
            return Err(failure);
        }
        let sent = self.post(pe, now)?;
        pe.note_away(self.state.futures.len());
        let more = (!pe.outbox().is_empty()).then_some(now);
        let due = [fishing_due, self.port.next_deadline(), more].into_iter().flatten().min();
        let work_came =
            std::mem::take(&mut self.state.tasks_came) || !self.state.results.is_empty();
        let something_happened = sent || messages > 0 || is_streaming;
        Ok(Turn { something_happened, is_streaming, work_came, due })
    }

    /// Goes on after an error of the port, if that is possible.
    fn endure(&mut self, pe: &Arc<S>, error: LinkError) -> Result<(), JobError> {
        match error {
            LinkError::Lane(LaneError::HasLeft(_)) if self.node.phase() != Phase::Running => Ok(()),
            // It is for the watch to say who is dead.
            LinkError::Lane(LaneError::HasLeft(other)) if pe.liveness().suspect(other) => Ok(()),
            LinkError::Lane(LaneError::HasLeft(Pe::ROOT)) => {
                // It needs nobody any more, and did not wait for this PE to hear of the end.
                self.node.end(&mut EngineHost { state: &mut self.state, pe });
                self.let_go(pe);
                Ok(())
            }
            LinkError::Lane(error) if self.try_fail_over(pe, &error) => Ok(()),
            source => Err(JobError::Link { me: self.state.me, source }),
        }
    }

    /// Has the watch look at PEs that do not answer; it is for the watch to say who is dead. Where
    /// there is none, PEs are threads of one process: they may be slow, but none is lost.
    fn heed_silence(&mut self, pe: &Arc<S>) {
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
            pe.leave_mpi();
            self.fail_over(pe);
        }
    }

    /// Hands the queued messages to the port, as far as it has room. Whether it took any.
    fn post(&mut self, pe: &Arc<S>, now: Duration) -> Result<bool, JobError> {
        if self.state.send_queue.is_empty()
            || !self.state.send_queue.post(self.state.me, &mut self.port)?
        {
            return Ok(false);
        }
        self.port.flush(now).or_else(|error| self.endure(pe, error))?;
        Ok(true)
    }

    /// The connections of the lane, and of the one in waiting.
    pub(crate) fn connections(&self) -> Connections {
        let waiting = self.fallback.as_ref().map(|lane| lane.connections());
        self.port.connections() + waiting.unwrap_or_default()
    }

    /// What the port has seen.
    pub(crate) fn link_counters(&self) -> LinkCounters {
        self.port.counters()
    }

    /// Begins the end of the job, on the root.
    pub(crate) fn end(&mut self, pe: &Arc<S>) {
        self.node.end(&mut EngineHost { state: &mut self.state, pe });
    }

    /// Tells the root that this PE cannot go on, if that can still be told.
    pub(crate) fn give_up(&mut self, pe: &Arc<S>, error: &JobError, now: Duration) {
        let reason = error.to_string();
        if self.state.me != Pe::ROOT && !error.is_desertion() {
            self.state.send_queue.push(Pe::ROOT, Message::Failed { reason });
            // What broke may be the very channel to the root; then its own watch must tell it.
            let _ = self.post(pe, now);
        }
    }

    /// What has come for futures, in exchange for an empty list.
    pub(crate) fn take_results(&mut self, empty: Results) -> Results {
        std::mem::replace(&mut self.state.results, empty)
    }

    /// Large arrays that are done with, to be dropped after the engine is let go.
    pub(crate) fn take_discarded(&mut self) -> Vec<Array> {
        self.port.take_discarded()
    }

    /// The futures whose tasks are elsewhere, when the PE has left: they will get no result any
    /// more.
    pub(crate) fn into_futures(self) -> impl Iterator<Item = Arc<dyn Fill>> {
        self.state.futures.into_values()
    }
}
