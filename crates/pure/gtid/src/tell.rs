//! What a reader of a binary log tells, line by line: what [`Feed`](crate::Feed) follows.

use crate::set::{Interval, Set, Source};
use std::fmt::Write as _;

/// Tells one client. The protocol has a place for MySQL's GTIDs without a tag; of others nothing is
/// said.
#[derive(Debug)]
pub struct Teller {
    /// The client understands intervals: ProxySQL does from 3.0.8 on.
    intervals: bool,
    /// Source of the last line.
    source: Option<[u8; 16]>,
}

impl Teller {
    /// Begins with all that is known: the line that says it.
    #[must_use]
    pub fn begin(all: &Set, intervals: bool) -> (Self, String) {
        let mut line = "ST=".to_owned();
        let mut comma = "";
        for (source, _, numbers) in told(all) {
            for (at, (first, last)) in numbers.iter().enumerate() {
                // Earlier consumers want source and `from-to` each time, also where both are the same.
                if at == 0 || !intervals {
                    let _ = write!(line, "{comma}{source}");
                }
                let _ = match intervals && first == last {
                    true => write!(line, ":{first}"),
                    false => write!(line, ":{first}-{last}"),
                };
                comma = ",";
            }
        }
        line.push('\n');
        let source = None;
        (Self { intervals, source }, line)
    }

    /// The lines for these besides.
    #[must_use]
    pub fn more(&mut self, more: &Set) -> String {
        let mut lines = String::new();
        for (_, uuid, numbers) in told(more) {
            for interval in numbers {
                match self.intervals {
                    true => self.line(&mut lines, uuid, *interval),
                    false => {
                        (interval.0..=interval.1).for_each(|n| self.line(&mut lines, uuid, (n, n)));
                    }
                }
            }
        }
        lines
    }

    fn line(&mut self, lines: &mut String, uuid: &[u8; 16], (first, last): Interval) {
        let is_known = self.source.replace(*uuid) == Some(*uuid);
        lines.push_str(match (self.intervals, is_known) {
            (false, false) => "I1=",
            (false, true) => "I2=",
            (true, false) => "I3=",
            (true, true) => "I4=",
        });
        if !is_known {
            for byte in uuid {
                let _ = write!(lines, "{byte:02x}");
            }
            lines.push(':');
        }
        let _ = match first == last {
            true => writeln!(lines, "{first}"),
            false => writeln!(lines, "{first}-{last}"),
        };
    }
}

/// Sources that the protocol has a place for.
fn told(set: &Set) -> impl Iterator<Item = (&Source, &[u8; 16], &[Interval])> {
    set.iter().filter_map(|(source, numbers)| match source {
        Source::MySql { uuid, tag: None } => Some((source, uuid, numbers)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feed;

    const A: &str = "85c17137-4258-11e8-8090-0242ac130002";
    const B: &str = "8a093f5f-4258-11e8-8037-0242ac130004";
    const A_SHORT: &str = "85c17137425811e880900242ac130002";
    const B_SHORT: &str = "8a093f5f425811e880370242ac130004";

    fn set(text: &str) -> Set {
        text.parse().unwrap()
    }

    #[test]
    fn each_consumer_is_told_in_its_own_words() {
        let all = set(&format!("{A}:1-50:60-62:65,{A}:tag:1,{B}:1-5"));
        let more = set(&format!("{A}:66-68,{B}:6"));
        let (mut old, line) = Teller::begin(&all, false);
        assert_eq!(line, format!("ST={A}:1-50,{A}:60-62,{A}:65-65,{B}:1-5\n"));
        assert_eq!(
            old.more(&more),
            format!("I1={A_SHORT}:66\nI2=67\nI2=68\nI1={B_SHORT}:6\n")
        );
        assert_eq!(old.more(&set(&format!("{B}:7"))), "I2=7\n");
        let (mut new, line) = Teller::begin(&all, true);
        assert_eq!(line, format!("ST={A}:1-50:60-62:65,{B}:1-5\n"));
        assert_eq!(
            new.more(&more),
            format!("I3={A_SHORT}:66-68\nI3={B_SHORT}:6\n")
        );
        assert_eq!(new.more(&set(&format!("{B}:7-9:11"))), "I4=7-9\nI4=11\n");
        assert_eq!(Teller::begin(&Set::default(), true).1, "ST=\n");
    }

    #[test]
    fn a_feed_understands_what_is_told() {
        let all = set(&format!("{A}:1-50:60-62:65,{B}:1-5"));
        let more = set(&format!("{A}:66-68,{B}:6:9"));
        for intervals in [false, true] {
            let (mut teller, mut said) = Teller::begin(&all, intervals);
            said.push_str(&teller.more(&more));
            let news = Feed::default().follow(said.as_bytes()).unwrap();
            assert_eq!((news.all, news.more), (Some(all.clone()), more.clone()));
        }
    }
}
