//! What a connection has besides variables: user variables, temporary tables, locks, the last id,
//! counts and warnings. Each client has one of its own, in which the same statements say what a
//! server has to answer.
//!
//! ```text
//! SELECT 'tag' INTO @a                          SELECT item, … [FROM vars FOR UPDATE]   where an item is
//! CREATE TEMPORARY TABLE t, DROP …              'tag', @a, HEX(@a), COLLATION(@a), @@SESSION.x, LAST_INSERT_ID(), ROW_COUNT(),
//! INSERT INTO t VALUES ('tag')                  FOUND_ROWS(), CONNECTION_ID(), GET_LOCK('name', 0), RELEASE_LOCK('name'), CAST('7' AS SIGNED)
//! SELECT tag FROM t                             SELECT tag FROM ids WHERE id = LAST_INSERT_ID() FOR UPDATE
//! LOCK TABLES log WRITE, UNLOCK TABLES          SELECT 'tag' FROM warny, … FROM nowhere [FOR UPDATE], SHOW WARNINGS
//! INSERT INTO ids VALUES ('tag'), …             INSERT INTO fires VALUES ('tag'), CALL change('tag'): they set a variable,
//!                                               CALL also @b, of which nobody tells, as INSERT INTO hides VALUES ('tag') does:
//!                                               of that it is told that something has changed. CALL hide('tag') sets @b only. What is left: SELECT s.*, …
//!                                               SHOW ERRORS, SHOW COUNT(*) WARNINGS, SHOW COUNT(*) ERRORS, SELECT @@warning_count
//! HANDLER h OPEN, READ FIRST, READ NEXT, CLOSE  SELECT 'tag', NEXTVAL(s) …, LASTVAL(s) …
//! ```

use crate::mind::{Complaint, SCHEMAS, no_schema};
use std::collections::BTreeMap;

/// Answer of a server: rows, or an OK with numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) columns: usize,
    pub(crate) rows: Vec<Vec<Option<String>>>,
    pub(crate) affected: u64,
    pub(crate) insert_id: u64,
    pub(crate) warnings: u16,
    /// A session variable that a program has set, and its value.
    pub(crate) changed: Option<(&'static str, String)>,
    /// Whether something has changed beside it that has no name.
    pub(crate) unnamed: bool,
}

/// State that all connections of a server share.
#[derive(Debug, Default)]
pub(crate) struct Ground {
    pub(crate) log: Vec<String>,
    /// User locks, and whose they are.
    pub(crate) locks: BTreeMap<String, u32>,
    pub(crate) ids: BTreeMap<u64, String>,
    /// XA transactions that are prepared: what they will write, and the connection that they are
    /// still bound to.
    pub(crate) xa: BTreeMap<String, (Vec<String>, Option<u32>)>,
    /// One that is prepared is not bound to its connection any more.
    pub(crate) detaches: bool,
    /// How many columns somebody has added to `echo`.
    pub(crate) added: usize,
    /// The last number of its sequence.
    pub(crate) sequence: u64,
    /// Lines that the server has of another one's log, if it follows one.
    pub(crate) copy: Option<Vec<String>>,
    /// The schema that there is not here.
    pub(crate) missing: Option<&'static str>,
}

impl Ground {
    /// The connection is over.
    pub(crate) fn leave(&mut self, connection: u32) {
        self.locks.retain(|_, holder| *holder != connection);
        self.xa
            .values_mut()
            .filter(|(_, bound)| *bound == Some(connection))
            .for_each(|(_, bound)| *bound = None);
    }

    /// Whether there is a schema of that name.
    pub(crate) fn knows_schema(&self, name: &str) -> Result<(), Complaint> {
        if SCHEMAS.contains(&name) && self.missing != Some(name) {
            Ok(())
        } else {
            Err(no_schema(name))
        }
    }

    /// Returns the lines that anybody sees here.
    pub(crate) fn committed(&self) -> &[String] {
        self.copy.as_deref().unwrap_or(&self.log)
    }

