//! Texts inside of statements: what PREPARE and EXECUTE IMMEDIATE hold, where the statement goes to
//! a server as it is, is for rules and firewall as if it came by itself.

use crate::command::job::What;
use crate::command::trouble::Ended;
use crate::known::epoch::Epoch;
use crate::session::Session;
use plan::{Action, Alarm, Answer, Guarded, Plan};
use sql::dynamic::Dynamic;
use sql::words::Words;
use sql::{Class, DigestOptions, Leaves};
use std::rc::Rc;
use std::sync::Arc;

/// Text inside of a statement.
enum Inside {
    Nothing,
    Text(Vec<u8>),
    /// A text that only a server can tell.
    Unread,
}

/// Whether a statement may hold others that its digest does not show. What is no PREPARE or EXECUTE
/// by itself is for the firewall only.
pub(crate) fn may_hold_others(epoch: &Epoch, class: &Class<'_>, what: What<'_>) -> bool {
    let somewhere = || class.multi || class.leaves.intersects(Leaves::UNKNOWN_STATE) && !class.ddl;
    matches!(what, What::Query(_) | What::Execute(_))
        && (class
            .leaves
            .intersects(Leaves::SQL_PREPARE.with(Leaves::SQL_EXECUTE))
            || epoch.snapshot.variables.mysql_firewall_whitelist_enabled && somewhere())
}

impl Session {
    /// Asks rules and firewall about the text inside: an error that they have for it is the
    /// statement's. `sent`: what a server would get. `prepared_in`: as [`What::prepared_in`].
    pub(crate) async fn look_inside(
        &mut self,
        epoch: &Epoch,
        (class, prepared_in): (&Class<'_>, Option<&Rc<str>>),
        sent: &[u8],
        plan: &mut Plan,
    ) -> Result<(), Ended> {
        let text = match self.inside(sent).await? {
            Inside::Nothing => return Ok(()),
            Inside::Unread => {
                self.judge_unread(epoch, self.schema_of(epoch, class, prepared_in), sent, plan);
                return Ok(());
            }
            Inside::Text(text) => text,
        };
        let inner = self.lexing().class(&text);
        let mut shown = Vec::new();
        let digest = epoch
            .digests
            .then(|| sql::digest(&text, &epoch.digest, &mut shown));
        let digest = digest.map(|hash| plan::Digest { hash, text: &shown });
        let statement = plan::Statement {
            text: &text,
            digest,
            comment: None,
            prepared: None,
            parameters: None,
            prepares: false,
            guarded: Guarded::Text,
            routed: plan::Routed::default(),
            numbers: shards::Numbering::Whichever,
            making: shards::Making::Whichever,
            columns: None,
            looked: None,
            answered: None,
        };
        let judged = self.decide(epoch, &inner, (prepared_in, self.lexing()), &statement);
        if let Some(alarm) = &judged.alarm {
            self.raise(
                epoch,
                alarm,
                self.schema_of(epoch, class, prepared_in),
                &text,
            );
        }
        if let Some(Answer::Refuse(words)) = judged.answer {
            plan.answer = Some(Answer::Refuse(words));
            plan.alarm = judged.alarm;
        }
        Ok(())
    }

    /// Nobody has seen it: that is no way past a list.
    fn judge_unread(&self, epoch: &Epoch, schema: &str, sent: &[u8], plan: &mut Plan) {
        let v = &epoch.snapshot.variables;
        if !v.mysql_firewall_whitelist_enabled {
            return;
        }
        let row = epoch
            .snapshot
            .firewall
            .mode(&self.user.username, &self.entry.client.0);
        let Some(action) =
            Action::of_unlisted(row.map_or(config::Mode::Protecting, |(mode, _)| mode), true)
        else {
            return;
        };
        let digest = sql::digest(sent, &DigestOptions::WHOLE, &mut Vec::new());
        let alarm = Alarm {
            action,
            fingerprint: None,
            flag: 0,
            digest,
        };
        if plan.alarm.is_none() {
            self.raise(epoch, &alarm, schema, sent);
        }
        if action == Action::Blocked {
            let words = format!(
                "{}: the proxy cannot read the text that is to be prepared",
                v.mysql_firewall_whitelist_errormsg
            );
            plan.answer = Some(Answer::Refuse(Arc::from(words)));
            plan.alarm = Some(Box::new(alarm));
        }
    }

    async fn inside(&mut self, sent: &[u8]) -> Result<Inside, Ended> {
        let source = match self.read_dynamic(sent) {
            Some(
                Dynamic::Prepare {
                    source: Some(source),
                    ..
                }
                | Dynamic::Immediate { source, .. },
            ) => source,
            Some(Dynamic::Prepare { source: None, .. }) => return Ok(Inside::Unread),
            // What has a name was looked at when it got it.
            Some(Dynamic::Execute { .. } | Dynamic::Deallocate { .. }) => {
                return Ok(Inside::Nothing);
            }
            None if names_texts(self.lexing().words(sent)) => return Ok(Inside::Unread),
            None => return Ok(Inside::Nothing),
        };
        Ok(match self.text_of(&source).await? {
            Some(text) if names_texts(self.lexing().words(&text)) => Inside::Unread,
            Some(text) => Inside::Text(text.into_owned()),
            None => Inside::Unread,
        })
    }
}

/// Whether somewhere in it a text is prepared or executed: PREPARE name FROM, EXECUTE IMMEDIATE.
fn names_texts(words: Words<'_>) -> bool {
    let (mut prepares, mut executes) = (0, false);
    for token in words {
        if executes && token.is("IMMEDIATE") || prepares == 2 && token.is("FROM") {
            return true;
        }
        executes = token.is("EXECUTE");
        prepares = if token.is("PREPARE") {
            1
        } else if prepares == 1 {
            2
        } else {
            0
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_inside_are_found_wherever_they_stand() {
        let names = |text: &str| names_texts(Words::new(text.as_bytes()));
        for text in [
            "PREPARE s FROM CONCAT('DR', 'OP')",
            "BEGIN NOT ATOMIC PREPARE s FROM 'x'; EXECUTE s; END",
            "SELECT 1; execute immediate 'x'",
            "EXECUTE /* why */ IMMEDIATE UPPER('x')",
            "PREPARE `s` FROM @a",
        ] {
            assert!(names(text), "{text}");
        }
        for text in [
            "EXECUTE s",
            "DEALLOCATE PREPARE s",
            "DROP PREPARE s; SELECT a FROM t",
            "XA PREPARE 'x'",
            "SELECT 'PREPARE s FROM x'",
            "CALL p()",
        ] {
            assert!(!names(text), "{text}");
        }
    }
}
