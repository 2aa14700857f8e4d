//! Notices peers that do not answer, and a lane that takes nothing.
//!
//! Neither is an error, since the port cannot know the cause. A peer may be slow or dead, which the
//! detector finds out; or the lane may be stuck.

use super::counters::Silence;
use super::settings::PortSettings;
use std::time::Duration;
use ultramarine_topology::Pe;

/// What has not been reported yet.
#[derive(Default)]
pub(super) struct SilenceMonitor {
    pub(super) silent: Vec<Silence>,
    /// Since when the lane has taken nothing although something waits.
    refused_since: Option<Duration>,
    pub(super) is_stuck: bool,
}

impl SilenceMonitor {
    /// The stream to a peer was resent, for the `resends`-th time without an acknowledgement. A
    /// peer whose frames arrive is not silent: on a slow network acknowledgements wait behind data.
    pub(super) fn note_resend(
        &mut self,
        pe: Pe,
        resends: u32,
        unheard: Duration,
        settings: &PortSettings,
    ) {
        if unheard >= settings.resend_after {
            let lasting = settings.resend_after.saturating_mul(resends);
            self.silent.push(Silence { pe, lasting });
        }
        self.is_stuck |= resends > settings.resends_max;
    }

    pub(super) fn lane_has_taken(&mut self) {
        self.refused_since = None;
    }

    pub(super) fn lane_has_refused(&mut self, now: Duration, settings: &PortSettings) {
        let since = *self.refused_since.get_or_insert(now);
        self.is_stuck |= now.saturating_sub(since) > settings.patience();
    }
}
