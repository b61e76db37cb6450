//! Rows of `mysql_query_rules` to rules: what is refused, and why.

use super::expressions::{self, Compiled, Expressions};
use super::{AddressPattern, Help, Rule, Rules};
use crate::refusal::{Notices, Refusals};
use crate::{Dialect, Pattern, Refusal, Replacement, RuleRow};
use serde_json::Value;
use std::sync::Arc;

const HOSTGROUP: (i64, i64) = (0, i32::MAX as i64);
const FLAG: (i64, i64) = (0, u32::MAX as i64);

/// Members that `attributes` may have.
const MEMBERS: [&str; 8] = [
    "flagOUTs",
    "cache_invalidate",
    "max_rows",
    "mirror_compare",
    "priority",
    "script",
    "statements_per_sec",
    "trace",
];

/// The active rules in order, and notices. Expressions that are among those of before are taken
/// over.
pub(super) fn chain(
    rows: impl IntoIterator<Item = RuleRow>,
    (dialect, before): (Dialect, &Rules),
    refused: &mut Vec<Refusal>,
    help: &dyn Help,
) -> (Vec<Rule>, Vec<Refusal>) {
    let mut refusals = Refusals::of("mysql_query_rules");
    let mut notices = Notices::of("mysql_query_rules");
    let mut rows: Vec<_> = rows.into_iter().filter(|row| row.active != 0).collect();
    rows.sort_by_key(|row| row.rule_id);
    for pair in rows
        .windows(2)
        .filter(|pair| pair[0].rule_id == pair[1].rule_id)
    {
        refusals.add(|| key(&pair[0]), "rule_id", "has a row already");
    }
    let expressions = expressions::all(&rows, dialect, before, help);
    let check = |(row, expressions): (RuleRow, _)| {
        help.pause();
        Checking {
            row: &row,
            refusals: &mut refusals,
            notices: &mut notices,
        }
        .rule(expressions)
    };
    let chain = rows.into_iter().zip(expressions).map(check).collect();
    refused.extend(refusals.into_list());
    (chain, notices.into_list())
}

fn key(row: &RuleRow) -> String {
    format!("rule_id {}", row.rule_id)
}

struct Checking<'a> {
    row: &'a RuleRow,
    refusals: &'a mut Refusals,
    notices: &'a mut Notices,
}

