//! The semantic read/write split: `read_hostgroup` and what belongs to it, in the JSON of a user or
//! of a hostgroup.

use serde_json::{Map, Value};

/// Where statements go that only read, and what counts as such.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// Where they go.
    pub read_hostgroup: u32,
    /// So many milliseconds after a session may have written, its reads stay with the writer; 0 for
    /// none.
    pub after_write_ms: u32,
    /// Functions and procedures of users that only read: `name`, or `schema.name`. A `*` at the end
    /// stands for any rest of the name.
    pub read_only_routines: Box<[Box<str>]>,
}

/// The members of the JSON that belong to it.
const MEMBERS: [&str; 3] = [
    "read_hostgroup",
    "read_after_write_ms",
    "read_only_routines",
];

/// Longer is no patience but another hostgroup.
const AFTER_WRITE_MS_MAX: u64 = 3_600_000;

impl Split {
    /// Whether a routine is on the list: a bare name there stands for all schemas, one with a
    /// schema for calls that name it and for bare ones from a session that is in it (`schema`); one
    /// with a star for those that name it (`of`).
    #[must_use]
    pub fn only_reads(&self, of: Option<&[u8]>, schema: &[u8], name: &[u8]) -> bool {
        let same = |listed: &str, called: &[u8]| match listed.strip_suffix('*') {
            // Without a name is what could not be read.
            Some(begin) => {
                !called.is_empty()
                    && called
                        .get(..begin.len())
                        .is_some_and(|called| called.eq_ignore_ascii_case(begin.as_bytes()))
            }
            None => listed.as_bytes().eq_ignore_ascii_case(called),
        };
        self.read_only_routines
            .iter()
            .any(|listed| match listed.split_once('.') {
                // A bare name may be that of a loadable function, which is of no schema and goes
                // before those of one.
                Some((_, rest)) if of.is_none() && rest.ends_with('*') => false,
                Some((listed_of, listed)) => {
                    listed_of.as_bytes() == of.unwrap_or(schema) && same(listed, name)
                }
                None => same(listed, name),
            })
    }

