//! What one detector sees of another PE: whether it is in contact, suspected or lost.
//!
//! Two things can be seen. A PE is **heard** when a frame of its detector arrives. Its host
//! **answers** when a connection to the detector's port is made: the system makes it for a process
//! that is stopped or gets no core. So
//!
//! | heard | host | the PE | is lost |
//! |---|---|---|---|
//! | yes | | lives | |
//! | no | answers | has stalled | after `stalled_after` |
//! | no | silent | cannot be reached | after `dead_after` |
//! | no | refuses | cannot be reached | after `dead_after` |
//! | no | a witness speaks | is gone | at once |
//!
//! A **witness** is what the network cannot forge: this host's own system, if the PE is on this
//! host and its port is closed, or the PE's guard, which answers at the PE's address once the
//! process is gone, under the job's key ([`Witness`](crate::detector::Witness)). That another host
//! refuses a call proves nothing: a firewall that rejects answers in the same way.
//!
//! A PE that is not heard is dialled again and again: a lost packet, or a connection that has ended
//! unnoticed, proves nothing. At a loss of 30 % each way one dial in two fails, and all dials
//! before `dead_after` fail once in fifty; the heartbeats on its connection must fail as well.
//!
//! Calls that a stopped process does not accept pile up at its host, which answers no more than
//! `net.core.somaxconn` of them (4,096; 128 before Linux 5.4). So a hundred PEs can dial a stopped
//! PE for all of `stalled_after`, or three on an old system. If there are more, its host falls
//! silent earlier.

use crate::detector::DetectorSettings;
use std::fmt;
use std::time::Duration;
use ultramarine_topology::Pe;

/// How much longer than the root a PE waits before it insists, so that the root decides first.
const INSIST_AFTER: Duration = Duration::from_millis(300);

/// What a detector sees of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reachability {
    InContact,
    Suspected,
    Lost(LossReason),
}

impl Reachability {
    /// Whether both mean the same for membership: of a loss it matters whether the process is gone.
    pub(super) fn is_same_kind(self, other: Reachability) -> bool {
        let gone = Reachability::Lost(LossReason::Gone);
        let is_same = std::mem::discriminant(&self) == std::mem::discriminant(&other);
        is_same && (self == gone) == (other == gone)
    }
}

/// Why a PE is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossReason {
    /// A witness says that its process is gone.
    Gone,
    /// It has not been reached for this long, and the last calls were refused.
    Refused(Duration),
    /// Its host has not answered for this long.
    Unreached(Duration),
    /// It has not been heard for this long, though its host answers.
    Unheard(Duration),
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossReason::Gone => write!(f, "its process is gone"),
            LossReason::Refused(time) => {
                write!(f, "its host, or a firewall on the way, has refused all calls for {time:?}")
            }
            LossReason::Unreached(time) => write!(f, "its host has not answered for {time:?}"),
            LossReason::Unheard(time) => {
                write!(f, "it has said nothing for {time:?}, though its host answers")
            }
        }
    }
}

/// The last contacts with a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastContact {
    /// When it was last heard.
    pub(super) heard: Duration,
    /// When its host last answered.
    pub(super) answered: Duration,
    /// A call was refused since.
    pub(super) is_refused: bool,
    /// A witness has said since that the process is gone.
    pub(super) is_gone: bool,
}

impl LastContact {
    /// The PE was heard, and its host answered, at this moment.
    pub(super) fn at(now: Duration) -> Self {
        LastContact { heard: now, answered: now, is_refused: false, is_gone: false }
    }

    /// The PE's host answers.
    pub(super) fn answer(&mut self, now: Duration) {
        (self.answered, self.is_refused) = (now, false);
    }

    /// When the PE or its host last gave a sign.
    pub(super) fn last(&self) -> Duration {
        self.heard.max(self.answered)
    }

