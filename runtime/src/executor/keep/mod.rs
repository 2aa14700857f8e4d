//! What a PE keeps for the tasks that run on it. This floor knows no PE and no message.
//!
//! | file | what |
//! |---|---|
//! | `kept` | all that a PE keeps |
//! | `store` | values that tasks share by key |
//! | `slot`, `values` | the values of handles: one, and all of a PE |
//! | `inbox` | messages and deaths that the program has not heard yet |
//! | `deaths` | the parts that are told of deaths |

pub(crate) mod deaths;
pub(crate) mod inbox;
pub(crate) mod kept;
pub(crate) mod slot;
pub(crate) mod store;
pub(crate) mod values;
