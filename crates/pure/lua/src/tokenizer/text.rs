//! Tokens to texts: the helpers of `proxy.tokenizer`.

use super::{Id, Token};

/// First token that is no comment.
pub fn first_of_statement<'a, 'b>(tokens: &'b [Token<'a>]) -> Option<&'b Token<'a>> {
    tokens.iter().find(|token| token.id != Id::COMMENT)
}

/// Text without comments and values, by which scripts tell statements of one form.
pub fn normalize(tokens: &[Token<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for token in tokens {
        let text = &token.text;
        match token.id {
            Id::COMMENT => continue,
            Id::COMMENT_MYSQL => {
                out.extend_from_slice(b"/*!");
                out.extend_from_slice(text);
                out.extend_from_slice(b"*/");
            }
            Id::STRING | Id::INTEGER | Id::FLOAT => out.push(b'?'),
            Id::FUNCTION => {
                out.extend(text.to_ascii_uppercase());
                continue;
            }
            Id::LITERAL if text.starts_with(b"@") => out.extend_from_slice(text),
            Id::LITERAL if !begins_a_transaction(&out, text) => {
                out.push(b'`');
                out.extend_from_slice(text);
                out.push(b'`');
            }
            _ => out.extend(text.to_ascii_uppercase()),
        }
        out.push(b' ');
    }
    out
}

/// Whether a word stands bare though it is no keyword: the first of a statement that begins or ends a transaction.
fn begins_a_transaction(before: &[u8], word: &[u8]) -> bool {
    let first: [&[u8]; 4] = [b"COMMIT", b"ROLLBACK", b"BEGIN", b"START"];
    match before {
        b"" => first.iter().any(|one| one.eq_ignore_ascii_case(word)),
        b"START " => word.eq_ignore_ascii_case(b"TRANSACTION"),
        _ => false,
    }
}

/// Texts of all tokens but comments, strings quoted on request.
pub fn bare(tokens: &[Token<'_>], quote: bool) -> Vec<Vec<u8>> {
    let text = |token: &Token<'_>| match token.id {
        Id::STRING if quote => quoted(&token.text),
        _ => token.text.to_vec(),
    };
    let spoken = tokens.iter().filter(|token| token.id != Id::COMMENT);
    spoken.map(text).collect()
}

/// Statement made of tokens again, without comments.
pub fn query(tokens: &[Token<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for token in tokens.iter().filter(|token| token.id != Id::COMMENT) {
        match token.id {
            Id::STRING => out.extend(quoted(&token.text)),
            _ => out.extend_from_slice(&token.text),
        }
        if token.id != Id::FUNCTION {
            out.push(b' ');
        }
    }
    out
}

/// Quotes a text as Lua's `%q` does.
pub fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' | b'\n' => out.extend_from_slice(&[b'\\', byte]),
            b'\r' => out.extend_from_slice(b"\\r"),
            0 => out.extend_from_slice(b"\\000"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::super::tokenize;
    use super::*;

    fn normal(sql: &str) -> String {
        String::from_utf8(normalize(&tokenize(sql.as_bytes()))).unwrap()
    }

    #[test]
    fn values_and_comments_are_not_in_the_normal_text() {
        assert_eq!(
            normal("SELECT a.b, 'x' FROM t WHERE id IN (1,2) -- c"),
            "SELECT `a` . `b` , ? FROM `t` WHERE `id` IN ( ? , ? ) "
        );
        assert_eq!(
            normal("select count(*), @v /*!40000 x*/"),
            "SELECT COUNT( * ) , @v /*!40000 x*/ "
        );
    }

    #[test]
    fn words_of_transactions_are_bare_only_at_the_begin() {
        assert_eq!(normal("/* c */ commit"), "COMMIT ");
        assert_eq!(normal("start transaction"), "START TRANSACTION ");
        assert_eq!(normal("start slave"), "START `slave` ");
        assert_eq!(
            normal("SELECT begin, transaction"),
            "SELECT `begin` , `transaction` "
        );
    }

    #[test]
    fn a_statement_is_made_of_tokens_again() {
        let tokens = tokenize(b"/* c */ SELECT f(1, 'a\"b')");
        assert_eq!(query(&tokens), b"SELECT f( 1 , \"a\\\"b\" ) ");
        assert_eq!(&*first_of_statement(&tokens).unwrap().text, b"SELECT");
        assert_eq!(first_of_statement(&tokenize(b"-- c")), None);
        assert_eq!(bare(&tokens, false)[5], b"a\"b");
    }

    #[test]
    fn quoted_texts_are_read_back_by_lua() {
        assert_eq!(quoted(b"a\n\r\0\\"), b"\"a\\\n\\r\\000\\\\\"");
    }
}