    /// So are all.
    pub(crate) fn crash(&mut self) {
        self.locks.clear();
        self.xa.values_mut().for_each(|(_, bound)| *bound = None);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Belongings {
    pub(crate) user: BTreeMap<String, Option<String>>,
    tables: BTreeMap<String, Vec<String>>,
    locked: bool,
    locks: Vec<String>,
    /// Handlers that are open: how far each has read.
    handlers: BTreeMap<String, u64>,
    /// LASTVAL() of the sequence.
    pub(crate) last_value: Option<u64>,
    pub(crate) insert_id: u64,
    pub(crate) row_count: i64,
    /// FOUND_ROWS(), if it is known.
    pub(crate) found: Option<u64>,
    warnings: Vec<(&'static str, u16, String)>,
    /// `@@warning_count`, of the statement before.
    warned: usize,
    /// The client that has temporary tables or locks here.
    owner: Option<String>,
}

/// The text between the first two quotes.
fn quoted(sql: &str) -> Option<&str> {
    sql.split('\'').nth(1)
}

/// The client of a tag.
pub(crate) fn client(sql: &str) -> Option<&str> {
    quoted(sql)?
        .split_once('-')
        .map(|(client, _)| client)
        .filter(|client| client.starts_with('c'))
}

fn no_handler(name: &str) -> Complaint {
    Complaint(1109, format!("Unknown table '{name}' in HANDLER"))
}

/// Items between commas that are in no parentheses and no quotes.
fn items(text: &str) -> Vec<&str> {
    let (mut all, mut from, mut depth, mut string) = (Vec::new(), 0, 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => string = !string,
            '(' if !string => depth += 1,
            ')' if !string => depth -= 1,
            ',' if !string && depth == 0 => {
                all.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(text[from..].trim());
    all
}

impl Belongings {
    /// Gives back what others wait for: the connection is over or was reset.
    pub(crate) fn let_go(&mut self, ground: &mut Ground) {
        for name in self.locks.drain(..) {
            ground.locks.remove(&name);
        }
    }

    /// Finds what the connection has that must never be another client's, and whose it is.
    pub(crate) fn of_somebody_else(&self, sql: &str) -> Option<(&str, &'static str)> {
        let owner = self.owner.as_deref()?;
        client(sql).filter(|client| *client != owner)?;
        let alone = |name: &&str| {
            [
                "a temporary table",
                "locked tables",
                "a user lock",
                "a handler",
                "a sequence",
            ]
            .contains(name)
        };
        self.names().find(alone).map(|what| (owner, what))
    }

    /// Whether SHOW WARNINGS would show something.
    pub(crate) fn warns(&self) -> bool {
        !self.warnings.is_empty()
    }

    /// Names what the connection has now.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        [
            ("user variables", !self.user.is_empty()),
            ("a temporary table", !self.tables.is_empty()),
            ("locked tables", self.locked),
            ("a user lock", !self.locks.is_empty()),
            ("a handler", !self.handlers.is_empty()),
            ("a sequence", self.last_value.is_some()),
            ("an insert id", self.insert_id != 0),
            ("warnings", !self.warnings.is_empty()),
        ]
        .into_iter()
        .filter_map(|(name, has)| has.then_some(name))
    }

    /// Anything but a question about them ends what there is to tell.
    pub(crate) fn begin(&mut self, sql: &str) {
        if !sql.starts_with("SHOW ") {
            self.warned = self.warnings.len();
            self.warnings.clear();
        }
    }

    /// Notes that the statement failed.
    pub(crate) fn fail(&mut self, complaint: &Complaint) {
        self.warnings = vec![("Error", complaint.0, complaint.1.clone())];
        self.row_count = -1;
    }

    fn owned_by(&mut self, sql: &str) {
        self.owner = client(sql).map(str::to_owned).or_else(|| self.owner.take());
    }

    /// Returns what programs may have left: as MySQL's performance schema tells it. `plain`: there
    /// is no role.
    pub(crate) fn left(&self, plain: bool) -> Answer {
        let locks = self.locks.len() + usize::from(self.locked);
        let first = [
            "1",
            &locks.to_string(),
            "0",
            "1",
            if plain { "1" } else { "0" },
            &self.user.len().to_string(),
        ]
        .map(|cell| Some(cell.to_owned()));
        let hex = |name: &String| Some(name.bytes().map(|byte| format!("{byte:02X}")).collect());
        let names = self
            .user
            .keys()
            .map(hex)
            .chain(self.user.is_empty().then_some(None));
        let rows = names
            .map(|name| first.iter().cloned().chain([name]).collect())
            .collect();
        Answer {
            columns: 7,
            rows,
            ..Answer::default()
        }
    }

    /// The answer of connection `me`, if it is a statement of this language. `variable`: what a
    /// session variable is.
    pub(crate) fn say(
        &mut self,
        ground: &mut Ground,
        me: u32,
        sql: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Result<Answer, Complaint>> {
        let words: Vec<&str> = sql.split_whitespace().collect();
        let done = |affected| {
            Some(Ok(Answer {
                affected,
                ..Answer::default()
            }))
        };
        let missing = |table: &str| {
            Some(Err(Complaint(
                1146,
                format!("Table '{table}' doesn't exist"),
            )))
        };
        match words.as_slice() {
            ["CREATE", "TEMPORARY", "TABLE", name, ..] => {
                self.owned_by(sql);
                self.tables.insert((*name).to_owned(), Vec::new());
                done(0)
            }
            ["DROP", "TEMPORARY", "TABLE", name] => match self.tables.remove(*name) {
                Some(_) => done(0),
                None => Some(Err(Complaint(1051, format!("Unknown table '{name}'")))),
            },
            ["INSERT", "INTO", name @ ("t1" | "t2"), "VALUES", _] => {
                match self.tables.get_mut(*name) {
                    Some(table) => {
                        table.push(quoted(sql)?.to_owned());
                        done(1)
                    }
                    None => missing(name),
                }
            }
            ["SELECT", "tag", "FROM", name @ ("t1" | "t2")] => match self.tables.get(*name) {
                Some(table) => Some(Ok(Answer {
                    columns: 1,
                    rows: table.iter().map(|tag| vec![Some(tag.clone())]).collect(),
                    ..Answer::default()
                })),
                None => missing(name),
            },
            ["LOCK", "TABLES", ..] => {
                self.owned_by(sql);
                self.locked = true;
                done(0)
            }
            ["HANDLER", name, "OPEN", ..] => {
                self.owned_by(sql);
                self.handlers.insert((*name).to_owned(), 0);
                done(0)
            }
            ["HANDLER", name, "READ", how] => match self.handlers.get_mut(*name) {
                Some(at) => {
                    *at = if *how == "FIRST" { 1 } else { *at + 1 };
                    Some(Ok(Answer {
                        columns: 1,
                        rows: vec![vec![Some(at.to_string())]],
                        ..Answer::default()
                    }))
                }
                None => Some(Err(no_handler(name))),
            },
            ["HANDLER", name, "CLOSE"] => match self.handlers.remove(*name) {
                Some(_) => done(0),
                None => Some(Err(no_handler(name))),
            },
            ["UNLOCK", "TABLES"] => {
                self.locked = false;
                done(0)
            }
            ["INSERT", "INTO", "ids", "VALUES", ..] => {
                let tags: Vec<&str> = sql.split('\'').skip(1).step_by(2).collect();
                let first = ground.ids.len() as u64 + 1;
                for (id, tag) in (first..).zip(&tags) {
                    ground.ids.insert(id, (*tag).to_owned());
                }
                self.insert_id = first;
                Some(Ok(Answer {
                    affected: tags.len() as u64,
                    insert_id: first,
                    ..Answer::default()
                }))
            }
            ["SELECT", "tag", "FROM", "ids", ..] => {
                let tag = ground.ids.get(&self.insert_id).cloned();
                Some(Ok(Answer {
                    columns: 1,
                    rows: tag.into_iter().map(|tag| vec![Some(tag)]).collect(),
                    ..Answer::default()
                }))
            }
            ["INSERT", "INTO", table @ ("fires" | "hides"), "VALUES", _] | ["CALL", table] => {
                let unnamed = *table == "hides";
                if unnamed || sql.starts_with("CALL") {
                    // Of this one nobody tells more than that something has changed, and of a CALL
                    // not even that.
                    self.user
                        .insert("b".to_owned(), Some(quoted(sql)?.to_owned()));
                }
                let tells = !sql.starts_with("CALL hide(");
                let changed = tells.then_some(("time_zone", quoted(sql)?.to_owned()));
                Some(Ok(Answer {
                    affected: 1,
                    changed,
                    unnamed,
                    ..Answer::default()
                }))
            }
            ["SELECT", tag, "FROM", "warny", ..] => {
                self.warnings =
                    vec![("Warning", 1292, format!("Truncated incorrect value: {tag}"))];
                Some(Ok(Answer {
                    columns: 1,
                    rows: vec![vec![Some(quoted(sql)?.to_owned())]],
                    warnings: 1,
                    ..Answer::default()
                }))
            }
            ["SELECT", tag, "FROM", "nowhere", ..] => missing(tag.trim_matches('\'')),
            ["SHOW", "COUNT(*)", what] => {
                let count = self
                    .warnings
                    .iter()
                    .filter(|(level, ..)| *what == "WARNINGS" || *level == "Error")
                    .count();
                Some(Ok(Answer {
                    columns: 1,
                    rows: vec![vec![Some(count.to_string())]],
                    ..Answer::default()
                }))
            }
            ["DO", "0"] => done(0),
            ["SHOW", what @ ("WARNINGS" | "ERRORS")] => {
                let row = |(level, code, words): &(&str, u16, String)| {
                    vec![
                        Some((*level).to_owned()),
                        Some(code.to_string()),
                        Some(words.clone()),
                    ]
                };
                let listed = self
                    .warnings
                    .iter()
                    .filter(|(level, ..)| *what == "WARNINGS" || *level == "Error");
                Some(Ok(Answer {
                    columns: 3,
                    rows: listed.map(row).collect(),
                    ..Answer::default()
                }))
            }
            ["SELECT", "1", "FROM", "(SELECT", "1)", "nothing"] => Some(Ok(Answer {
                columns: 1,
                rows: vec![vec![Some("1".to_owned())]],
                ..Answer::default()
            })),
            ["SELECT", _, "INTO", name] => {
                self.user.insert(
                    name.trim_start_matches('@').to_owned(),
                    Some(quoted(sql)?.to_owned()),
                );
                done(1)
            }
            ["SELECT", ..] => {
                let text = sql.strip_prefix("SELECT ")?;
                let text = text.strip_suffix(" FROM vars FOR UPDATE").unwrap_or(text);
                let mut row = Vec::new();
                for item in items(text) {
                    row.push(self.item(ground, me, item, &variable)?);
                }
                if !self.locks.is_empty() || self.last_value.is_some() {
                    self.owned_by(sql);
                }
                Some(Ok(Answer {
                    columns: row.len(),
                    rows: vec![row],
                    ..Answer::default()
                }))
            }
            _ => None,
        }
    }

    fn item(
        &mut self,
        ground: &mut Ground,
        me: u32,
        item: &str,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Option<Option<String>> {
        let inside = |function: &str| {
            item.strip_prefix(function)?
                .strip_prefix('(')?
                .strip_suffix(')')
        };
        let user = |name: &str| {
            self.user
                .get(name.trim_start_matches('@').trim_matches('`'))
                .cloned()
                .flatten()
        };
        if item == "@@warning_count" {
            return Some(Some(self.warned.to_string()));
        }
        if let Some(name) = item
            .strip_prefix("@@SESSION.")
            .or_else(|| item.strip_prefix("@@GLOBAL."))
            .or_else(|| item.strip_prefix("@@"))
        {
            return variable(name).map(Some);
        }
        if item.starts_with('@') {
            return Some(user(item));
        }
        if let Some(name) = inside("HEX") {
            return Some(
                user(name).map(|value| value.bytes().map(|byte| format!("{byte:02X}")).collect()),
            );
        }
        if inside("COLLATION").is_some() {
            return Some(Some("latin1_swedish_ci".to_owned()));
        }
        if item == "LAST_INSERT_ID()" {
            return Some(Some(self.insert_id.to_string()));
        }
        if item == "NEXTVAL(s)" {
            ground.sequence += 1;
            self.last_value = Some(ground.sequence);
        }
        if item == "NEXTVAL(s)" || item == "LASTVAL(s)" {
            return Some(self.last_value.map(|value| value.to_string()));
        }
        if item == "FOUND_ROWS()" {
            return Some(Some(self.found.unwrap_or(0).to_string()));
        }
        if item == "CONNECTION_ID()" {
            return Some(Some(me.to_string()));
        }
        if item == "ROW_COUNT()" {
            return Some(Some(self.row_count.to_string()));
        }
        if let Some(name) = inside("GET_LOCK").and_then(quoted) {
            let free = ground.locks.get(name).is_none_or(|holder| *holder == me);
            if free && ground.locks.insert(name.to_owned(), me).is_none() {
                self.locks.push(name.to_owned());
            }
            return Some(Some(u8::from(free).to_string()));
        }
        if let Some(name) = item
            .strip_prefix("IS_USED_LOCK(")
            .and_then(|rest| rest.strip_suffix(")<=>CONNECTION_ID()"))
            .and_then(quoted)
        {
            return Some(Some(
                u8::from(ground.locks.get(name) == Some(&me)).to_string(),
            ));
        }
        if let Some(name) = inside("RELEASE_LOCK").and_then(quoted) {
            let mine = ground.locks.get(name) == Some(&me);
            if mine {
                ground.locks.remove(name);
                self.locks.retain(|lock| lock != name);
            }
            return Some(Some(u8::from(mine).to_string()));
        }
        if item.starts_with("CAST(") {
            return Some(
                quoted(item)?
                    .parse()
                    .ok()
                    .map(|number: i64| number.to_string()),
            );
        }
        let tag = item.strip_prefix('\'')?.strip_suffix('\'')?;
        Some(Some(tag.to_owned()))
    }
}

/// Returns what `@x = …` sets, as far as it is of this language: a literal, NULL, another variable,
/// or a string in hexadecimal digits.
pub(crate) fn value(text: &str, user: &BTreeMap<String, Option<String>>) -> Option<String> {
    if let Some(name) = text.strip_prefix('@') {
        return user.get(name.trim_matches('`')).cloned().flatten();
    }
    if text.starts_with('_') {
        let digits = quoted(text)?;
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        return String::from_utf8(bytes?).ok();
    }
    (!text.eq_ignore_ascii_case("NULL")).then(|| text.trim_matches('\'').to_owned())
}
