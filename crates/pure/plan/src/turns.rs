//! Whose turn it is, by weight: smoothly, so that each comes up in proportion to its weight within
//! every few turns, not only in the long run. Who gets a turn pays for it.

/// The position of the one whose turn it is: the one with the most credit once its weight is added;
/// of equals the first. Weight 0 never comes up; `None` if nobody else is there.
#[must_use]
pub fn turn_of(among: impl IntoIterator<Item = (u32, i64)>) -> Option<usize> {
    let weighed = among.into_iter().enumerate();
    let candidates = weighed.filter(|(_, (weight, _))| *weight > 0);
    let due = |(_, (weight, credit)): &(usize, (u32, i64))| credit.saturating_add((*weight).into());
    let first_of_the_best =
        candidates.reduce(|best, one| if due(&one) > due(&best) { one } else { best });
    first_of_the_best.map(|(at, _)| at)
}

/// Somebody's credit after a turn that it had or another. `total`: of all weights. Who had many in a
/// row, being the only one there, is not behind for as long.
#[must_use]
pub fn credit_after(weight: u32, credit: i64, total: i64, had_it: bool) -> i64 {
    let paid = if had_it { total } else { 0 };
    let credit = credit.saturating_add(weight.into()).saturating_sub(paid);
    credit.clamp(-total, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_turn(among: &mut [(u32, i64)], had: usize) {
        let total = among.iter().map(|(weight, _)| i64::from(*weight)).sum();
        for (at, (weight, credit)) in among.iter_mut().enumerate() {
            *credit = credit_after(*weight, *credit, total, at == had);
        }
    }

    fn turns(weights: &[u32], n: usize) -> Vec<usize> {
        let mut among: Vec<_> = weights.iter().map(|weight| (*weight, 0)).collect();
        let next = |among: &mut Vec<(u32, i64)>| {
            let at = turn_of(among.iter().copied()).unwrap();
            after_turn(among, at);
            at
        };
        (0..n).map(|_| next(&mut among)).collect()
    }

    #[test]
    fn each_comes_up_in_proportion_within_every_few_turns() {
        assert_eq!(turns(&[1, 1, 1], 6), [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(&[5, 1, 1], 7), [0, 0, 1, 0, 2, 0, 0]);
        let many = turns(&[10, 0, 30], 400);
        let of = |who| many.iter().filter(|at| **at == who).count();
        assert_eq!([of(0), of(1), of(2)], [100, 0, 300]);
        assert_eq!(turn_of([]), None);
        assert_eq!(turn_of([(0, 5)]), None);
    }

    #[test]
    fn who_had_the_turns_of_others_waits_and_not_for_long() {
        let mut among = [(1, 0), (1, 0)];
        for _ in 0..100 {
            after_turn(&mut among, 0);
        }
        let mut waited = 0;
        while turn_of(among) == Some(1) {
            after_turn(&mut among, 1);
            waited += 1;
        }
        assert!(waited <= 3, "{waited}");
    }
}
