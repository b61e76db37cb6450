//! Which rows must not be in a store in clear, as whoever reads them can log in somewhere; and the key
//! that seals them.

use crate::parts::VARIABLES;
use crate::tables::Module;
use config::Variables;
use fleet::{Pieces, Seal};
use serde_json::Value;

/// A key file is not longer, in bytes.
const KEY_FILE_MAX: u64 = 1 << 20;

/// Columns of `mysql_users`, by their place in a row.
const USERNAME: usize = 0;
const PASSWORD: usize = 1;
const ATTRIBUTES: usize = 12;

/// Ends of names of variables whose values open something.
const VARIABLES_WITH: [&str; 2] = ["password", "credentials"];

/// Whether a module may have secrets: sealed as a whole where there is a key.
pub(super) fn may_be_in(module: Module) -> bool {
    matches!(
        module,
        Module::Users | Module::MysqlVariables | Module::AdminVariables
    )
}

/// The key of this proxy, if it has one.
pub(super) fn seal(variables: &Variables) -> Result<Option<Seal>, String> {
    let path = &*variables.admin_cluster_key_file;
    if path.is_empty() {
        return Ok(None);
    }
    let said = |words: String| format!("admin-cluster_key_file {path}: {words}");
    let size = std::fs::metadata(path).map_err(|error| said(error.to_string()))?;
    if size.len() > KEY_FILE_MAX {
        return Err(said("is too long for a key".to_owned()));
    }
    let file = std::fs::read(path).map_err(|error| said(error.to_string()))?;
    Seal::of(&file).map(Some).map_err(said)
}

/// Names the first secret that is in clear, without saying it: a password that is no hash, or a
/// variable with a password that is not what everybody knows, its default.
pub(super) fn clear(pieces: &Pieces) -> Option<String> {
    pieces.iter().find_map(|(table, rows)| {
        let is_secret: fn(&Value) -> Option<String> = match &**table {
            "mysql_users" => of_user,
            VARIABLES => of_variable,
            _ => return None,
        };
        rows.split(|byte| *byte == b'\n')
            .filter_map(|row| serde_json::from_slice(row).ok())
            .find_map(|row| is_secret(&row))
    })
}

fn of_user(row: &Value) -> Option<String> {
    let password = row[PASSWORD].as_str().unwrap_or_default();
    let attributes: Value = row[ATTRIBUTES]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let additional = attributes["additional_password"]
        .as_str()
        .unwrap_or_default();
    let additional = unhex(additional);
    let is_clear = [password.as_bytes(), &additional]
        .into_iter()
        .any(|password| !password.is_empty() && !is_hash(password));
    let name = row[USERNAME].as_str().unwrap_or_default();
    is_clear.then(|| format!("the password of user '{name}'"))
}

fn of_variable(row: &Value) -> Option<String> {
    let (name, value) = (row[0].as_str()?, row[1].as_str()?);
    let is_secret = VARIABLES_WITH.iter().any(|end| name.ends_with(end));
    let is_known = config::Variable::named(name).is_some_and(|known| known.default == value);
    (is_secret && !is_known && !value.is_empty()).then(|| format!("the value of {name}"))
}

/// A hash as MySQL writes it: of `mysql_native_password` or of `caching_sha2_password`. Neither lets
/// its reader in.
fn is_hash(password: &[u8]) -> bool {
    let native = password
        .strip_prefix(b"*")
        .is_some_and(|rest| rest.len() == 40 && rest.iter().all(u8::is_ascii_hexdigit));
    native || password.starts_with(b"$A$") && password.len() >= 70
}

/// Decodes hexadecimal digits. What cannot be read stays as it is, and is no hash then.
fn unhex(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    let all: Option<Vec<u8>> = bytes.chunks(2).map(pair).collect();
    all.unwrap_or_else(|| bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::pieces::pieces;
    use config::{Snapshot, UserRow, Users};
    use std::sync::Arc;

    const HASH: &str = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";

    fn of(password: &str, attributes: &str) -> Option<String> {
        let row = UserRow {
            username: "app".into(),
            password: Some(password.into()),
            attributes: attributes.into(),
            ..UserRow::default()
        };
        let users = Users::build([row], &Variables::default()).unwrap();
        let snapshot = Snapshot {
            users: Arc::new(users),
            ..Snapshot::default()
        };
        clear(&pieces(Module::Users, &snapshot, &|| ()))
    }

    #[test]
    fn a_password_in_clear_is_named_and_never_said() {
        let words = of("hush", "").unwrap();
        assert_eq!(words, "the password of user 'app'");
        assert_eq!(of("", ""), None);
        assert_eq!(of(HASH, ""), None);
        let hex = |text: &str| {
            text.bytes()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let with = |text: &str| format!(r#"{{"additional_password":"{}"}}"#, hex(text));
        assert!(of(HASH, &with("hush")).is_some());
        assert_eq!(of(HASH, &with(HASH)), None);
    }

    #[test]
    fn variables_with_passwords_are_secret_unless_they_are_what_everybody_knows() {
        let of = |module, name: &str, value: &str| {
            let (variables, _) = Variables::build([(name, value)]).unwrap();
            let snapshot = Snapshot {
                variables: Arc::new(variables),
                ..Snapshot::default()
            };
            clear(&pieces(module, &snapshot, &|| ()))
        };
        let (mysql, admin) = (Module::MysqlVariables, Module::AdminVariables);
        assert_eq!(of(mysql, "mysql-max_connections", "7"), None);
        assert_eq!(of(admin, "admin-cluster_check_interval_ms", "70"), None);
        assert!(of(mysql, "mysql-monitor_password", "hush").is_some());
        assert!(of(admin, "admin-cluster_password", "hush").is_some());
        assert!(of(admin, "admin-admin_credentials", "a:hush").is_some());
    }
}