impl Checking<'_> {
    fn refuse(&mut self, column: &'static str, words: impl Into<String>) {
        self.refusals.add(|| key(self.row), column, words);
    }

    fn number<T: TryFrom<i64> + Default>(
        &mut self,
        column: &'static str,
        value: Option<i64>,
        range: (i64, i64),
    ) -> Option<T> {
        self.refusals
            .number_or_null(|| key(self.row), column, value, range)
    }

    /// A flag that is there always.
    fn is_on(&mut self, column: &'static str, value: i64) -> bool {
        self.flag(column, Some(value)) == Some(true)
    }

    fn flag(&mut self, column: &'static str, value: Option<i64>) -> Option<bool> {
        self.number::<u8>(column, value, (0, 1))
            .map(|value| value == 1)
    }

    fn ms<T: TryFrom<i64> + Default>(
        &mut self,
        column: &'static str,
        value: Option<i64>,
    ) -> Option<T> {
        self.number(column, value, (0, i64::from(i32::MAX)))
    }

    /// As ProxySQL reads it, a negative one is none.
    fn hostgroup(&mut self, column: &'static str, value: Option<i64>) -> Option<u32> {
        self.number(column, value.filter(|hostgroup| *hostgroup >= 0), HOSTGROUP)
    }

    fn rule(mut self, expressions: Expressions) -> Rule {
        self.what_does_less_than_it_says();
        let row = self.row;
        let (_, everywhere, modifiers) = modifiers(row.re_modifiers.as_deref());
        self.look_at_modifiers();
        let match_digest = self.pattern(
            "match_digest",
            row.match_digest.as_deref(),
            expressions.digest,
        );
        let match_pattern = self.pattern(
            "match_pattern",
            row.match_pattern.as_deref(),
            expressions.text,
        );
        let replace = self
            .replacement(match_pattern.as_ref())
            .map(|replacement| (Arc::new(replacement), everywhere));
        let digest = self.digest();
        let shown = RuleRow {
            re_modifiers: Some(modifiers.into()),
            digest: digest.map(|digest| format!("0x{digest:016X}")),
            ..row.clone()
        };
        let text = |text: &Option<String>| {
            text.as_deref()
                .filter(|text| !text.is_empty())
                .map(Arc::from)
        };
        let attributes = self.attributes();
        Rule {
            rule_id: row.rule_id,
            flag_in: self
                .number("flagIN", Some(row.flagIN), FLAG)
                .unwrap_or_default(),
            username: text(&row.username),
            schemaname: text(&row.schemaname),
            client_addr: row
                .client_addr
                .as_deref()
                .filter(|text| !text.is_empty())
                .map(AddressPattern::new),
            proxy_addr: text(&row.proxy_addr),
            proxy_port: self.number("proxy_port", row.proxy_port, (0, 65_535)),
            digest,
            match_digest,
            match_pattern,
            negate_match_pattern: self.is_on("negate_match_pattern", row.negate_match_pattern),
            flag_out: self.number("flagOUT", row.flagOUT, FLAG),
            flag_outs: self.flag_outs(&attributes),
            replace,
            destination_hostgroup: self
                .hostgroup("destination_hostgroup", row.destination_hostgroup),
            cache_ttl_ms: self.number("cache_ttl", row.cache_ttl, (1, i64::from(i32::MAX))),
            cache_empty_result: self.flag("cache_empty_result", row.cache_empty_result),
            cache_timeout_ms: self.ms("cache_timeout", row.cache_timeout),
            cache_invalidate: self.cache_invalidate(&attributes),
            reconnect: self.flag("reconnect", row.reconnect),
            timeout_ms: self.ms("timeout", row.timeout),
            retries: self.number("retries", row.retries, (0, 1000)),
            delay_ms: self.ms("delay", row.delay),
            next_flag_in: self.number("next_query_flagIN", row.next_query_flagIN, FLAG),
            error_msg: row.error_msg.as_deref().map(Arc::from),
            ok_msg: row.OK_msg.as_deref().map(Arc::from),
            multiplex: self.number("multiplex", row.multiplex, (0, 2)),
            gtid_from_hostgroup: self.hostgroup("gtid_from_hostgroup", row.gtid_from_hostgroup),
            log: self.flag("log", row.log),
            rows_max: self.whole(&attributes, "max_rows"),
            mirror_compare: self.truth(&attributes, "mirror_compare"),
            statements_per_sec: self.rate(&attributes),
            priority: self.priority(&attributes),
            trace: self.truth(&attributes, "trace"),
            script: self.script(&attributes),
            mirror_hostgroup: self.number("mirror_hostgroup", row.mirror_hostgroup, HOSTGROUP),
            mirror_flag_out: self.number("mirror_flagOUT", row.mirror_flagOUT, FLAG),
            apply: self.is_on("apply", row.apply),
            row: Arc::new(shown),
        }
    }

    fn look_at_modifiers(&mut self) {
        let row = self.row;
        for word in row
            .re_modifiers
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
        {
            if !["", "CASELESS", "GLOBAL"]
                .iter()
                .any(|known| known.eq_ignore_ascii_case(word))
            {
                self.notices.add(
                    || key(row),
                    "re_modifiers",
                    &format!("has '{word}', which means nothing; CASELESS and GLOBAL do"),
                );
            }
        }
    }

    fn what_does_less_than_it_says(&mut self) {
        let row = self.row;
        let noticed = [
            (
                "sticky_conn",
                row.sticky_conn == Some(1),
                "is kept; it does nothing, as in ProxySQL",
            ),
            (
                "proxy_addr",
                row.proxy_addr
                    .as_deref()
                    .is_some_and(|address| matches!(address, "0.0.0.0" | "::")),
                "matches nobody: it is compared with the address that a client connected to, not with that of the listener",
            ),
        ];
        for (column, _, words) in noticed.into_iter().filter(|(_, set, _)| *set) {
            self.notices.add(|| key(row), column, words);
        }
    }

    fn pattern(
        &mut self,
        column: &'static str,
        text: Option<&str>,
        compiled: Option<Compiled>,
    ) -> Option<Pattern> {
        match compiled? {
            Ok(pattern) => Some(pattern),
            Err(words) => {
                self.refuse(
                    column,
                    format!(
                        "'{}' is not a valid expression: {words}",
                        text.unwrap_or_default()
                    ),
                );
                None
            }
        }
    }

    fn replacement(&mut self, pattern: Option<&Pattern>) -> Option<Replacement> {
        let text = self.row.replace_pattern.as_deref()?;
        let Some(pattern) = pattern else {
            if self.row.match_pattern.is_none() {
                self.refuse("replace_pattern", "needs a match_pattern");
            }
            return None;
        };
        match Replacement::parse(text, pattern.groups()) {
            Ok(replacement) => Some(replacement),
            Err(words) => {
                self.refuse("replace_pattern", words);
                None
            }
        }
    }

    fn digest(&mut self) -> Option<u64> {
        let text = self
            .row
            .digest
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty())?;
        match c_number(text) {
            // 0 asks nothing, as in ProxySQL.
            Some(0) => None,
            Some(digest) => Some(digest),
            None => {
                let words = format!("must be a number such as 0x1D8D2DD2EE6E8B0A; '{text}' is not");
                self.refuse("digest", words);
                None
            }
        }
    }

    /// The column `attributes`: JSON, or nothing.
    fn attributes(&mut self) -> Value {
        let json = self.row.attributes.as_str();
        if json.is_empty() {
            return Value::Null;
        }
        let members = match serde_json::from_str(json) {
            Ok(Value::Object(members)) => members,
            Ok(other) => {
                self.refuse(
                    "attributes",
                    format!("must be a JSON object or empty; {other} is not"),
                );
                return Value::Null;
            }
            Err(error) => {
                self.refuse("attributes", format!("must be JSON or empty: {error}"));
                return Value::Null;
            }
        };
        let unknown: Vec<_> = members
            .keys()
            .map(String::as_str)
            .filter(|name| !MEMBERS.contains(name))
            .collect();
        if !unknown.is_empty() {
            let words = format!(
                "has members that mean nothing here: {}; known are {}",
                unknown.join(", "),
                MEMBERS.join(", ")
            );
            self.notices.add(|| key(self.row), "attributes", &words);
        }
        Value::Object(members)
    }

    /// `{"cache_invalidate":true}`
    fn cache_invalidate(&mut self, attributes: &Value) -> Option<bool> {
        let value = attributes.get("cache_invalidate")?;
        let switch = value.as_bool();
        if switch.is_none() {
            self.refuse(
                "attributes",
                format!("has cache_invalidate, which must be true or false; {value} is not"),
            );
        }
        switch
    }

    /// `{"max_rows":1000}`
    fn whole(&mut self, attributes: &Value, name: &str) -> Option<u64> {
        let value = attributes.get(name)?;
        let number = value.as_u64().filter(|number| *number > 0);
        if number.is_none() {
            self.refuse(
                "attributes",
                format!("has {name}, which must be a whole number above 0; {value} is not"),
            );
        }
        number
    }

    /// `{"statements_per_sec":100}`
    fn rate(&mut self, attributes: &Value) -> Option<u32> {
        let rate = crate::rate(attributes.get("statements_per_sec")?);
        rate.map_err(|words| {
            self.refuse(
                "attributes",
                format!("has statements_per_sec, which {words}"),
            );
        })
        .ok()
    }

    /// `{"priority":7}`
    fn priority(&mut self, attributes: &Value) -> Option<u8> {
        let priority = crate::admission::priority(attributes.get("priority")?);
        priority
            .map_err(|words| self.refuse("attributes", format!("has priority, which {words}")))
            .ok()
    }

    /// `{"script":"name"}`
    fn script(&mut self, attributes: &Value) -> Option<Arc<str>> {
        let value = attributes.get("script")?;
        let name = value.as_str().filter(|name| !name.is_empty());
        if name.is_none() {
            let words = format!("has script, which must be the name of a script; {value} is not");
            self.refuse("attributes", words);
        }
        name.map(Arc::from)
    }

    /// `{"mirror_compare":true}`
    fn truth(&mut self, attributes: &Value, name: &str) -> Option<bool> {
        let value = attributes.get(name)?;
        if value.as_bool().is_none() {
            self.refuse(
                "attributes",
                format!("has {name}, which must be true or false; {value} is neither"),
            );
        }
        value.as_bool()
    }

    /// `{"flagOUTs":[{"id":1,"weight":3}, …]}`
    fn flag_outs(&mut self, attributes: &Value) -> Option<Arc<[(u32, u32)]>> {
        let outs = attributes.get("flagOUTs")?;
        let one = |out: &Value| {
            let part = |name| {
                out.get(name)
                    .and_then(Value::as_u64)
                    .and_then(|value| u32::try_from(value).ok())
            };
            Some((part("id")?, part("weight")?))
        };
        let outs: Option<Arc<[_]>> = outs
            .as_array()
            .and_then(|outs| outs.iter().map(one).collect());
        match outs {
            Some(outs) if outs.iter().any(|(_, weight)| *weight > 0) => Some(outs),
            _ => {
                let words = r#"has flagOUTs, which must be like [{"id":1,"weight":3}] with a weight above 0"#;
                self.refuse("attributes", words);
                None
            }
        }
    }
}