    /// What these contacts mean now. Before `grace` is over, no PE is suspected.
    pub(super) fn reachability(
        &self,
        now: Duration,
        limits: &ContactLimits,
        grace: Duration,
    ) -> Reachability {
        let (unreached, unheard) =
            (now.saturating_sub(self.last()), now.saturating_sub(self.heard));
        let exceeds = |time, limit: Option<Duration>| limit.is_some_and(|limit| time >= limit);
        if now < grace {
            Reachability::InContact
        } else if exceeds(unreached, limits.lose.unreached) {
            Reachability::Lost(if self.is_refused {
                LossReason::Refused(unreached)
            } else {
                LossReason::Unreached(unreached)
            })
        } else if exceeds(unheard, limits.lose.unheard) {
            Reachability::Lost(LossReason::Unheard(unheard))
        } else if exceeds(unreached, limits.suspect.unreached)
            || exceeds(unheard, limits.suspect.unheard)
        {
            Reachability::Suspected
        } else {
            Reachability::InContact
        }
    }

    /// When that may change next, if nothing arrives.
    pub(super) fn next_limit(
        &self,
        now: Duration,
        limits: &ContactLimits,
        grace: Duration,
    ) -> Option<Duration> {
        let silences = [&limits.suspect, &limits.lose];
        let moments = silences.into_iter().flat_map(|silence| {
            [
                silence.unreached.map(|time| self.last() + time),
                silence.unheard.map(|t| self.heard + t),
            ]
        });
        moments.flatten().map(|moment| moment.max(grace)).filter(|moment| *moment > now).min()
    }
}

/// How long a silence may last; `None`: without limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct SilenceLimits {
    pub(super) unreached: Option<Duration>,
    pub(super) unheard: Option<Duration>,
}

/// How long a silence may last until a PE is suspected, and until it is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContactLimits {
    pub(super) suspect: SilenceLimits,
    pub(super) lose: SilenceLimits,
}

impl ContactLimits {
    /// The limits by which PE `me` assesses `pe`, if this PE is the judge.
    pub(super) fn of(me: Pe, pe: Pe, judge: Pe, settings: &DetectorSettings) -> Self {
        let DetectorSettings { dead_after, .. } = *settings;
        let stalled_after = settings.stalled_after.max(dead_after);
        let both = |unreached, unheard| SilenceLimits {
            unreached: Some(unreached),
            unheard: Some(unheard),
        };
        let suspect = both(dead_after / 2, dead_after);
        if pe == judge && !settings.succession {
            let unheard = |time| SilenceLimits { unreached: None, unheard: Some(time) };
            let root_after = settings.root_after.max(dead_after);
            ContactLimits { suspect: unheard(dead_after), lose: unheard(root_after) }
        } else if me == judge {
            ContactLimits { suspect, lose: both(dead_after, stalled_after) }
        } else {
            let lose = both(dead_after + INSIST_AFTER, stalled_after + dead_after);
            ContactLimits { suspect, lose }
        }
    }
}

/// How often a silent PE is dialled.
#[derive(Clone, Copy, Debug)]
pub(super) struct DialPace {
    /// How long after the last contact the dialling begins.
    pub(super) after: Duration,
    /// The time from the first dial to the second. It grows by as much for each further dial, and
    /// is at least the time that answers took recently: when a network is full, dialling must not
    /// keep it full.
    pub(super) every: Duration,
    /// The longest time between two dials.
    pub(super) every_max: Duration,
}

impl DialPace {
    /// Often enough that lost packets are not mistaken for silence. The judge is dialled ten times
    /// less often, since all PEs may have to look at it at once.
    pub(super) fn towards(pe: Pe, judge: Pe, settings: &DetectorSettings) -> Self {
        let every = (settings.heartbeat / 2).min(settings.dead_after / 20);
        let every = if pe == judge { every * 10 } else { every };
        let every_max = every.max(settings.dead_after / 5);
        DialPace { after: settings.dead_after * 2 / 5, every, every_max }
    }
}
