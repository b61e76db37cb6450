//! `clickhouse_users` and `clickhouse_user_settings`: who comes in by the port of ClickHouse, and as
//! whom it is asked for him.

use crate::refusal::Refusals;
use crate::{ClickhouseSettingsRow, ClickhouseUserRow, Password, Refusal};
use std::collections::BTreeMap;

/// Who may come in.
#[derive(Debug, Default)]
pub struct ClickhouseUsers {
    users: BTreeMap<String, ClickhouseUser>,
    user_rows: Vec<ClickhouseUserRow>,
    settings_rows: Vec<ClickhouseSettingsRow>,
    is_served: bool,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct ClickhouseUser {
    /// Password, as far as it is known.
    pub password: Password,
    /// Connections at once.
    pub max_connections: u64,
    /// His row of `clickhouse_user_settings`, or one of which no column was given.
    pub settings: ClickhouseSettingsRow,
    /// Names and values of the column `settings`.
    pub wanted: Vec<(String, String)>,
}

impl ClickhouseUsers {
    /// From the rows of both tables; inactive users are left out.
    ///
    /// # Errors
    /// Every row that cannot be honoured.
    pub fn build(
        users: Vec<ClickhouseUserRow>,
        settings: Vec<ClickhouseSettingsRow>,
    ) -> Result<Self, Vec<Refusal>> {
        let mut refusals = Refusals::of("clickhouse_user_settings");
        let mut of_user = BTreeMap::new();
        for row in &settings {
            let which = || format!("username '{}'", row.username);
            match wanted(&row.settings) {
                Ok(wanted) => drop(of_user.insert(row.username.clone(), (row.clone(), wanted))),
                Err(words) => refusals.add(which, "settings", words),
            }
            if !users.iter().any(|user| user.username == row.username) {
                refusals.add(which, "username", "is nobody's in clickhouse_users");
            }
        }
        let settings_rows = refusals.or(settings)?;
        let mut refusals = Refusals::of("clickhouse_users");
        let mut built = BTreeMap::new();
        for row in users.iter().filter(|row| row.active == 1) {
            let which = || format!("username '{}'", row.username);
            let password = Password::parse(row.password.as_deref().unwrap_or_default());
            let password = password.unwrap_or_else(|words| {
                refusals.add(which, "password", words);
                Password::Empty
            });
            let max_connections =
                refusals.number(which, "max_connections", row.max_connections, (0, i64::MAX));
            let (settings, wanted) = of_user.remove(&row.username).unwrap_or_default();
            let user = ClickhouseUser {
                password,
                max_connections,
                settings,
                wanted,
            };
            built.insert(row.username.clone(), user);
        }
        refusals.or(Self {
            users: built,
            user_rows: users,
            settings_rows,
            is_served: false,
        })
    }

    /// Says whether this process has the port by which they come in.
    #[must_use]
    pub fn served(self, is_served: bool) -> Self {
        Self { is_served, ..self }
    }

    /// Whether this process has the port by which they come in (`--clickhouse-server`).
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.is_served
    }

    /// The one of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&ClickhouseUser> {
        self.users.get(name)
    }

    /// The active rows of `clickhouse_users`, as `runtime_clickhouse_users` has them.
    pub fn user_rows(&self) -> impl Iterator<Item = ClickhouseUserRow> {
        self.user_rows.iter().cloned()
    }

    /// The rows of `clickhouse_user_settings`.
    pub fn settings_rows(&self) -> impl Iterator<Item = ClickhouseSettingsRow> {
        self.settings_rows.iter().cloned()
    }
}

/// An object of JSON, its values numbers, texts or truths.
fn wanted(text: &str) -> Result<Vec<(String, String)>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let object: BTreeMap<String, serde_json::Value> = serde_json::from_str(text)
        .map_err(|error| format!("must be an object of JSON: {error}"))?;
    let plain = |(name, value): (String, serde_json::Value)| match value {
        serde_json::Value::String(text) => Ok((name, text)),
        serde_json::Value::Bool(is) => Ok((name, u8::from(is).to_string())),
        serde_json::Value::Number(number) => Ok((name, number.to_string())),
        _ => Err(format!("has '{name}', which is no number, text or truth")),
    };
    object.into_iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_their_settings_and_what_cannot_be_is_refused() {
        let user = |name: &str, active| ClickhouseUserRow {
            username: name.into(),
            password: Some("p".into()),
            active,
            ..ClickhouseUserRow::default()
        };
        let settings = |name: &str, settings: &str| ClickhouseSettingsRow {
            username: name.into(),
            settings: settings.into(),
            ..ClickhouseSettingsRow::default()
        };
        let built = ClickhouseUsers::build(
            vec![user("a", 1), user("b", 0)],
            vec![settings("a", r#"{"max_threads": 2, "x": "y", "z": true}"#)],
        )
        .unwrap();
        assert!(built.named("b").is_none());
        let pairs = [("max_threads", "2"), ("x", "y"), ("z", "1")];
        let wanted = &built.named("a").unwrap().wanted;
        assert!(
            wanted
                .iter()
                .map(|(n, v)| (n.as_str(), v.as_str()))
                .eq(pairs)
        );
        assert_eq!(built.user_rows().count(), 2);
        let refused = ClickhouseUsers::build(
            vec![user("a", 1)],
            vec![settings("a", "[]"), settings("c", "")],
        );
        assert_eq!(refused.unwrap_err().len(), 2);
    }
}
