//! Watches without sockets.
