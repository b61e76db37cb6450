//! Cursor of a prepared statement: rows that a client fetches a few at a time.

/// An open cursor of a client's statement, with what the rules said of the statement when it was
/// executed.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// Its rows are on the connection that the session holds to this hostgroup.
    pub(crate) hostgroup: u32,
    /// How long each fetch may take.
    pub(crate) timeout_ms: Option<u64>,
    /// So many rows may be fetched in all,
    pub(crate) rows_max: Option<u64>,
    /// and so many have been.
    pub(crate) rows: u64, // <= rows_max
}

impl Cursor {
    pub(crate) fn of(plan: &plan::Plan) -> Self {
        Self {
            hostgroup: plan.hostgroup(),
            timeout_ms: plan.timeout_ms,
            rows_max: plan.rows_max(),
            rows: 0,
        }
    }
}