/// CASELESS and GLOBAL, and how the runtime table shows them. Other words mean nothing.
pub(super) fn modifiers(text: Option<&str>) -> (bool, bool, &'static str) {
    let has = |word: &str| {
        text.is_some_and(|text| {
            text.split(',')
                .any(|part| part.trim().eq_ignore_ascii_case(word))
        })
    };
    match (has("CASELESS"), has("GLOBAL")) {
        (true, true) => (true, true, "CASELESS,GLOBAL"),
        (true, false) => (true, false, "CASELESS"),
        (false, true) => (false, true, "GLOBAL"),
        (false, false) => (false, false, ""),
    }
}

/// A number as C writes it: `0x…` is hexadecimal, a leading 0 is octal.
pub(crate) fn c_number(text: &str) -> Option<u64> {
    let digits = |text: &str, radix| {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if plain {
            u64::from_str_radix(text, radix).ok()
        } else {
            None
        }
    };
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return digits(hex, 16);
    }
    match text.strip_prefix('0') {
        Some("") => Some(0),
        Some(octal) => digits(octal, 8),
        None => digits(text, 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Variables;

    fn rule(rule_id: i64) -> RuleRow {
        RuleRow {
            rule_id,
            active: 1,
            ..RuleRow::default()
        }
    }

    fn refused(rows: Vec<RuleRow>) -> Vec<String> {
        let refusals = Rules::build(rows, [], &Variables::default()).unwrap_err();
        refusals.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_with_every_reason() {
        let words = refused(vec![
            RuleRow {
                mirror_hostgroup: Some(-1),
                attributes: r#"{"max_rows":0,"mirror_compare":1}"#.into(),
                ..rule(1)
            },
            RuleRow {
                gtid_from_hostgroup: Some(1 << 31),
                attributes: "[]".into(),
                ..rule(2)
            },
            RuleRow {
                match_digest: Some("^SELECT (".into()),
                ..rule(3)
            },
            RuleRow {
                digest: Some("0x1G".into()),
                retries: Some(2000),
                ..rule(4)
            },
            RuleRow {
                replace_pattern: Some("x".into()),
                ..rule(5)
            },
            RuleRow {
                attributes: r#"{"flagOUTs":[{"id":1,"weight":0}]}"#.into(),
                ..rule(6)
            },
            RuleRow {
                attributes: r#"{"cache_invalidate":1}"#.into(),
                ..rule(8)
            },
            rule(7),
            rule(7),
        ]);
        assert_eq!(
            words,
            [
                "mysql_query_rules (rule_id 7): rule_id has a row already",
                "mysql_query_rules (rule_id 1): attributes has max_rows, which must be a whole number above 0; 0 is not",
                "mysql_query_rules (rule_id 1): attributes has mirror_compare, which must be true or false; 1 is neither",
                "mysql_query_rules (rule_id 1): mirror_hostgroup must be from 0 to 2147483647; '-1' is not",
                "mysql_query_rules (rule_id 2): attributes must be a JSON object or empty; [] is not",
                "mysql_query_rules (rule_id 2): gtid_from_hostgroup must be from 0 to 2147483647; '2147483648' is not",
                "mysql_query_rules (rule_id 3): match_digest '^SELECT (' is not a valid expression: missing closing parenthesis (after 9 characters)",
                "mysql_query_rules (rule_id 4): digest must be a number such as 0x1D8D2DD2EE6E8B0A; '0x1G' is not",
                "mysql_query_rules (rule_id 4): retries must be from 0 to 1000; '2000' is not",
                "mysql_query_rules (rule_id 5): replace_pattern needs a match_pattern",
                r#"mysql_query_rules (rule_id 6): attributes has flagOUTs, which must be like [{"id":1,"weight":3}] with a weight above 0"#,
                "mysql_query_rules (rule_id 8): attributes has cache_invalidate, which must be true or false; 1 is not",
            ]
        );
    }

    #[test]
    fn what_does_less_than_it_says_is_told() {
        let causal = |hostgroup, rule_id| RuleRow {
            gtid_from_hostgroup: Some(hostgroup),
            ..rule(rule_id)
        };
        let bound = |address: &str, rule_id| RuleRow {
            proxy_addr: Some(address.into()),
            ..rule(rule_id)
        };
        let attributes = r#"{"max_rows":1,"flagOUT":2,"mirror":1}"#.to_owned();
        let rows = [
            causal(-1, 1),
            causal(7, 2),
            causal(8, 3),
            RuleRow {
                attributes,
                ..rule(4)
            },
            bound("0.0.0.0", 5),
            bound("::1", 6),
        ];
        let rules = Rules::build(rows, [], &Variables::default()).unwrap();
        assert_eq!(
            rules
                .chain()
                .iter()
                .map(|rule| rule.gtid_from_hostgroup)
                .collect::<Vec<_>>(),
            [None, Some(7), Some(8), None, None, None]
        );
        assert_eq!(
            rules
                .notices()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            [
                "mysql_query_rules (rule_id 4): attributes has members that mean nothing here: flagOUT, mirror; \
                 known are flagOUTs, cache_invalidate, max_rows, mirror_compare, priority, script, statements_per_sec, trace",
                "mysql_query_rules (rule_id 5): proxy_addr matches nobody: it is compared with the address that a client connected to, not with that of the listener",
            ]
        );
    }

    #[test]
    fn inactive_rules_are_left_out_and_what_they_say_does_not_matter() {
        let inactive = RuleRow {
            active: 0,
            match_digest: Some("(".into()),
            ..rule(2)
        };
        let rules = Rules::build([rule(3), inactive, rule(1)], [], &Variables::default()).unwrap();
        assert_eq!(
            rules.rows().map(|row| row.rule_id).collect::<Vec<_>>(),
            [1, 3]
        );
        assert!(!rules.needs_digest());
    }

    #[test]
    fn digests_are_numbers_as_c_writes_them() {
        for (text, value) in [
            ("0x1F", Some(31)),
            ("0XfF", Some(255)),
            ("010", Some(8)),
            ("10", Some(10)),
            ("0", Some(0)),
            ("0xFFFFFFFFFFFFFFFF", Some(u64::MAX)),
            ("0x1FFFFFFFFFFFFFFFF", None),
            ("09", None),
            ("+1", None),
            ("0x", None),
            ("ten", None),
        ] {
            assert_eq!(c_number(text), value, "{text}");
        }
        let rules = Rules::build(
            [RuleRow {
                digest: Some("0x1f".into()),
                ..rule(1)
            }],
            [],
            &Variables::default(),
        )
        .unwrap();
        assert_eq!(
            rules.rows().next().unwrap().digest.as_deref(),
            Some("0x000000000000001F")
        );
        assert!(rules.needs_digest());
    }

    #[test]
    fn modifiers_are_two_words_and_other_words_mean_nothing() {
        assert_eq!(
            modifiers(Some("caseless, global")),
            (true, true, "CASELESS,GLOBAL")
        );
        assert_eq!(modifiers(Some("CASELESS")), (true, false, "CASELESS"));
        assert_eq!(modifiers(Some("UNGREEDY")), (false, false, ""));
        assert_eq!(modifiers(None), (false, false, ""));
    }

    #[test]
    fn the_dialect_is_the_operators() {
        let row = RuleRow {
            match_pattern: Some("a(?!b)".into()),
            ..rule(1)
        };
        assert!(Rules::build([row.clone()], [], &Variables::default()).is_ok());
        let (re2, _) = Variables::build([("mysql-query_processor_regex", "2")]).unwrap();
        assert!(Rules::build([row], [], &re2).is_err());
    }

    /// A36, A37, A45: how many rules there are, and which of them it is, does not change how many
    /// are looked at.
    #[test]
    fn of_twenty_thousand_rules_only_the_one_that_can_match_is_looked_at() {
        let by_schema = |n| RuleRow {
            username: Some("u".into()),
            schemaname: Some(format!("shard_{n}")),
            ..rule(n)
        };
        let by_digest = |n| RuleRow {
            match_digest: Some(format!("^SELECT .* FROM t{n} WHERE")),
            ..rule(n)
        };
        let by_text = |n| RuleRow {
            match_pattern: Some(format!("FROM t{n} WHERE a='x'$")),
            ..rule(n)
        };
        let by_client = |n| RuleRow {
            client_addr: Some(format!("10.{}.{}.%", n / 256, n % 256)),
            ..rule(n)
        };
        let kinds: [&dyn Fn(i64) -> RuleRow; 4] = [&by_schema, &by_digest, &by_text, &by_client];
        for (kind, count) in kinds.into_iter().zip([20_000, 2000, 2000, 20_000]) {
            let rules = Rules::build((0..count).map(kind), [], &Variables::default()).unwrap();
            for n in [0, 1, 100, count - 1] {
                let (schema, text) = (
                    format!("shard_{n}"),
                    format!("SELECT a FROM t{n} WHERE a='x'"),
                );
                let client_addr = format!("10.{}.{}.7", n / 256, n % 256);
                let asked = super::super::Asked {
                    flag: 0,
                    user: "u",
                    schema: &schema,
                    client_addr: &client_addr,
                    proxy_addr: "",
                    proxy_port: 6033,
                    digest: Some((1, text.as_bytes())),
                    text: text.as_bytes(),
                };
                let found: Vec<_> = rules
                    .candidates(&asked, 0, None)
                    .map(|one| one.position)
                    .collect();
                // `FROM t1` is in `FROM t100` as well, where nothing else tells them apart.
                assert!(
                    found.contains(&(n as u32)) && found.len() <= 3,
                    "{n}: {found:?}"
                );
            }
        }
    }

    /// A36 for rules that name things in many combinations: none of them makes a bucket that is
    /// walked through.
    #[test]
    fn however_many_combinations_rules_name_few_are_looked_at() {
        for (combinations, at_most) in [(20, 1), (31, 1), (60, 400)] {
            let row = |n: i64| {
                let (bits, text) = (n % combinations, |text: String| Some(text));
                let named = |bit: i64| (bits + 1) & bit != 0;
                RuleRow {
                    username: named(1).then(|| format!("u{n}")),
                    schemaname: named(2).then(|| format!("s{n}")),
                    digest: named(4).then(|| format!("0x{:X}", n + 1)),
                    client_addr: if named(8) {
                        text(format!("10.{:03}.{:03}.%", n / 256, n % 256))
                    } else {
                        None
                    },
                    proxy_addr: named(16).then(|| format!("a{n}")),
                    // There are fewer ports than rules.
                    proxy_port: named(32).then_some(n),
                    ..rule(n)
                }
            };
            let rules = Rules::build((0..20_000).map(row), [], &Variables::default()).unwrap();
            for n in [0, 77, 1000, 10_007, 19_991, 19_999] {
                let (user, schema, proxy_addr) =
                    (format!("u{n}"), format!("s{n}"), format!("a{n}"));
                let client_addr = format!("10.{:03}.{:03}.7", n / 256, n % 256);
                let asked = super::super::Asked {
                    flag: 0,
                    user: &user,
                    schema: &schema,
                    client_addr: &client_addr,
                    proxy_addr: &proxy_addr,
                    proxy_port: n as u16,
                    digest: Some((n + 1, b"")),
                    text: b"",
                };
                let found: Vec<_> = rules
                    .candidates(&asked, 0, None)
                    .map(|one| one.position)
                    .collect();
                assert!(
                    found.contains(&(n as u32)) && found.len() <= at_most,
                    "{combinations}, {n}: {}",
                    found.len()
                );
            }
        }
    }

    #[test]
    fn candidates_are_the_chain_without_those_who_name_somebody_else() {
        let names = [None, Some("a"), Some("b")];
        let addresses = [
            None,
            Some("10.%"),
            Some("10.0.0.%"),
            Some("10.0.0.1"),
            Some("%"),
        ];
        let text = |name: Option<&str>| name.map(Into::into);
        let mut rows = Vec::new();
        for n in 0..540 {
            rows.push(RuleRow {
                username: text(names[n % 3]),
                schemaname: text(names[n / 3 % 3]),
                client_addr: text(addresses[n / 9 % 5]),
                proxy_port: [None, Some(6033)][n / 45 % 2],
                digest: [None, Some("0xA".to_owned())][n / 90 % 2].clone(),
                flagIN: [0, 0, 1][n / 180 % 3],
                ..rule(n as i64 * 7 % 540)
            });
        }
        let rules = Rules::build(rows, [], &Variables::default()).unwrap();
        for (user, schema) in [
            ("a", "a"),
            ("a", "b"),
            ("b", "x"),
            ("x", "b"),
            ("x", "x"),
            ("", ""),
        ] {
            for (flag, client_addr, proxy_port, digest, from) in [
                (0, "10.0.0.1", 6033, 10, 0),
                (0, "10.1.0.1", 6033, 9, 100),
                (1, "1", 1, 10, 0),
                (2, "", 0, 0, 0),
            ] {
                let (digest, proxy_addr, text) = (Some((digest, &b""[..])), "", &b""[..]);
                let asked = super::super::Asked {
                    flag,
                    user,
                    schema,
                    client_addr,
                    proxy_addr,
                    proxy_port,
                    digest,
                    text,
                };
                let fits = |name: &Option<Arc<str>>, value| {
                    name.as_deref().is_none_or(|name| name == value)
                };
                let all = rules.chain().iter().enumerate().skip(from);
                let told: Vec<_> = all
                    .filter(|(_, rule)| {
                        fits(&rule.username, user)
                            && fits(&rule.schemaname, schema)
                            && rule.flag_in == flag
                    })
                    .filter(|(_, rule)| {
                        rule.client_addr
                            .as_ref()
                            .is_none_or(|one| one.is_match(client_addr))
                    })
                    .filter(|(_, rule)| rule.proxy_port.is_none_or(|port| port == proxy_port))
                    .filter(|(_, rule)| {
                        rule.digest
                            .is_none_or(|hash| Some(hash) == digest.map(|(hash, _)| hash))
                    })
                    .map(|(position, _)| position)
                    .collect();
                let found: Vec<_> = rules
                    .candidates(&asked, from as u32, None)
                    .map(|one| one.position as usize)
                    .collect();
                assert!(found.is_sorted());
                let missing: Vec<_> = told
                    .iter()
                    .filter(|position| !found.contains(position))
                    .collect();
                assert!(missing.is_empty(), "{asked:?}: {missing:?}");
                assert!(
                    found.len() <= told.len() + 400,
                    "{asked:?}: {} of {}",
                    told.len(),
                    found.len()
                );
            }
        }
    }
}
