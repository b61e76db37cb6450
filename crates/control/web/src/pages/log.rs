//! The last lines of the log.

use super::asked::{Asked, only_for_administrators};
use crate::page::Page;
use maud::html;

pub(super) fn show(asked: &Asked<'_>) -> Page {
    let live = match asked.may_act() {
        false => only_for_administrators("The log"),
        true => {
            let lines = asked.work.log.recent();
            html! {
                @if lines.is_empty() { p.none { "Nothing was said yet." } }
                @else {
                    p { "The last " (lines.len()) " lines, the newest first." }
                    pre tabindex="0" { @for line in lines.iter().rev() { (line) "\n" } }
                }
            }
        }
    };
    Page {
        path: "/log",
        title: "Log",
        live,
        every_ms: 5000,
        still: html! {},
    }
}
