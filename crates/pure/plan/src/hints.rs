//! Hints in the first comment: `/* hostgroup=2; query_timeout=500 */`. They beat every rule, also
//! one with apply=1.

use crate::trace::Trace;
use crate::{Bounds, By, Plan, Routed, Statement};
use std::str::FromStr;

pub(crate) fn obey<T: Trace>(plan: &mut Plan, statement: &Statement<'_>, trace: &mut T) {
    let Some(comment) = statement.comment else {
        return;
    };
    for (key, value) in sql::words::hints(comment) {
        let known = one(plan, key, value);
        trace.saw("hint", || match known {
            Some(true) => format!("{key}={value}"),
            Some(false) => format!("{key}={value}: left out, the value makes no sense"),
            None => format!("{key}={value}: left out, not a hint"),
        });
    }
}

/// Follows what a script says, which beats hints.
pub(crate) fn follow_script<T: Trace>(plan: &mut Plan, routed: Routed, trace: &mut T) {
    if routed == Routed::default() {
        return;
    }
    if let Some(hostgroup) = routed.hostgroup {
        plan.send_to(hostgroup, By::Script);
    }
    match routed.cache_ttl_ms {
        Some(0) => plan.uncache(),
        Some(ms) => plan.cache_ttl_ms = Some(ms.into()),
        None => {}
    }
    trace.saw("script", || format!("{routed:?}"));
}

/// The number that a value begins with, whatever stands behind it, as `atoi` reads it: of `1
/// app=web` and `1,x` it is 1. A value that begins otherwise has none.
pub(crate) fn number<N: FromStr>(value: &str) -> Option<N> {
    let length = value.bytes().take_while(u8::is_ascii_digit).count();
    value[..length].parse().ok()
}

/// Whether it has been obeyed; `None` if it is no hint of ours.
fn one(plan: &mut Plan, key: &str, value: &str) -> Option<bool> {
    let number = number::<u32>(value);
    let ms = number.map(u64::from);
    match &*key.to_ascii_lowercase() {
        "hostgroup" => {
            if let Some(hostgroup) = number {
                plan.send_to(hostgroup, By::Hint);
            }
        }
        "query_timeout" => plan.timeout_ms = ms.or(plan.timeout_ms),
        "query_retries" => plan.retries = number.or(plan.retries),
        "query_delay" => plan.delay_ms = number.or(plan.delay_ms),
        // 0 is how one statement stays out of a cache that rules have it in.
        "cache_ttl" if ms == Some(0) => plan.uncache(),
        "cache_ttl" => plan.cache_ttl_ms = ms.or(plan.cache_ttl_ms),
        "mirror" => plan.wish.hostgroup = number.or(plan.wish.hostgroup),
        "create_new_connection" => plan.new_connection |= number == Some(1),
        key => {
            let mut bounds = plan.bounds.take().unwrap_or_default();
            let heard = bounds.hear(key, value);
            plan.bounds = (*bounds != Bounds::default()).then_some(bounds);
            return heard;
        }
    }
    Some(number.is_some())
}
