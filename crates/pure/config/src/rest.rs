//! `restapi_routes`: programs behind addresses of HTTP.

use crate::refusal::Refusals;
use crate::{Refusal, RestRouteRow};
use std::collections::BTreeMap;

/// Rows at most.
const MAX: usize = 1000;

/// The rows, in the order of their ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RestRoutes(Vec<RestRouteRow>);

impl RestRoutes {
    /// From the rows of `restapi_routes`.
    ///
    /// # Errors
    /// Every row that cannot be served.
    pub fn build(rows: impl IntoIterator<Item = RestRouteRow>) -> Result<Self, Vec<Refusal>> {
        let mut refusals = Refusals::of("restapi_routes");
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_unstable_by_key(|row| row.id);
        let mut seen = BTreeMap::new();
        for row in &rows {
            let which = || format!("id {}", row.id);
            let range = (100, 100_000_000);
            let _ms: u32 = refusals.number(which, "timeout_ms", row.timeout_ms, range);
            refusals.flag(which, "active", row.active);
            let method = row.method.to_ascii_uppercase();
            if !["GET", "POST"].contains(&method.as_str()) {
                refusals.add(which, "method", "must be GET or POST");
            }
            if row.uri.is_empty() {
                refusals.add(which, "uri", "must not be empty");
            }
            if row.script.trim().is_empty() || row.script.contains('\0') {
                refusals.add(which, "script", "must be the name of a file");
            }
            let earlier = seen.insert((method, row.uri.as_str()), row.id);
            if let Some(earlier) = earlier.filter(|_| row.active == 1) {
                let words =
                    format!("is that of id {earlier}, too: nobody could say which is meant");
                refusals.add(which, "uri", words);
            }
        }
        if rows.len() > MAX {
            let words = format!("has {} rows; {MAX} are the most", rows.len());
            refusals.add(String::new, "", words);
        }
        refusals.or(Self(rows))
    }

    /// All rows.
    #[must_use]
    pub fn rows(&self) -> &[RestRouteRow] {
        &self.0
    }

    /// Those that are served.
    pub fn active(&self) -> impl Iterator<Item = &RestRouteRow> {
        self.0.iter().filter(|row| row.active == 1)
    }

    /// The one at an address, for a method.
    #[must_use]
    pub fn at(&self, method: &str, uri: &str) -> Option<&RestRouteRow> {
        let mut active = self.active();
        active.find(|row| row.uri == uri && row.method.eq_ignore_ascii_case(method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, method: &str, uri: &str) -> RestRouteRow {
        RestRouteRow {
            id,
            method: method.into(),
            uri: uri.into(),
            script: "/bin/x".into(),
            ..RestRouteRow::default()
        }
    }

    #[test]
    fn a_row_is_found_by_method_and_address_while_it_is_active() {
        let off = RestRouteRow {
            active: 0,
            ..row(3, "POST", "b")
        };
        let routes = RestRoutes::build([row(2, "post", "a"), row(1, "GET", "a"), off]).unwrap();
        let at = |method, uri| routes.at(method, uri).map(|row| row.id);
        assert_eq!((at("GET", "a"), at("POST", "a")), (Some(1), Some(2)));
        assert_eq!(
            (at("POST", "b"), at("PUT", "a"), at("GET", "/a")),
            (None, None, None)
        );
    }

    #[test]
    fn every_row_that_cannot_be_served_is_named() {
        let slow = RestRouteRow {
            timeout_ms: 99,
            script: " ".into(),
            ..row(4, "PUT", "")
        };
        let refused =
            RestRoutes::build([row(1, "GET", "a"), row(2, "get", "a"), slow]).unwrap_err();
        let words: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "restapi_routes (id 2): uri is that of id 1, too: nobody could say which is meant",
                "restapi_routes (id 4): timeout_ms must be from 100 to 100000000; '99' is not",
                "restapi_routes (id 4): method must be GET or POST",
                "restapi_routes (id 4): uri must not be empty",
                "restapi_routes (id 4): script must be the name of a file",
            ]
        );
    }
}
