//! The tokenizer, as scripts call it: lists of tables with a name, a number and a text.

use crate::packed::Packed;
use lua::tokenizer::{self, Id, Token};
use mlua::{Error, Lua, LuaString, Table, Value};
use std::borrow::Cow;

/// Bytes of a packed token without its text.
const TOKEN_BYTES: usize = 28;
/// Fields of a token, in the order in which it is packed.
const FIELDS: [&str; 3] = ["token_name", "token_id", "text"];

/// Functions over lists of tokens, but for the one that makes a list: that is `tokens.lua`.
pub(crate) fn table(vm: &Lua) -> Result<Table, Error> {
    let table = vm.create_table()?;
    let normalize = vm.create_function(|vm, list: Table| {
        let tokens = read(&list, None)?;
        vm.create_string(tokenizer::normalize(&tokens))
    })?;
    table.set("normalize", normalize)?;
    let bare = vm.create_function(|vm, (list, quote): (Table, Option<bool>)| {
        let texts = tokenizer::bare(&read(&list, None)?, quote.unwrap_or(false));
        strings(vm, texts)
    })?;
    table.set("bare_tokens", bare)?;
    let plain = vm.create_function(|vm, list: Table| {
        strings(vm, tokenizer::bare(&read(&list, None)?, false))
    })?;
    table.set("tokens_without_comments", plain)?;
    type Range = (Table, Option<usize>, Option<usize>);
    let query = vm.create_function(|vm, (list, first, last): Range| {
        let range = (first.unwrap_or(1), last.unwrap_or(usize::MAX));
        vm.create_string(tokenizer::query(&read(&list, Some(range))?))
    })?;
    table.set("tokens_to_query", query)?;
    let first = vm.create_function(|_, list: Table| {
        for one in list.sequence_values::<Table>() {
            let one = one?;
            if one.raw_get::<u16>("token_id")? != Id::COMMENT.number() {
                return Ok(Value::Table(one));
            }
        }
        Ok(Value::Nil)
    })?;
    table.set("first_stmt_token", first)?;
    Ok(table)
}

/// Functions of ours that `tokens.lua` calls.
pub(crate) fn natives(vm: &Lua, native: &Table) -> Result<(), Error> {
    let cut = vm.create_function(|vm, sql: LuaString| {
        let sql = sql.as_bytes();
        let tokens = tokenizer::tokenize(&sql);
        let mut packed = Packed::with_room(sql.len() + tokens.len() * TOKEN_BYTES);
        packed.list(tokens.len());
        // Behind the names of all kinds.
        let kinds = usize::from(Id::COMMENT_MYSQL.number()) + 1;
        for token in &tokens {
            let number = token.id.number();
            packed.fields(3);
            packed.known(kinds);
            packed.known(number.into());
            packed.known(kinds + 1);
            packed.number(number.into());
            packed.known(kinds + 2);
            packed.text(Some(&token.text));
        }
        packed.told(vm)
    })?;
    native.set("cut", cut)?;
    let names = vm.create_function(|vm, ()| {
        let mut packed = Packed::default();
        packed.list(Id::names().count() + FIELDS.len());
        for name in Id::names().chain(FIELDS) {
            packed.text(Some(name.as_bytes()));
        }
        packed.told(vm)
    })?;
    native.set("names", names)
}

fn strings(vm: &Lua, texts: Vec<Vec<u8>>) -> Result<Table, Error> {
    let texts = texts.into_iter().map(|text| vm.create_string(text));
    vm.create_sequence_from(texts.collect::<Result<Vec<_>, _>>()?)
}

/// Tokens of a list, which a script may have changed; of a part of it, from the first to the last.
fn read(list: &Table, range: Option<(usize, usize)>) -> Result<Vec<Token<'static>>, Error> {
    let (first, last) = range.unwrap_or((1, usize::MAX));
    let mut tokens = Vec::new();
    for (at, one) in list.sequence_values::<Table>().enumerate() {
        let one = one?;
        if (first..=last).contains(&(at + 1)) {
            let number = one.raw_get::<u16>("token_id")?;
            let id = Id::of(number)
                .ok_or_else(|| Error::runtime(format!("there is no token with number {number}")))?;
            let text = one.raw_get::<LuaString>("text")?.as_bytes().to_vec();
            tokens.push(Token {
                id,
                text: Cow::Owned(text),
            });
        }
    }
    Ok(tokens)
}
