//! `mysql_users.attributes`: a second password, the certificate that clients must show, where reads
//! go.

use super::Password;
use crate::Split;
use serde_json::{Map, Value};

/// Content of the JSON in a user's `attributes`. Members that mean nothing here are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// As it was written.
    pub json: Box<str>,
    /// `read_hostgroup` and what belongs to it; `Some(None)` for the user whose statements are not
    /// split.
    pub split: Option<Option<Split>>,
    /// `partition_changes`: what becomes of changes of several partitions.
    pub partition_changes: PartitionChanges,
    /// `transactions`: on how many hostgroups one of them may be.
    pub transactions: Transactions,
    /// `additional_password`: valid beside the one of the row.
    pub additional_password: Option<Password>,
    /// `spiffe_id`, `x509_subject`, `x509_issuer`.
    pub certificate: Option<Box<Certificate>>,
    /// `statements_per_sec`: so many statements of the user's clients are sent in a second.
    pub statements_per_sec: Option<u32>,
    /// `causal_scope`: whose writes a read sees that is to see writes.
    pub causal_scope: CausalScope,
    /// `priority`: priority of the statements of the user's clients.
    pub priority: Option<u8>,
}

/// Names that the certificate of a client must have, besides being signed by the authority of our
/// clients. At least one is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate {
    /// A URI among its alternative names.
    pub spiffe_id: Option<Box<str>>,
    /// Its subject, as `REQUIRE SUBJECT` of servers has it: `/C=SE/O=Shop/CN=till`.
    pub subject: Option<Box<str>>,
    /// Its issuer, likewise.
    pub issuer: Option<Box<str>>,
}

/// Whose writes a read sees, where a rule or the split has it see writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CausalScope {
    /// Those of its session.
    #[default]
    Session,
    /// Those of all sessions of its user.
    User,
}

impl CausalScope {
    fn take(members: &mut Map<String, Value>, refuse: &mut impl FnMut(String)) -> Self {
        match members.remove("causal_scope") {
            None => Self::default(),
            Some(Value::String(word)) if word == "session" => Self::Session,
            Some(Value::String(word)) if word == "user" => Self::User,
            Some(other) => {
                refuse(format!(
                    "has 'causal_scope', which must be \"session\" or \"user\"; {other} is not"
                ));
                Self::default()
            }
        }
    }
}

/// Treatment of a change that needs several partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionChanges {
    /// The change is refused.
    #[default]
    Refuse,
    /// All of them make it, or none, by XA transactions.
    Xa,
}

/// Reach of a transaction that uses sharded tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transactions {
    /// One hostgroup.
    #[default]
    OneHostgroup,
    /// A branch of an XA transaction on each hostgroup that it needs.
    Xa,
}

impl Transactions {
    fn take(members: &mut Map<String, Value>, refuse: &mut impl FnMut(String)) -> Self {
        match members.remove("transactions") {
            None => Self::default(),
            Some(Value::String(word)) if word == "one_hostgroup" => Self::OneHostgroup,
            Some(Value::String(word)) if word == "xa" => Self::Xa,
            Some(other) => {
                refuse(format!(
                    "has 'transactions', which must be \"one_hostgroup\" or \"xa\"; {other} is not"
                ));
                Self::default()
            }
        }
    }
}

impl PartitionChanges {
    fn take(members: &mut Map<String, Value>, refuse: &mut impl FnMut(String)) -> Self {
        match members.remove("partition_changes") {
            None => Self::default(),
            Some(Value::String(word)) if word == "refuse" => Self::Refuse,
            Some(Value::String(word)) if word == "xa" => Self::Xa,
            Some(other) => {
                refuse(format!(
                    "has 'partition_changes', which must be \"refuse\" or \"xa\"; {other} is not"
                ));
                Self::default()
            }
        }
    }
}

