//! What a reader of a binary log tells, line by line: the protocol of ProxySQL's binlog reader.
//!
//! `ST=` and a set begins; then transactions follow as they are executed: `I1=` a source and a
//! number, `I2=` a number of the same source, `I3=` and `I4=` the same with `from-to`. Sources are 32
//! hexadecimal digits.

use crate::parse::uuid;
use crate::set::{Set, Source};
use std::fmt;

/// A line longer than this is no line of a reader.
const LINE_MAX: usize = 16 << 20;
/// So much of a line is repeated in an error.
const SHOWN_MAX: usize = 60;

/// Follows what one reader sends over one connection.
#[derive(Debug, Default)]
pub struct Feed {
    /// Bytes that came and are no whole line yet.
    rest: Vec<u8>, // rest.len() <= LINE_MAX
    /// Whose numbers `I2` and `I4` are.
    source: Option<Source>,
    begun: bool,
}

/// News in some bytes of a feed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Everything that the server has executed: it replaces what was known.
    pub all: Option<Set>,
    /// Transactions that the server has executed besides.
    pub more: Set,
    /// Transactions that were told one by one, or by intervals.
    pub events: u64,
}

/// Line that no reader says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strange(Box<str>);

impl fmt::Display for Strange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a reader says '{}', which makes no sense", self.0)
    }
}

impl std::error::Error for Strange {}

impl Feed {
    /// Follows what came.
    ///
    /// # Errors
    /// A line that no reader says: the feed is of no use any more.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<News, Strange> {
        let mut news = News::default();
        let mut bytes = bytes;
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = bytes.split_at(end);
            bytes = &behind[1..];
            if self.rest.is_empty() {
                self.line(line, &mut news)?;
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole, &mut news)?;
            }
        }
        if self.rest.len() + bytes.len() > LINE_MAX {
            return Err(strange(&self.rest));
        }
        self.rest.extend_from_slice(bytes);
        Ok(news)
    }

    fn line(&mut self, line: &[u8], news: &mut News) -> Result<(), Strange> {
        let text = std::str::from_utf8(line).map_err(|_| strange(line))?;
        let text = text.trim_end_matches('\r');
        let (kind, value) = text.split_once('=').ok_or_else(|| strange(line))?;
        if kind == "ST" {
            let set = value.parse().map_err(|_| strange(line))?;
            // What was told before it is in it, or is of a server that was there before.
            *news = News {
                all: Some(set),
                ..News::default()
            };
            (self.begun, self.source) = (true, None);
            return Ok(());
        }
        let numbers = match kind {
            "I1" | "I3" => {
                let (source, numbers) = value.split_once(':').ok_or_else(|| strange(line))?;
                let uuid = uuid(source).ok_or_else(|| strange(line))?;
                self.source = Some(Source::MySql { uuid, tag: None });
                numbers
            }
            "I2" | "I4" => value,
            _ => return Err(strange(line)),
        };
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
        match (number(first), number(last), &self.source, self.begun) {
            (Some(first), Some(last), Some(source), true) if first <= last => {
                news.more.add_interval(source, (first, last));
                news.events += 1;
                Ok(())
            }
            _ => Err(strange(line)),
        }
    }
}

fn strange(line: &[u8]) -> Strange {
    let shown = &line[..line.len().min(SHOWN_MAX)];
    Strange(String::from_utf8_lossy(shown).into())
}

/// Follows anything without a panic, however it is cut.
#[doc(hidden)]
pub fn fuzz_feed(data: &[u8]) {
    let whole = Feed::default().follow(data);
    let (mut feed, mut all, mut more) = (Feed::default(), None, Set::default());
    let mut failed = false;
    for byte in data {
        match feed.follow(&[*byte]) {
            Ok(news) => {
                if news.all.is_some() {
                    (all, more) = (news.all, Set::default());
                }
                more.union(&news.more);
            }
            Err(_) => {
                failed = true;
                break;
            }
        }
    }
    match whole {
        Ok(news) => assert!(!failed && (news.all, news.more) == (all, more)),
        Err(_) => assert!(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "85c17137-4258-11e8-8090-0242ac130002";
    const SHORT: &str = "85c17137425811e880900242ac130002";

    #[test]
    fn a_stream_of_each_kind_of_reader_is_followed() {
        let stream = format!(
            "ST={A}:1-50,{A}:60-62,{A}:65-66,8a093f5f-4258-11e8-8037-0242ac130004:1-5\n\
             I1={SHORT}:67\nI2=68\nI3={SHORT}:69-75\nI4=76\nI4=78-80\n"
        );
        let news = Feed::default().follow(stream.as_bytes()).unwrap();
        let all = news.all.unwrap().to_string();
        assert_eq!(
            all,
            format!("{A}:1-50:60-62:65-66,8a093f5f-4258-11e8-8037-0242ac130004:1-5")
        );
        assert_eq!(news.more.to_string(), format!("{A}:67-76:78-80"));
        assert_eq!(news.events, 5);
        fuzz_feed(stream.as_bytes());
        // Batched, and what a server that has nothing says.
        for (said, set) in [(format!("{A}:1-50:60-62:65"), 3), (String::new(), 0)] {
            let news = Feed::default().follow(format!("ST={said}\n").as_bytes());
            assert_eq!(news.unwrap().all.unwrap().intervals(), set, "{said}");
        }
    }

    #[test]
    fn what_no_reader_says_ends_the_feed() {
        let begun = format!("ST={A}:1\n");
        for strange in [
            "I2=5",
            "I1=xyz:5",
            "I1=5",
            "I9=5",
            "I1",
            "",
            "ST=xyz",
            "HTTP/1.1 400 Bad Request",
        ] {
            let said = format!("{begun}{strange}\n");
            let error = Feed::default().follow(said.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(strange), "{error}");
            fuzz_feed(said.as_bytes());
        }
        for numbers in ["0", "5-3", "x", "-5", "18446744073709551616"] {
            let said = format!("{begun}I1={SHORT}:{numbers}\n");
            assert!(
                Feed::default().follow(said.as_bytes()).is_err(),
                "{numbers}"
            );
        }
        // Nothing counts before the set.
        let early = format!("I1={SHORT}:5\n");
        assert!(Feed::default().follow(early.as_bytes()).is_err());
    }

    #[test]
    fn a_new_set_replaces_what_was_known() {
        let stream = format!("ST={A}:1-9\nI1={SHORT}:10\nST={A}:1-3\nI1={SHORT}:4\n");
        let news = Feed::default().follow(stream.as_bytes()).unwrap();
        assert_eq!(news.all.unwrap().to_string(), format!("{A}:1-3"));
        assert_eq!(news.more.to_string(), format!("{A}:4"));
    }
}
