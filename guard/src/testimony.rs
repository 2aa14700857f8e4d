//! What a guard says when its child is gone, and to whom.

use std::fmt;
use std::net::TcpListener;

/// Tells those that call a child on this listener that the child is gone; ends by itself, soon. It
/// runs in the guard, with the child's [`Testimony::words`].
pub type Testify = fn(&TcpListener, &str);

/// What the guard needs to say that its child is gone.
pub struct Testimony {
    /// A second descriptor of the socket on which the child is called. The guard keeps it open when
    /// the child ends amid the job.
    pub listener: TcpListener,
    /// What [`Testify`] gets, in one line. It is secret.
    pub words: String,
}

impl fmt::Debug for Testimony {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Testimony").field("listener", &self.listener).finish_non_exhaustive()
    }
}
