//! PREPARE, EXECUTE and DEALLOCATE PREPARE in SQL: what a session names is routed by its text like
//! any other statement, and prepared wherever it is executed, there by a name of ours. What cannot
//! be told apart goes as it is, and keeps its connection.

use crate::command::dynamic::{Does, Dynamic, Moved, Naming};
use crate::command::in_sql::{in_their_places, with};
use crate::command::job::What;
use crate::command::preparing::Preparing;
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::reach::names::DYNAMIC;
use crate::session::Session;
use crate::statement::preparing::quiet;
use backend::Interest;
use sql::dynamic::{DISTURBED, Source, goes_anywhere, literal, variables_given};
use sql::{Class, CommandCounter, Leaves, Reads};
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use wire::attributes::Attributes;

impl Session {
    /// One of them.
    pub(crate) async fn dynamic(
        &mut self,
        epoch: &Epoch,
        text: &[u8],
        class: Class<'_>,
        attributes: &Attributes,
    ) -> Result<(), Ended> {
        match self.read_dynamic(text) {
            Some(sql::dynamic::Dynamic::Prepare {
                name,
                name_at,
                source,
                source_at,
            }) => {
                let naming = Naming {
                    name: name.into(),
                    outer: text.into(),
                    name_at,
                    source_at,
                    is_written: matches!(source, Some(Source::Text(_))),
                    escapes: self.escapes(),
                    moved: None,
                    attributes: attributes.clone(),
                    slot: Cell::new(0),
                };
                self.prepare_in_sql(epoch, class, naming, source).await
            }
            Some(sql::dynamic::Dynamic::Execute {
                name,
                name_at,
                computes,
            }) => {
                let named = self
                    .statements
                    .names
                    .as_ref()
                    .and_then(|names| names.0.get(&*name));
                let Some(named) = named else {
                    return self
                        .unknown_name(epoch, text, class, attributes, &name, "EXECUTE")
                        .await;
                };
                if computes || !only_executes(&class) {
                    return self
                        .whole(epoch, text, &class, "Query", What::Query(attributes))
                        .await;
                }
                let (mut prepared, mut asked) = (Rc::clone(&named.prepared), named.asked.clone());
                let mut using = None;
                if let Some(moved) = &named.moved {
                    match variables_given(text, self.lexing(), name_at.end) {
                        Some(given) if given.len() == usize::from(moved.arguments) => {
                            using = Some(in_their_places(text, &given, &moved.params))
                        }
                        // As many as the server will refuse.
                        Some(_) => {
                            using = Some(
                                [&b" USING @a"[..], &b", @a".repeat(moved.params.len())].concat(),
                            )
                        }
                        None => (prepared, asked) = (Rc::clone(&moved.before), None),
                    }
                }
                let lexing = self.lexing_as_prepared(named.lexing, &prepared);
                let does = Does::Execute {
                    prepared: prepared.clone(),
                    lexing,
                    escapes: named.escapes,
                    using,
                };
                let inner = self.class_of_inner(&prepared.sql, lexing, class);
                let dynamic = Dynamic {
                    outer: text,
                    at: name_at,
                    attributes,
                    does,
                };
                let asked = asked.as_deref().unwrap_or(&prepared.sql);
                self.whole(epoch, asked, &inner, "Query", What::Dynamic(&dynamic))
                    .await
            }
            Some(sql::dynamic::Dynamic::Immediate {
                source,
                source_at,
                computes: false,
            }) if only_executes(&class) => {
                let inner = self
                    .text_of(&source)
                    .await?
                    .filter(|inner| goes_anywhere(&self.lexing().class(inner)));
                let Some(inner) = inner else {
                    return self
                        .whole(epoch, text, &class, "Query", What::Query(attributes))
                        .await;
                };
                let class = self.class_of_inner(&inner, self.lexing(), class);
                let does = Does::Immediate {
                    escapes: self.escapes(),
                };
                let dynamic = Dynamic {
                    outer: text,
                    at: source_at,
                    attributes,
                    does,
                };
                self.whole(epoch, &inner, &class, "Query", What::Dynamic(&dynamic))
                    .await
            }
            Some(sql::dynamic::Dynamic::Deallocate { name, name_at }) => {
                if self
                    .statements
                    .names
                    .as_ref()
                    .is_none_or(|names| !names.0.contains_key(&*name))
                {
                    return self
                        .unknown_name(epoch, text, class, attributes, &name, "DEALLOCATE PREPARE")
                        .await;
                }
                // DROP PREPARE is the same.
                let class = Class {
                    leaves: class.leaves.without(DYNAMIC),
                    command: CommandCounter::Deallocate,
                    ..class
                };
                let told = self.state.variable("session_track_state_change").is_some();
                let dynamic = Dynamic {
                    outer: text,
                    at: name_at,
                    attributes,
                    does: Does::Deallocate { told },
                };
                self.whole(epoch, text, &class, "Query", What::Dynamic(&dynamic))
                    .await?;
                if !self.turn.failed {
                    self.forget_name(&name);
                }
                Ok(())
            }
            _ => {
                self.whole(epoch, text, &class, "Query", What::Query(attributes))
                    .await
            }
        }
    }

