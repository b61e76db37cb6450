//! What a client must show besides its password: TLS, and a certificate that says who it is.

use crate::core::Core;
use crate::known::answer::Complaint;
use config::{Certificate, User};
use net::{Conn, Shown};
use wire::errors;

/// Returns the complaint for a user that has not come as its row demands.
pub(crate) fn unfit(core: &Core, user: &User, conn: &Conn) -> Option<Complaint> {
    let asked = user.certificate();
    let why = if (user.use_ssl || asked.is_some()) && !conn.is_tls() {
        "SSL is required"
    } else {
        let (why, details) = missing(asked?, conn.shown().as_ref())?;
        core.note(&format!(
            "user '{}' was refused for its certificate: {details}",
            user.username
        ));
        why
    };
    let words = format!(
        "ProxySQL Error: Access denied for user '{}' (using password: YES). {why}",
        user.username
    );
    Some(Complaint::new(errors::ACCESS_DENIED, words))
}

/// Tells what is wrong with a certificate, for the client and for the log.
fn missing(asked: &Certificate, shown: Option<&Shown>) -> Option<(&'static str, String)> {
    let Some(shown) = shown else {
        return Some((
            "A client certificate is required",
            "it has shown none".to_owned(),
        ));
    };
    if let Some(why) = &shown.refused {
        return Some((
            "The client certificate is not accepted",
            format!("{} of {}: {why}", shown.subject, shown.issuer),
        ));
    }
    let differs = |asked: Option<&str>, shown: &str| asked.is_some_and(|asked| asked != shown);
    if let Some(asked) = asked.spiffe_id.as_deref()
        && !shown.uris.iter().any(|uri| uri == asked)
    {
        let uris = if shown.uris.is_empty() {
            "none".to_owned()
        } else {
            shown.uris.join(", ")
        };
        return Some((
            "The SPIFFE ID of the client certificate is another",
            format!("it names {uris}, not {asked}"),
        ));
    }
    if differs(asked.subject.as_deref(), &shown.subject) {
        return Some((
            "The subject of the client certificate is another",
            format!("its subject is {}", shown.subject),
        ));
    }
    if differs(asked.issuer.as_deref(), &shown.issuer) {
        return Some((
            "The issuer of the client certificate is another",
            format!("its issuer is {}", shown.issuer),
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_must_say_all_that_is_asked_for() {
        let shown = |refused: Option<&str>| Shown {
            refused: refused.map(str::to_owned),
            uris: vec!["https://shop".into(), "spiffe://shop/till".into()],
            subject: "/O=Shop/CN=till".into(),
            issuer: "/CN=ca".into(),
        };
        let asked =
            |spiffe: Option<&str>, subject: Option<&str>, issuer: Option<&str>| Certificate {
                spiffe_id: spiffe.map(Into::into),
                subject: subject.map(Into::into),
                issuer: issuer.map(Into::into),
            };
        let (spiffe, subject, issuer) = (
            Some("spiffe://shop/till"),
            Some("/O=Shop/CN=till"),
            Some("/CN=ca"),
        );
        let why = |asked: &Certificate, shown: Option<&Shown>| {
            missing(asked, shown).map(|(words, _)| words)
        };
        assert_eq!(
            why(&asked(spiffe, subject, issuer), Some(&shown(None))),
            None
        );
        assert_eq!(why(&asked(None, None, issuer), Some(&shown(None))), None);
        for (asked, words) in [
            (
                asked(Some("spiffe://shop/till/2"), subject, issuer),
                "The SPIFFE ID of the client certificate is another",
            ),
            (
                asked(Some("spiffe://shop"), None, None),
                "The SPIFFE ID of the client certificate is another",
            ),
            (
                asked(spiffe, Some("/O=Shop"), None),
                "The subject of the client certificate is another",
            ),
            (
                asked(None, subject, Some("/CN=other")),
                "The issuer of the client certificate is another",
            ),
        ] {
            assert_eq!(why(&asked, Some(&shown(None))), Some(words));
        }
        let all = asked(spiffe, subject, issuer);
        assert_eq!(why(&all, None), Some("A client certificate is required"));
        assert_eq!(
            why(&all, Some(&shown(Some("expired")))),
            Some("The client certificate is not accepted")
        );
    }
}
