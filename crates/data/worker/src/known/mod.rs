//! Knowledge of a core that its sessions share: configuration, habits of statements, what servers have told.

pub(crate) mod answer;
pub(crate) mod asking;
pub(crate) mod bound;
pub(crate) mod by_state;
pub(crate) mod columns;
pub(crate) mod costs;
pub(crate) mod decisions;
pub(crate) mod demoted;
pub(crate) mod epoch;
pub(crate) mod finds;
pub(crate) mod generated;
pub(crate) mod habits;
pub(crate) mod hosts;
pub(crate) mod in_turn;
pub(crate) mod numbers;
pub(crate) mod pace;
pub(crate) mod rates;
pub(crate) mod reading;
pub(crate) mod schemas;
pub(crate) mod scratch;
pub(crate) mod shared_writes;
pub(crate) mod skeletons;