    async fn prepare_in_sql(
        &mut self,
        epoch: &Epoch,
        class: Class<'_>,
        naming: Naming,
        source: Option<Source<'_>>,
    ) -> Result<(), Ended> {
        let bound = self.may_know_names();
        let inner = match &source {
            Some(Source::Text(text)) => Some(Cow::Borrowed(&**text)),
            Some(source) if !bound => self.text_of(source).await?,
            _ => None,
        };
        if inner.is_some() {
            // The name is free now, be it that the new statement cannot be prepared. Of a text that
            // nobody here can read, the server says what became of it.
            self.forget_name(&naming.name);
        }
        let (inner, here) = match inner {
            Some(inner) if !bound && goes_anywhere(&self.lexing().class(&inner)) => {
                (Some(inner), None)
            }
            inner => (None, inner),
        };
        let Some(inner) = inner else {
            if backend::is_ours(&naming.name) {
                let words = format!(
                    "The name '{}' is one of those that the proxy gives on servers",
                    naming.name
                );
                let complaint = Complaint::with(1235, "42000", words);
                return self
                    .whole(
                        epoch,
                        &naming.outer,
                        &quiet(class),
                        "Query",
                        What::Refused(&complaint),
                    )
                    .await;
            }
            let mut class = class;
            if bound {
                // Where the others are.
                class.reads |= Reads::PREPARED;
            }
            let own = here.and_then(|inner| {
                self.with_own_number(
                    &inner,
                    self.lexing(),
                    self.lexing().class(&inner).reads,
                    &self.state.schema,
                )
            });
            let outer = match own {
                Some(own) => with(
                    &naming.outer,
                    &naming.source_at,
                    &literal(&own, naming.escapes),
                ),
                None => naming.outer.to_vec(),
            };
            self.whole(
                epoch,
                &outer,
                &class,
                "Query",
                What::Query(&naming.attributes),
            )
            .await?;
            if !self.turn.failed {
                // A connection has it.
                self.forget_name(&naming.name);
            }
            return Ok(());
        };
        if let Some(complaint) = self.statements.is_full_for(&inner, epoch) {
            let class = Class {
                command: CommandCounter::Prepare,
                ..quiet(self.lexing().class(&inner))
            };
            return self
                .whole(epoch, &inner, &class, "Query", What::Refused(&complaint))
                .await;
        }
        let rewritten = self.rewritten(epoch, &inner);
        let mut moved = None;
        if let Some((_, made)) = rewritten.as_ref().filter(|(_, made)| !made.keeps_params()) {
            // What it means is what is set now.
            self.read_all_back().await?;
            let before =
                Interest::new(self.intern(epoch, &inner, self.lexing().class(&inner).reads));
            moved = Some(Rc::new(Moved {
                params: made.params.clone(),
                arguments: made.params_before,
                before,
            }));
        }
        let inner = rewritten.as_ref().map_or(&*inner, |(_, made)| &made.text);
        let is_written = naming.is_written && rewritten.is_none();
        let class = Class {
            command: CommandCounter::Prepare,
            ..quiet(self.lexing().class(inner))
        };
        let preparing = Preparing::by_name(Naming {
            is_written,
            moved,
            ..naming
        });
        self.whole(epoch, inner, &class, "Query", What::Prepare(&preparing))
            .await
    }

    /// A name that the session has not given, or not here: the server says what it thinks of it.
    async fn unknown_name(
        &mut self,
        epoch: &Epoch,
        text: &[u8],
        class: Class<'_>,
        attributes: &Attributes,
        name: &str,
        verb: &str,
    ) -> Result<(), Ended> {
        if backend::is_ours(name) {
            let words = format!("Unknown prepared statement handler ({name}) given to {verb}");
            let complaint = Complaint::with(1243, "HY000", words);
            return self
                .whole(
                    epoch,
                    text,
                    &quiet(class),
                    "Query",
                    What::Refused(&complaint),
                )
                .await;
        }
        let mut class = class;
        if self.may_know_names() {
            // What it asks for is not known: nothing of ours may come before it on its connection.
            class.reads |= Reads::PROFILE;
        } else {
            class.leaves = class.leaves.without(DYNAMIC);
            class.reads = class.reads.without(Reads::PREPARED);
            if class.command == CommandCounter::Unknown {
                // DROP PREPARE is the same as DEALLOCATE PREPARE.
                class.command = CommandCounter::Deallocate;
            }
        }
        self.whole(epoch, text, &class, "Query", What::Query(attributes))
            .await
    }
}

/// Whether an EXECUTE whose arguments are values does nothing by itself, and asks for nothing that
/// another statement would change.
fn only_executes(outer: &Class<'_>) -> bool {
    outer.leaves.without(Leaves::SQL_EXECUTE).is_empty() && !outer.reads.intersects(DISTURBED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execute_may_do_more_than_execute() {
        let only = |text: &str| only_executes(&sql::class(text.as_bytes()));
        assert!(
            only("EXECUTE s")
                && only("EXECUTE s USING @a, @b")
                && only("EXECUTE s USING LAST_INSERT_ID()")
        );
        assert!(
            !only("EXECUTE s USING @a := 5")
                && !only("EXECUTE s USING f(1)")
                && !only("EXECUTE s USING ROW_COUNT()")
        );
    }
}
