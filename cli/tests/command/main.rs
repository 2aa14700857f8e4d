//! The `ultramarine` command as its user sees it: what it starts, what it says, and how it ends.
//!
//! | file | what |
//! |---|---|
//! | `harness` | running the command, and stand-ins for programs and launchers |
//! | `dry_run` | the launchers' command lines |
//! | `refusals` | what is said about bad input |
//! | `interrupts` | signals while it asks others, and afterwards |
//! | `real` | jobs under the launcher that `MPIEXEC_FOR_TESTS` names |
//! | `doctor` | what the doctor finds, with good launchers and bad ones |
//! | `gap` | GAP in front of a job: scripts, their errors, and deaths |
//! | `topo` | what is handed to the probe, and what is said if it is not there |
//! | `journal` | what is shown of journals |
//! | `trace` | what is made of the parts of a trace |
//! | `report` | what the page says of jobs of each kind |
//! | `binding` | what processes are bound to |
//! | `papers` | completions and manual pages |

mod binding;
mod checkpoint;
mod doctor;
mod dry_run;
mod gap;
mod harness;
mod interrupts;
mod journal;
mod page;
mod papers;
mod real;
mod refusals;
mod report;
mod top;
mod topo;
mod trace;
