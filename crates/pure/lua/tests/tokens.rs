//! Statements and their tokens, as texts: `tokens.txt`.

use lua::tokenizer::{Id, Token, tokenize};

/// Token as the file writes it: marks have a name only.
fn shown(token: &Token<'_>) -> String {
    let text = String::from_utf8_lossy(&token.text);
    let name = token.id.name().trim_start_matches("TK_");
    let number = token.id.number();
    let mark = (1..=6).contains(&number) || (13..=27).contains(&number);
    match mark {
        true => name.to_owned(),
        false => format!("{name}:{text}"),
    }
}

#[test]
fn statements_have_the_tokens_that_scripts_know() {
    let mut lines = include_str!("tokens.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# A") && !line.starts_with("# `"));
    let mut compared = 0;
    while let Some(statement) = lines.next() {
        let tokens = lines.next().expect("tokens of a statement");
        let sql = statement.replace(r"\n", "\n").replace(r"\t", "\t");
        let found: Vec<String> = tokenize(sql.as_bytes()).iter().map(shown).collect();
        assert_eq!(found.join(" "), tokens, "{statement}");
        compared += 1;
    }
    assert!(compared > 15, "the file was not read");
}

#[test]
fn bytes_beyond_ascii_fall_apart_outside_of_quotes() {
    let tokens = tokenize("ä `ä`".as_bytes());
    assert_eq!(tokens.len(), 3);
    assert_eq!((tokens[0].id, &*tokens[0].text), (Id::UNKNOWN, &[0xc3][..]));
    assert_eq!(
        (tokens[2].id, &*tokens[2].text),
        (Id::LITERAL, "ä".as_bytes())
    );
}

#[test]
fn nothing_of_an_open_quote_is_left_for_the_next_text() {
    assert_eq!(tokenize(b"/* open").len(), 1);
    assert_eq!(tokenize(b"SELECT").len(), 1);
    assert_eq!(tokenize(b" \n\t").len(), 0);
}
