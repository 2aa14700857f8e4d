//! What a PE keeps for the tasks that run on it. It knows no PE and no message.
//!
//! | file | what |
//! |---|---|
//! | `store` | what tasks share, by key |
//! | `slot`, `values` | values that handles are of: one, and all of a PE |
//! | `inbox` | messages and deaths of which the program has not heard |
//! | `deaths` | what is to hear of deaths |

pub(crate) mod deaths;
pub(crate) mod inbox;
pub(crate) mod slot;
pub(crate) mod store;
pub(crate) mod values;
