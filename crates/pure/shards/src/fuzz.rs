//! Bodies of the fuzz targets of this crate.

use crate::facts::{Facts, Numbering, explained};
use crate::finish::finish;
use crate::map::Map;
use crate::routed::Spread;
use crate::rows::{PartitionRow, TableRow};
use crate::spread::spread;
use sql::Lexing;
use sql::tree::{DoubleQuotes, tree};

/// Reads anything as a statement about two tables without a panic: the first line is its comment. What
/// a leg is sent has a tree again, and names none of the two.
#[doc(hidden)]
pub fn fuzz_routes(data: &[u8]) {
    let (comment, text) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (Some(&data[..end]), &data[end + 1..]),
        None => (None, data),
    };
    let _read = std::str::from_utf8(text).map(crate::command);
    let facts = Facts {
        schema: "shop",
        lexing: Lexing::Escapes,
        quotes: DoubleQuotes::Strings,
        comment,
        parameters: None,
        prepares: text.len() % 2 == 0,
        numbers: Numbering::Whichever,
        columns: None,
        bound: None,
        looked: None,
    };
    let map = map();
    if let Some(Ok(finish)) = finish(&map, text, &facts) {
        let sent = finish.text(text);
        let shown = || String::from_utf8_lossy(&sent).into_owned();
        assert!(
            tree(&sent, facts.lexing, facts.quotes).is_some(),
            "{}",
            shown()
        );
        let again = spread(&map, &sent, &facts);
        assert_eq!(again.spread, Spread::Plain, "{}", shown());
    }
    let routed = spread(&map, text, &facts);
    let legs = match &routed.spread {
        Spread::Point(leg) => std::slice::from_ref(leg),
        Spread::Some(legs) | Spread::All(legs) => legs,
        Spread::Plain | Spread::Refused(_) => return,
    };
    for leg in legs {
        let sent = leg.text(text);
        let begin = explained(&sent, facts.lexing);
        let has_tree = |text: &[u8]| tree(text, facts.lexing, facts.quotes).is_some();
        let was_read = has_tree(&text[explained(text, facts.lexing)..]);
        let is_read = !was_read || has_tree(&sent[begin..]);
        let shown = || String::from_utf8_lossy(&sent).into_owned();
        assert!(is_read, "{}", shown());
        let again = spread(&map, &sent, &facts);
        assert!(
            matches!(again.spread, Spread::Plain | Spread::Refused(_)),
            "{}",
            shown()
        );
    }
}

fn map() -> Map {
    let table = |name: &str, column: &str| TableRow {
        table_name: name.into(),
        key_column: column.into(),
        function: "MOD(2)".into(),
        default_table: format!("{name}_default"),
        ..TableRow::default()
    };
    let partition = |table: &str, value: &str| PartitionRow {
        table_name: table.into(),
        partition_name: format!("p{value}"),
        partition_value: value.into(),
        hostgroup_id: value.parse().unwrap_or_default(),
        ..PartitionRow::default()
    };
    let tables = vec![table("users", "id"), table("orders", "user_id")];
    let partitions = vec![
        partition("users", "0"),
        partition("users", "1"),
        partition("orders", "0"),
        partition("orders", "1"),
    ];
    Map::build(tables, partitions).unwrap_or_default()
}
