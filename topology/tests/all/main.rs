//! Hierarchies through the public interface: the laws that they obey, the figure that they are
//! taken from, and the host that the tests run on.

mod figure_3;
mod hwloc_host;
mod laws;
