//! What an expression with look-around can cost for one statement that is made for it: `cargo run
//! --release -p config --example expressions`. It reports.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a measurement reads the clock and prints"
)]

use config::{Dialect, Pattern};
use std::time::Instant;

fn main() {
    let patterns = [
        ("look-ahead at each place", r"(?=.*foo).*bar"),
        ("anchored, three stars", r"^(?!x).*.*.*z$"),
        ("three stars", r"(?!x).*a.*b.*z$"),
        ("two groups", r"(?:a|b)*(?:a|c)*d(?!x)"),
        ("two groups, anchored", r"^(?:a|b)*(?:a|c)*(?:a|d)*e(?!x)"),
        ("what it has had", r"(\w+)\1+x"),
        ("exponential", r"^(?=a)(a+)+$"),
        ("usual", r"^SELECT(?!.*FOR UPDATE)"),
        ("usual, anywhere", r"(?<!x)aab(?!y)"),
    ];
    for (what, expression) in patterns {
        let pattern = Pattern::compile(expression, true, Dialect::Pcre).expect("valid");
        for length in [100, 300, 1000, 2048, 16 << 10, 64 << 10, 1 << 20] {
            let text = "a".repeat(length);
            let (mut took, mut found) = (std::time::Duration::MAX, None);
            for _ in 0..3 {
                let began = Instant::now();
                found = pattern.look(text.as_bytes());
                took = took.min(began.elapsed());
                if took.as_secs() > 1 {
                    break;
                }
            }
            println!(
                "{what:26} {expression:32} {length:8} {:10.3} ms {found:?}",
                took.as_secs_f64() * 1e3
            );
            if took.as_secs() > 3 {
                break;
            }
        }
    }
}
