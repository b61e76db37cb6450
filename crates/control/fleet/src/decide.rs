//! Whether a proxy takes over what the store has of a module. A generation is followed by later ones
//! only: what goes back is said, and an operator settles it.

/// Module as a proxy has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own<'a> {
    /// The latest generation that it has seen as the truth; 0 for none.
    pub generation: u64,
    /// The name of that generation.
    pub id: &'a str,
    /// Whether its rows in force have the checksum of the truth.
    pub is_equal: bool,
    /// Whether an operator has loaded other rows here only, over that generation.
    pub is_diverged: bool,
}

/// Decision about a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The store has nothing of it yet: it takes nothing away.
    Empty,
    /// The truth is in force.
    Same,
    /// The truth is in force here, and was not known as such: it is noted.
    Note,
    /// The truth is taken over.
    Take,
    /// Other rows are meant here, until the next truth.
    Diverged,
    /// The store had it, and has nothing any more.
    Gone,
    /// The store has an earlier generation than it had, or another of that number.
    Back,
}

/// `truth`: generation and name of what the store has.
pub fn decide(own: Own<'_>, truth: Option<(u64, &str)>) -> Verdict {
    let Some((generation, id)) = truth else {
        return match own.generation {
            0 => Verdict::Empty,
            _ => Verdict::Gone,
        };
    };
    if generation < own.generation || generation == own.generation && id != own.id {
        Verdict::Back
    } else if generation > own.generation {
        match own.is_equal {
            true => Verdict::Note,
            false => Verdict::Take,
        }
    } else if own.is_equal {
        Verdict::Same
    } else if own.is_diverged {
        Verdict::Diverged
    } else {
        Verdict::Take
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_generations_are_followed_and_nothing_else() {
        // (own generation and name, equal, diverged), what the store has
        for ((generation, id, is_equal, is_diverged), truth, verdict) in [
            ((0, "", false, false), None, Verdict::Empty),
            ((0, "", false, false), Some((1, "a")), Verdict::Take),
            ((0, "", true, false), Some((1, "a")), Verdict::Note),
            ((3, "a", true, false), Some((3, "a")), Verdict::Same),
            // After a start the rows are those of the disk.
            ((3, "a", false, false), Some((3, "a")), Verdict::Take),
            ((3, "a", false, true), Some((3, "a")), Verdict::Diverged),
            // What was loaded here only may be what was the truth before.
            ((3, "a", true, true), Some((3, "a")), Verdict::Same),
            ((3, "a", false, true), Some((4, "b")), Verdict::Take),
            ((3, "a", false, false), Some((9, "b")), Verdict::Take),
            ((3, "a", true, false), Some((4, "b")), Verdict::Note),
            // An old backup, another etcd, a wiped one.
            ((3, "a", true, false), Some((2, "z")), Verdict::Back),
            ((3, "a", false, false), Some((2, "z")), Verdict::Back),
            ((3, "a", true, false), Some((3, "b")), Verdict::Back),
            ((3, "a", true, true), Some((1, "b")), Verdict::Back),
            ((3, "a", true, false), None, Verdict::Gone),
        ] {
            let own = Own {
                generation,
                id,
                is_equal,
                is_diverged,
            };
            assert_eq!(decide(own, truth), verdict, "{own:?} {truth:?}");
        }
    }
}
