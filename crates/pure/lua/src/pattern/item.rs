//! One attempt of a pattern at one offset.

use super::{Broken, Budget, CAPTURES_MAX, Capture, DEPTH_MAX};

/// Single character of a pattern: what one byte is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    /// Its text, a set with its brackets.
    text: &'a [u8],
}

impl<'a> Item<'a> {
    /// Reads the item that begins at an offset of a pattern.
    pub(super) fn read(pattern: &'a [u8], at: usize) -> Result<Self, Broken> {
        let rest = pattern.get(at..).unwrap_or_default();
        let length = match rest {
            [] => 0,
            [b'%'] => return Err(Broken::Malformed("ends with '%'")),
            [b'%', ..] => 2,
            [b'[', ..] => set_length(rest)?,
            _ => 1,
        };
        Ok(Self {
            text: &rest[..length],
        })
    }

    fn fits(self, byte: u8) -> bool {
        match self.text {
            [b'.'] => true,
            [b'%', class] => in_class(byte, *class),
            [b'[', b'^', inner @ .., b']'] => !in_set(byte, inner),
            [b'[', inner @ .., b']'] => in_set(byte, inner),
            [one] => *one == byte,
            _ => false,
        }
    }
}

/// Length of a set with its brackets. A bracket that comes first is one of its characters.
fn set_length(text: &[u8]) -> Result<usize, Broken> {
    let open = Broken::Malformed("missing ']'");
    let mut at = match text {
        [b'[', b'^', ..] => 2,
        _ => 1,
    };
    let first = at;
    loop {
        match text.get(at).ok_or(open)? {
            b']' if at > first => return Ok(at + 1),
            b'%' if at + 1 >= text.len() => return Err(open),
            b'%' => at += 2,
            _ => at += 1,
        }
    }
}

fn in_set(byte: u8, mut inner: &[u8]) -> bool {
    loop {
        inner = match inner {
            [] => return false,
            [b'%', class, rest @ ..] => match in_class(byte, *class) {
                true => return true,
                false => rest,
            },
            [first, b'-', last, rest @ ..] => match (*first..=*last).contains(&byte) {
                true => return true,
                false => rest,
            },
            [one, rest @ ..] => match *one == byte {
                true => return true,
                false => rest,
            },
        };
    }
}

fn in_class(byte: u8, class: u8) -> bool {
    let fits = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    fits != class.is_ascii_uppercase()
}

/// Capture that is open, or has an end, or is a position.
#[derive(Clone, Copy)]
enum Slot {
    Open(usize),
    Closed(usize, usize),
    Position(usize),
}

/// Attempt with what it has captured so far.
pub(super) struct Matcher<'a, 'b> {
    subject: &'a [u8],
    pattern: &'a [u8],
    budget: &'b mut Budget,
    slots: Vec<Slot>,
}

type End = Result<Option<usize>, Broken>;

impl<'a, 'b> Matcher<'a, 'b> {
    pub(super) fn new(subject: &'a [u8], pattern: &'a [u8], budget: &'b mut Budget) -> Self {
        Self {
            subject,
            pattern,
            budget,
            slots: Vec::new(),
        }
    }

    pub(super) fn captures(&self) -> Result<Vec<Capture>, Broken> {
        let capture = |slot: &Slot| match *slot {
            Slot::Open(_) => Err(Broken::Malformed("unfinished capture")),
            Slot::Closed(start, end) => Ok(Capture::Text(start..end)),
            Slot::Position(offset) => Ok(Capture::Position(offset)),
        };
        self.slots.iter().map(capture).collect()
    }

    /// Takes steps from the budget: as many as bytes are looked at.
    fn spend(&mut self, steps: usize) -> Result<(), Broken> {
        let left = self.budget.0.checked_sub(steps as u64);
        self.budget.0 = left.ok_or(Broken::Steps)?;
        Ok(())
    }

