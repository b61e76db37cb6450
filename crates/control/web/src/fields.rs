//! Fields of a form, or of the query of an address.

use http_body_util::{BodyExt as _, Limited};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of a form at most.
const FORM_BYTES_MAX: usize = 64 << 10;
/// Fields of a form, or of the query of an address, at most.
const FIELDS_MAX: usize = 32;
/// Time in which a form has to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(5);

/// Names and values, as a browser sends them.
pub(crate) type Fields = Vec<(String, String)>;

/// Fields of a form that arrives in time and is not too long.
pub(crate) async fn form(
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Fields, (StatusCode, &'static str)> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/x-www-form-urlencoded") {
        return Err((
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "a form is application/x-www-form-urlencoded",
        ));
    }
    let whole = timeout(ARRIVES_WITHIN, Limited::new(body, FORM_BYTES_MAX).collect()).await;
    match whole {
        Ok(Ok(body)) => Ok(fields(&body.to_bytes())),
        Ok(Err(_)) => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            "the form is longer than 64 KiB, or did not arrive",
        )),
        Err(_late) => Err((
            StatusCode::REQUEST_TIMEOUT,
            "the form did not arrive within 5 seconds",
        )),
    }
}

/// Fields of a text, as a browser writes them.
pub(crate) fn fields(text: &[u8]) -> Fields {
    form_urlencoded::parse(text)
        .take(FIELDS_MAX)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_a_bound() {
        assert_eq!(
            fields(b"a=%3Cb%3E&c=+")[0],
            ("a".to_owned(), "<b>".to_owned())
        );
        assert_eq!(fields("a=1&".repeat(100).as_bytes()).len(), FIELDS_MAX);
        assert_eq!(fields(b"\xff%ff=%").len(), 1);
    }
}
