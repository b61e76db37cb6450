//! `mysql_users.attributes`: a second password, the certificate that clients must show, where reads
//! go.

use super::Password;
use crate::Split;
use serde_json::{Map, Value};

/// What the JSON says. Members that mean nothing here are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// As it was written.
    pub json: Box<str>,
    /// `read_hostgroup` and what belongs to it; `Some(None)` for the user whose statements are not
    /// split.
    pub split: Option<Option<Split>>,
    /// `additional_password`: valid beside the one of the row.
    pub additional_password: Option<Password>,
    /// `spiffe_id`, `x509_subject`, `x509_issuer`.
    pub certificate: Option<Box<Certificate>>,
}

/// What the certificate of a client must say, besides being signed by the authority of our clients.
/// At least one is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate {
    /// A URI among its alternative names.
    pub spiffe_id: Option<Box<str>>,
    /// Its subject, as `REQUIRE SUBJECT` of servers has it: `/C=SE/O=Shop/CN=till`.
    pub subject: Option<Box<str>>,
    /// Its issuer, likewise.
    pub issuer: Option<Box<str>>,
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
        Some(Self {
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
