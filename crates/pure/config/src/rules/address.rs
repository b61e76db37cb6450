//! `client_addr`: an address, or one with `%` for any run of characters.

/// A compiled `client_addr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressPattern(std::sync::Arc<str>);

impl AddressPattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// As the operator wrote it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns what comes before the first `%`, if there is one.
    pub(super) fn head(&self) -> Option<&str> {
        self.0.split_once('%').map(|(head, _)| head)
    }

    /// The part that an address must begin with, or be.
    pub(super) fn fixed(&self) -> &str {
        self.head().unwrap_or(&self.0)
    }

    /// Whether an address fits.
    #[must_use]
    pub fn is_match(&self, address: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('%') else {
            return *self.0 == *address;
        };
        let Some(mut address) = address.strip_prefix(head) else {
            return false;
        };
        let (middle, tail) = rest.rsplit_once('%').unwrap_or(("", rest));
        for part in middle.split('%') {
            let Some(at) = address.find(part) else {
                return false;
            };
            address = &address[at + part.len()..];
        }
        address.ends_with(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A60: matching on the client's address.
    #[test]
    fn a_percent_sign_is_any_run_of_characters() {
        for (pattern, address, fits) in [
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.11", false),
            ("%", "", true),
            ("10.%", "10.1.2.3", true),
            ("10.%", "110.1.2.3", false),
            ("10.%.3", "10.1.2.3", true),
            ("10.%.3", "10.1.2.4", false),
            ("10.%.3", "10.3", false),
            ("%.2.%", "10.1.2.3", true),
            ("%.2.%", "10.1.3.3", false),
            ("1%1%1", "11", false),
            ("1%1%1", "111", true),
            ("fe80::%", "fe80::1", true),
        ] {
            assert_eq!(
                AddressPattern::new(pattern).is_match(address),
                fits,
                "{pattern} {address}"
            );
        }
    }
}