    /// Takes its members out of a JSON object. `Some(None)` is `"read_hostgroup": null`: nothing is
    /// split here, whatever holds elsewhere. What is wrong is told in words that follow the
    /// column's name.
    pub(crate) fn take(
        members: &mut Map<String, Value>,
        mut wrong: impl FnMut(String),
    ) -> Option<Option<Self>> {
        let [hostgroup, after, routines] = MEMBERS.map(|name| members.remove(name));
        let Some(hostgroup) = hostgroup else {
            for (name, _) in [
                ("read_after_write_ms", after),
                ("read_only_routines", routines),
            ]
            .iter()
            .filter(|(_, v)| v.is_some())
            {
                wrong(format!(
                    "has '{name}', which needs a 'read_hostgroup' beside it"
                ));
            }
            return None;
        };
        let mut number = |name: &str, value: &Value, max: u64| {
            let fitting = value
                .as_u64()
                .filter(|value| *value <= max)
                .and_then(|value| u32::try_from(value).ok());
            if fitting.is_none() {
                wrong(format!(
                    "has '{name}', which must be from 0 to {max}; '{value}' is not"
                ));
            }
            fitting.unwrap_or_default()
        };
        if hostgroup.is_null() {
            return Some(None);
        }
        let read_hostgroup = number("read_hostgroup", &hostgroup, i32::MAX as u64);
        let after_write_ms = after.map_or(0, |value| {
            number("read_after_write_ms", &value, AFTER_WRITE_MS_MAX)
        });
        let name = |value: &Value| {
            value
                .as_str()
                .filter(|name| !name.trim().is_empty())
                .map(Into::into)
        };
        let read_only_routines = match &routines {
            None => Some(Box::default()),
            Some(Value::Array(names)) => names.iter().map(name).collect(),
            Some(_) => None,
        };
        if read_only_routines.is_none() {
            wrong(r#"has 'read_only_routines', which must be an array of names such as ["price_of", "shop.report"]"#.into());
        }
        Some(Some(Self {
            read_hostgroup,
            after_write_ms,
            read_only_routines: read_only_routines.unwrap_or_default(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(json: &str) -> (Option<Option<Split>>, Vec<String>) {
        let Ok(Value::Object(mut members)) = serde_json::from_str(json) else {
            panic!("{json}")
        };
        let mut wrong = Vec::new();
        let split = Split::take(&mut members, |words| wrong.push(words));
        assert!(members.keys().all(|name| name == "other"), "{members:?}");
        (split, wrong)
    }

    #[test]
    fn the_members_are_taken_and_checked() {
        assert_eq!(taken(r#"{"other":1}"#), (None, vec![]));
        assert_eq!(taken(r#"{"read_hostgroup":null}"#), (Some(None), vec![]));
        let (split, wrong) = taken(
            r#"{"read_hostgroup":2,"read_after_write_ms":500,"read_only_routines":["f","shop.g"],"other":1}"#,
        );
        let split = split.flatten().unwrap();
        assert_eq!(
            (
                split.read_hostgroup,
                split.after_write_ms,
                split.read_only_routines.len(),
                wrong.len()
            ),
            (2, 500, 2, 0)
        );
        for (json, words) in [
            (
                r#"{"read_hostgroup":-1}"#,
                "has 'read_hostgroup', which must be from 0 to 2147483647; '-1' is not",
            ),
            (
                r#"{"read_hostgroup":"2"}"#,
                "has 'read_hostgroup', which must be from 0 to 2147483647; '\"2\"' is not",
            ),
            (
                r#"{"read_hostgroup":1,"read_after_write_ms":3600001}"#,
                "has 'read_after_write_ms', which must be from 0 to 3600000; '3600001' is not",
            ),
            (
                r#"{"read_after_write_ms":5}"#,
                "has 'read_after_write_ms', which needs a 'read_hostgroup' beside it",
            ),
            (
                r#"{"read_only_routines":[]}"#,
                "has 'read_only_routines', which needs a 'read_hostgroup' beside it",
            ),
            (
                r#"{"read_hostgroup":1,"read_only_routines":[5]}"#,
                "has 'read_only_routines', which must be an array of names such as [\"price_of\", \"shop.report\"]",
            ),
        ] {
            assert_eq!(taken(json).1, [words], "{json}");
        }
    }

    #[test]
    fn a_routine_is_found_by_its_name_in_any_case_and_by_its_schema_as_written() {
        let split = Split {
            read_only_routines: Box::new(["f".into(), "shop.g".into()]),
            ..Split::default()
        };
        for (schema, name, listed) in [
            ("", "F", true),
            ("any", "f", true),
            ("shop", "G", true),
            ("", "g", false),
            ("Shop", "g", false),
            ("shop", "h", false),
        ] {
            assert_eq!(
                split.only_reads(
                    (!schema.is_empty()).then_some(schema.as_bytes()),
                    b"reports",
                    name.as_bytes()
                ),
                listed,
                "{schema}.{name}"
            );
        }
    }

    #[test]
    fn a_star_at_the_end_stands_for_the_rest_of_a_name() {
        let split = Split {
            read_only_routines: Box::new(["get_*".into(), "reports.*".into(), "a*b".into()]),
            ..Split::default()
        };
        for (schema, name, listed) in [
            ("", "GET_price", true),
            ("shop", "get_", true),
            ("shop", "get", false),
            ("shop", "forget_it", false),
            ("reports", "anything", true),
            ("Reports", "anything", false),
            // Its session is in `reports`.
            ("", "sys_exec", false),
            ("", "aXb", false),
            ("reports", "", false),
        ] {
            assert_eq!(
                split.only_reads(
                    (!schema.is_empty()).then_some(schema.as_bytes()),
                    b"reports",
                    name.as_bytes()
                ),
                listed,
                "{schema}.{name}"
            );
        }
    }
}
