//! The tokenizer, as scripts call it: lists of tables with a name, a number and a text.

use lua::tokenizer::{self, Id, Token};
use mlua::{Error, Function, Lua, LuaString, Table, Value};
use std::borrow::Cow;

/// Functions over lists of tokens, for `proxy.lua`.
pub(crate) fn table(vm: &Lua) -> Result<Table, Error> {
    let table = vm.create_table()?;
    let cut = vm.create_function(|vm, sql: LuaString| {
        let (numbers, texts) = packed(&tokenizer::tokenize(&sql.as_bytes()));
        Ok((vm.create_string(numbers)?, vm.create_string(texts)?))
    })?;
    let name_of = vm.create_function(|_, number: u16| Ok(Id::of(number).map(Id::name)))?;
    let chunk = vm.load(include_str!("tokens.lua")).set_name("=tokenizer");
    let tokenize: Function = chunk.call((cut, name_of))?;
    table.set("tokenize", tokenize)?;
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

/// Kinds and lengths of tokens, a byte each or 255 and four; and their texts.
fn packed(tokens: &[Token<'_>]) -> (Vec<u8>, Vec<u8>) {
    let mut numbers = Vec::with_capacity(tokens.len() * 2);
    let mut texts = Vec::new();
    let mut add = |number: usize| match u8::try_from(number) {
        Ok(number) if number < u8::MAX => numbers.push(number),
        _ => {
            numbers.push(u8::MAX);
            numbers.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
    };
    for token in tokens {
        add(token.id.number().into());
        add(token.text.len());
        texts.extend_from_slice(&token.text);
    }
    (numbers, texts)
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