impl Attributes {
    /// Of the JSON of a row; `None` if there is none. What is wrong is told in words that follow
    /// the column's name.
    pub(super) fn check(json: &str, mut refuse: impl FnMut(String)) -> Option<Self> {
        if json.is_empty() {
            return None;
        }
        let mut members = match serde_json::from_str(json) {
            Ok(Value::Object(members)) => members,
            Ok(_) => {
                refuse("must be a JSON object such as {}".into());
                return None;
            }
            Err(error) => {
                refuse(format!("must be JSON or empty: {error}"));
                return None;
            }
        };
        // What ProxySQL does with an attribute and we do not yet must not be promised.
        if members.contains_key("default-transaction_isolation") {
            refuse("asks for 'default-transaction_isolation', which is not supported yet".into());
        }
        let additional_password = members.remove("additional_password").and_then(|value| {
            let password = additional_password(&value);
            password
                .map_err(|words| refuse(format!("has 'additional_password', which {words}")))
                .ok()
        });
        let certificate = Certificate::take(&mut members, &mut refuse);
        let statements_per_sec = members.remove("statements_per_sec").and_then(|value| {
            let words = |words| refuse(format!("has 'statements_per_sec', which {words}"));
            crate::rate(&value).map_err(words).ok()
        });
        let priority = members.remove("priority").and_then(|value| {
            let words = |words| refuse(format!("has 'priority', which {words}"));
            crate::admission::priority(&value).map_err(words).ok()
        });
        let partition_changes = PartitionChanges::take(&mut members, &mut refuse);
        let transactions = Transactions::take(&mut members, &mut refuse);
        let causal_scope = CausalScope::take(&mut members, &mut refuse);
        Some(Self {
            causal_scope,
            partition_changes,
            transactions,
            statements_per_sec,
            priority,
            split: Split::take(&mut members, refuse),
            additional_password,
            certificate,
            json: json.into(),
        })
    }
}

/// In hexadecimal, since the salt of a hash need not be text.
fn additional_password(value: &Value) -> Result<Password, String> {
    const FORM: &str = "must be the password, or its hash, in hexadecimal: HEX('the password')";
    let digits = value
        .as_str()
        .filter(|digits| digits.len() % 2 == 0)
        .ok_or(FORM)?
        .as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes: Option<Vec<u8>> = digits
        .chunks_exact(2)
        .map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8))
        .collect();
    let text = String::from_utf8(bytes.ok_or(FORM)?)
        .map_err(|_| "is the hexadecimal form of what is no text")?;
    match Password::parse(&text)? {
        Password::Empty => Err("is empty: everybody could log in".into()),
        password => Ok(password),
    }
}