    /// End of what the pattern from `p` on matches from `s` on.
    pub(super) fn run(&mut self, mut s: usize, mut p: usize, depth: usize) -> End {
        if depth > DEPTH_MAX {
            return Err(Broken::Complex);
        }
        loop {
            self.spend(1)?;
            match &self.pattern[p..] {
                [] => return Ok(Some(s)),
                [b'(', b')', ..] => return self.open(Slot::Position(s), s, p + 2, depth),
                [b'(', ..] => return self.open(Slot::Open(s), s, p + 1, depth),
                [b')', ..] => return self.close(s, p + 1, depth),
                [b'$'] => return Ok((s == self.subject.len()).then_some(s)),
                [b'%', b'b', rest @ ..] => {
                    let [open, close, ..] = rest else {
                        return Err(Broken::Malformed("missing arguments to '%b'"));
                    };
                    match self.balanced(s, *open, *close)? {
                        Some(end) => (s, p) = (end, p + 4),
                        None => return Ok(None),
                    }
                    continue;
                }
                [b'%', b'f', rest @ ..] => {
                    if rest.first() != Some(&b'[') {
                        return Err(Broken::Malformed("missing '[' after '%f'"));
                    }
                    let set = Item::read(self.pattern, p + 2)?;
                    self.spend(set.text.len())?;
                    let byte = |at: Option<usize>| at.and_then(|at| self.subject.get(at)).copied();
                    let before = byte(s.checked_sub(1)).unwrap_or(0);
                    if set.fits(before) || !set.fits(byte(Some(s)).unwrap_or(0)) {
                        return Ok(None);
                    }
                    p += 2 + set.text.len();
                    continue;
                }
                [b'%', digit @ b'0'..=b'9', ..] => {
                    match self.again(s, *digit)? {
                        Some(end) => (s, p) = (end, p + 2),
                        None => return Ok(None),
                    }
                    continue;
                }
                _ => {}
            }
            let item = Item::read(self.pattern, p)?;
            self.spend(item.text.len())?;
            let after = p + item.text.len();
            match self.pattern.get(after) {
                Some(b'*') => return self.most(item, s, s, after + 1, depth),
                Some(b'+') if !self.fits(item, s) => return Ok(None),
                Some(b'+') => return self.most(item, s + 1, s + 1, after + 1, depth),
                Some(b'-') => return self.least(item, s, after + 1, depth),
                Some(b'?') => {
                    if self.fits(item, s)
                        && let Some(end) = self.run(s + 1, after + 1, depth + 1)?
                    {
                        return Ok(Some(end));
                    }
                    p = after + 1;
                }
                _ if self.fits(item, s) => (s, p) = (s + 1, after),
                _ => return Ok(None),
            }
        }
    }

    fn fits(&self, item: Item<'_>, s: usize) -> bool {
        self.subject.get(s).is_some_and(|&byte| item.fits(byte))
    }

    /// As many as there are, then fewer, down to `least`.
    fn most(&mut self, item: Item<'_>, least: usize, mut s: usize, p: usize, depth: usize) -> End {
        while self.fits(item, s) {
            self.spend(item.text.len())?;
            s += 1;
        }
        loop {
            if let Some(end) = self.run(s, p, depth + 1)? {
                return Ok(Some(end));
            }
            if s == least {
                return Ok(None);
            }
            s -= 1;
        }
    }

    /// None, then more, as long as they fit.
    fn least(&mut self, item: Item<'_>, mut s: usize, p: usize, depth: usize) -> End {
        loop {
            if let Some(end) = self.run(s, p, depth + 1)? {
                return Ok(Some(end));
            }
            self.spend(item.text.len())?;
            if !self.fits(item, s) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, slot: Slot, s: usize, p: usize, depth: usize) -> End {
        if self.slots.len() >= CAPTURES_MAX {
            return Err(Broken::Captures);
        }
        self.slots.push(slot);
        let end = self.run(s, p, depth + 1)?;
        if end.is_none() {
            self.slots.pop();
        }
        Ok(end)
    }

    fn close(&mut self, s: usize, p: usize, depth: usize) -> End {
        let open = |slot: &Slot| matches!(slot, Slot::Open(_));
        let index = self.slots.iter().rposition(open);
        let index = index.ok_or(Broken::Malformed("')' without '('"))?;
        let before = self.slots[index];
        if let Slot::Open(start) = before {
            self.slots[index] = Slot::Closed(start, s);
        }
        let end = self.run(s, p, depth + 1)?;
        if end.is_none() {
            self.slots[index] = before;
        }
        Ok(end)
    }

    fn balanced(&mut self, s: usize, open: u8, close: u8) -> End {
        if self.subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut level = 1_usize;
        for at in s + 1..self.subject.len() {
            self.spend(1)?;
            let byte = self.subject[at];
            if byte == close {
                level -= 1;
                if level == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == open {
                level += 1;
            }
        }
        Ok(None)
    }

    /// Text of an earlier capture once more.
    fn again(&mut self, s: usize, digit: u8) -> End {
        let index = usize::from(digit - b'0').checked_sub(1);
        let slot = index.and_then(|index| self.slots.get(index));
        let Some(&Slot::Closed(start, end)) = slot else {
            return Err(Broken::Malformed("invalid capture index"));
        };
        let text = &self.subject[start..end];
        self.spend(text.len())?;
        Ok(self.subject[s..]
            .starts_with(text)
            .then_some(s + text.len()))
    }
}
