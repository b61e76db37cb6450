//! A request of somebody who has come in, as a page sees it.

use crate::desk::{ANSWERS_WITHIN, late};
use crate::fields::Fields;
use crate::listing::Listing;
use crate::page::Page;
use crate::visitors::Visitor;
use crate::work::Work;
use bridge::{Table, Unanswered};
use maud::{Markup, html};
use std::cell::Cell;
use std::time::Instant;

/// A request of somebody who has come in.
pub(crate) struct Asked<'a> {
    pub(crate) work: &'a Work,
    pub(crate) visitor: &'a Visitor,
    fields: Fields,
    is_out: Cell<bool>,
    begun: Instant,
}

/// Answer to a form.
pub(crate) enum Done {
    /// This is shown.
    Shown(Box<Page>),
    /// The browser goes there.
    To(&'static str),
}

/// Answer to a form, or why it was not done.
pub(crate) type Outcome = Result<Done, Unanswered>;

impl<'a> Asked<'a> {
    pub(crate) fn new(work: &'a Work, visitor: &'a Visitor, fields: Fields) -> Self {
        Self {
            work,
            visitor,
            fields,
            is_out: Cell::new(false),
            begun: Instant::now(),
        }
    }

    /// A field of the form or of the address; empty if it is not there.
    pub(crate) fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// Whether he may act, and see literals.
    pub(crate) fn may_act(&self) -> bool {
        self.visitor.pass.may_act
    }

    /// Whether his credentials have turned out to be good no more.
    pub(crate) fn is_out(&self) -> bool {
        self.is_out.get()
    }

    pub(super) async fn ask(&self, sql: &str) -> Result<Table, Unanswered> {
        // A page that asks many questions does not wait for each.
        if self.begun.elapsed() >= ANSWERS_WITHIN {
            return Err(Unanswered::Said(late()));
        }
        let answer = self.work.desk.ask(Some(&self.visitor.pass), sql).await;
        if answer == Err(Unanswered::Out) {
            self.is_out.set(true);
        }
        answer
    }

    pub(super) async fn list(&self, listing: &Listing) -> Markup {
        listing.show(&self.ask(listing.sql).await)
    }

    /// Tells the log what he does.
    pub(super) fn note(&self, words: &str) {
        let pass = &self.visitor.pass;
        self.work
            .log
            .line(&format!("web: {:?} from {}: {words}", pass.user, pass.from));
    }
}

/// Words in the place of what only administrators see.
pub(super) fn only_for_administrators(what: &str) -> Markup {
    html! { p.hint { (what) " only administrators see: they may have literals of statements in them." } }
}

/// A text of SQL.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
