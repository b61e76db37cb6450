//! The driver for io_uring.

/// Several pieces on their way in one send.
pub(crate) struct Gathered;