impl Certificate {
    fn take(
        members: &mut Map<String, Value>,
        refuse: &mut impl FnMut(String),
    ) -> Option<Box<Self>> {
        let mut text = |name: &str, begin: &str| -> Option<Box<str>> {
            let value = members.remove(name)?;
            let fitting = value
                .as_str()
                .filter(|text| text.len() > begin.len() && text.starts_with(begin));
            if fitting.is_none() {
                refuse(format!(
                    "has '{name}', which must be a text that begins with '{begin}'; {value} is not"
                ));
            }
            fitting.map(Into::into)
        };
        let asked = Self {
            spiffe_id: text("spiffe_id", "spiffe://"),
            subject: text("x509_subject", "/"),
            issuer: text("x509_issuer", "/"),
        };
        (asked != Self::default()).then(|| Box::new(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::auth;

    fn taken(json: &str) -> (Option<Attributes>, Vec<String>) {
        let mut wrong = Vec::new();
        let attributes = Attributes::check(json, |words| wrong.push(words));
        (attributes, wrong)
    }

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("{byte:02X}")).collect()
    }

    #[test]
    fn transactions_are_on_one_hostgroup_unless_it_says_xa() {
        let of = |json: &str| {
            let (attributes, wrong) = taken(json);
            (attributes.unwrap().transactions, wrong.concat())
        };
        let (one, none) = (Transactions::OneHostgroup, String::new());
        assert_eq!(of("{}"), (one, none.clone()));
        assert_eq!(
            of(r#"{"transactions":"one_hostgroup"}"#),
            (one, none.clone())
        );
        assert_eq!(of(r#"{"transactions":"xa"}"#), (Transactions::Xa, none));
        let words = r#"has 'transactions', which must be "one_hostgroup" or "xa"; 2 is not"#;
        assert_eq!(of(r#"{"transactions":2}"#), (one, words.to_owned()));
    }

    #[test]
    fn changes_of_several_partitions_are_refused_unless_it_says_xa() {
        let of = |json: &str| {
            let (attributes, wrong) = taken(json);
            (attributes.unwrap().partition_changes, wrong.concat())
        };
        let (refuse, none) = (PartitionChanges::Refuse, String::new());
        assert_eq!(of("{}"), (refuse, none.clone()));
        assert_eq!(
            of(r#"{"partition_changes":"refuse"}"#),
            (refuse, none.clone())
        );
        assert_eq!(
            of(r#"{"partition_changes":"xa"}"#),
            (PartitionChanges::Xa, none)
        );
        let words = r#"has 'partition_changes', which must be "refuse" or "xa"; true is not"#;
        assert_eq!(
            of(r#"{"partition_changes":true}"#),
            (refuse, words.to_owned())
        );
    }

    #[test]
    fn an_additional_password_has_the_spellings_of_the_column_in_hexadecimal() {
        let native = auth::native_text(&auth::native_stage2(b"new"));
        let crypt = format!("$A$005${}{}", "\u{1}".repeat(20), "h".repeat(43));
        for (text, wanted) in [
            ("new", Password::Clear("new".into())),
            ("grün", Password::Clear("grün".into())),
            (&native, Password::Native(auth::native_stage2(b"new"))),
            (&crypt, Password::CachingSha2(crypt.as_str().into())),
        ] {
            let (attributes, wrong) =
                taken(&format!(r#"{{"additional_password":"{}"}}"#, hex(text)));
            assert_eq!(
                attributes.unwrap().additional_password,
                Some(wanted),
                "{wrong:?}"
            );
        }
        for (value, words) in [
            (
                "\"new\"",
                "must be the password, or its hash, in hexadecimal: HEX('the password')",
            ),
            (
                "\"6e6\"",
                "must be the password, or its hash, in hexadecimal: HEX('the password')",
            ),
            (
                "7",
                "must be the password, or its hash, in hexadecimal: HEX('the password')",
            ),
            ("\"\"", "is empty: everybody could log in"),
            ("\"ff00\"", "is the hexadecimal form of what is no text"),
        ] {
            let (_, wrong) = taken(&format!(r#"{{"additional_password":{value}}}"#));
            assert_eq!(wrong, [format!("has 'additional_password', which {words}")]);
        }
    }

    #[test]
    fn a_rate_is_a_whole_number_of_statements() {
        let rate = |json: &str| {
            let (attributes, wrong) = taken(json);
            (attributes.unwrap().statements_per_sec, wrong)
        };
        assert_eq!(
            rate(r#"{"statements_per_sec":100}"#),
            (Some(100), Vec::new())
        );
        assert_eq!(rate(r#"{"other":1}"#), (None, Vec::new()));
        for (value, shown) in [("0", "0"), ("1000001", "1000001"), ("\"many\"", "\"many\"")] {
            let (none, wrong) = rate(&format!(r#"{{"statements_per_sec":{value}}}"#));
            let words = format!(
                "has 'statements_per_sec', which must be from 1 to 1000000; {shown} is not"
            );
            assert_eq!((none, wrong), (None, vec![words]));
        }
    }

    #[test]
    fn a_priority_is_from_0_to_10() {
        let priority = |json: &str| {
            let (attributes, wrong) = taken(json);
            (attributes.unwrap().priority, wrong)
        };
        assert_eq!(priority(r#"{"priority":0}"#), (Some(0), Vec::new()));
        assert_eq!(priority(r#"{"priority":10}"#), (Some(10), Vec::new()));
        for value in ["11", "-1", "1.5", "\"high\"", "266"] {
            let (none, wrong) = priority(&format!(r#"{{"priority":{value}}}"#));
            let words = format!(
                "has 'priority', which must be a whole number from 0 to 10; {value} is not"
            );
            assert_eq!((none, wrong), (None, vec![words]));
        }
    }

    #[test]
    fn what_a_certificate_must_say_is_read() {
        let (attributes, wrong) = taken(
            r#"{"spiffe_id":"spiffe://shop/till","x509_subject":"/CN=till","x509_issuer":"/CN=ca","other":1}"#,
        );
        assert!(wrong.is_empty(), "{wrong:?}");
        let certificate = attributes.unwrap().certificate.unwrap();
        assert_eq!(certificate.spiffe_id.as_deref(), Some("spiffe://shop/till"));
        assert_eq!(
            (
                certificate.subject.as_deref(),
                certificate.issuer.as_deref()
            ),
            (Some("/CN=till"), Some("/CN=ca"))
        );
        assert_eq!(taken(r#"{"other":1}"#).0.unwrap().certificate, None);
        let (_, wrong) = taken(r#"{"spiffe_id":"x","x509_subject":""}"#);
        assert_eq!(
            wrong,
            [
                "has 'spiffe_id', which must be a text that begins with 'spiffe://'; \"x\" is not",
                "has 'x509_subject', which must be a text that begins with '/'; \"\" is not",
            ]
        );
    }
}
