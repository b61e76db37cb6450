//! Where the body of a stored program ends.

use super::Scan;
use crate::counters::CommandCounter;
use crate::marks::Leaves;
use crate::words::{Kind, Token, Words};

impl Scan<'_> {
    /// Defines a stored program: its body is not run now. It ends where its blocks have ended:
    /// BEGIN, END and CASE count where statements or values may begin, elsewhere they may be names.
    /// What follows is another statement.
    pub(super) fn program(&mut self, command: CommandCounter) -> CommandCounter {
        self.class.ddl = true;
        // Of each block that is open whether it is a CASE.
        let mut open: Vec<bool> = Vec::new();
        let (mut begun, mut declares) = (false, false);
        let mut before: Option<Token<'_>> = None;
        while let Some(token) = self.words.next() {
            let last = before.replace(token);
            let after = |sign: u8, words: &[&str]| {
                last.is_some_and(|last| last.is_sign(sign) || last.is_any(words))
            };
            if token.is_dollar_quote() {
                // Where it ends, and what comes after it, not all servers agree.
                self.leaves(Leaves::UNKNOWN_STATE);
            }
            if token.is_sign(b';') {
                if !begun {
                    return command;
                }
                declares = false;
            } else if after(b'.', &[]) || after(b'@', &[]) {
            } else if token.is("DECLARE") {
                declares |= after(b';', &["BEGIN"]);
            } else if token.is("BEGIN") {
                if !begun
                    || declares
                    || after(b':', &[])
                    || after(b';', &["BEGIN", "DO", "ELSE", "LOOP", "REPEAT", "THEN"])
                {
                    begun = true;
                    open.push(false);
                }
            } else if begun && token.is("CASE") {
                open.push(true);
            } else if begun && token.is("END") {
                let ends_other = self
                    .words
                    .peek()
                    .is_some_and(|next| next.is_any(&["FOR", "IF", "LOOP", "REPEAT", "WHILE"]));
                let ends = match open.as_slice() {
                    // The value of a CASE may stand before FOR UPDATE.
                    [.., true] => !(ends_other && after(b';', &[])),
                    [_] => after(b';', &["BEGIN"]) && !ends_other && self.ends_here(),
                    _ => after(b';', &["BEGIN"]) && !ends_other,
                };
                if ends && open.pop() == Some(true) {
                    self.take("CASE");
                }
                if open.is_empty() {
                    return command;
                }
            }
        }
        if begun {
            self.count += 1;
            self.leaves(Leaves::UNKNOWN_STATE);
        }
        command
    }

    /// After an END: whether a label at most comes before the end of the statement, which is passed
    /// then.
    fn ends_here(&mut self) -> bool {
        let is_end = |words: &Words<'_>| words.peek().is_none_or(|token| token.is_sign(b';'));
        let mut after = self.words.clone();
        if !is_end(&after)
            && !after
                .next()
                .is_some_and(|label| matches!(label.kind, Kind::Word | Kind::Name))
        {
            return false;
        }
        let ends = is_end(&after);
        if ends {
            after.next();
            self.words = after;
        }
        ends
    }
}
