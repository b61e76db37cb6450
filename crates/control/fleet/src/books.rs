//! The books of a fleet: which keys there are, and how they are written.
//!
//! | key behind the prefix | has |
//! |---|---|
//! | `/now/modules/NAME` | [`Head`]: the truth of a module |
//! | `/now/proxies/UUID` | [`Status`], under a lease |
//! | `/parts/NAME/ID/NNNNN` | a part of a generation's text |
//! | `/history/NAME/GENERATION` | [`Head`] of what was the truth once |
//! | `/shares/ledger` | [`Ledger`]: who has how much of each limit |
//! | `/shares/proxies/UUID` | [`Report`]: what a proxy has and needs of limits, under a lease |

use crate::place::Place;
use crate::record::{Head, Status};
use crate::seal::Seal;
use crate::share::{Ledger, Report};
use crate::store::{Failed, Kept, Store, Watch};
use rt::Rt;
use std::collections::{BTreeMap, BTreeSet};

/// Generations of a module that are kept,
pub const HISTORY_MAX: usize = 20;
/// and bytes of their texts together; the truth stays whatever it has.
pub const HISTORY_BYTES_MAX: usize = 64 << 20;

/// Bytes of a part: in base64, within a request, they stay under etcd's limit of 1.5 MB.
const PART_BYTES: usize = 512 << 10;
/// Parts of a text that is read, at most.
const PARTS_MAX: usize = 4096;
/// Seconds after which what a proxy says of itself goes, if it does not say that it lives.
const LEASE_S: u64 = 10;
/// Seconds after which what a proxy says of its limits goes, if it does not say that it lives:
/// after that others get its part.
const SHARES_LEASE_S: u64 = 6;

/// Truth of a module, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// Its generation.
    pub head: Head,
    /// Revision of the store in which it was written.
    pub revision: u64,
}

/// Modules and proxies in the store, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Grows with each writing.
    pub revision: u64,
    /// By the module's name.
    pub modules: BTreeMap<String, Truth>,
    /// Those that live.
    pub proxies: Vec<Status>,
}

/// Ledger and reports of limits in the store, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shares {
    /// Who has how much.
    pub ledger: Ledger,
    /// The revision in which that was written; 0 for never.
    pub revision: u64,
    /// Of the proxies that live.
    pub reports: Vec<Report>,
}

/// Result of a writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Success: what was written is the truth, since this revision.
    Done(u64),
    /// Another proxy was faster; the truth as it is now.
    Slower(Option<Truth>),
}

/// The books of one fleet.
pub struct Books {
    store: Store,
}

impl std::fmt::Debug for Books {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Books({:?})", self.store.place())
    }
}

impl Books {
    /// Nobody is asked yet.
    pub fn new(rt: Rt, place: Place) -> Self {
        Self {
            store: Store::new(rt, place),
        }
    }

    fn key(&self, rest: &str) -> String {
        format!("{}/{rest}", self.store.place().prefix)
    }

    fn head_key(&self, module: &str) -> String {
        self.key(&format!("now/modules/{module}"))
    }

    fn history_key(&self, module: &str, generation: u64) -> String {
        self.key(&format!("history/{module}/{generation:020}"))
    }

    fn part_key(&self, module: &str, id: &str, part: usize) -> String {
        self.key(&format!("parts/{module}/{id}/{part:05}"))
    }

    /// Reads what the store has now.
    ///
    /// # Errors
    /// Nobody answers. What cannot be read is left out.
    pub async fn look(&self) -> Result<Seen, Failed> {
        let (modules, proxies) = (self.key("now/modules/"), self.key("now/proxies/"));
        let (revision, kept) = self.store.range(&self.key("now/"), false).await?;
        let mut seen = Seen {
            revision,
            ..Seen::default()
        };
        for Kept {
            key,
            value,
            revision,
        } in kept
        {
            if let Some(name) = key.strip_prefix(&modules) {
                let head = serde_json::from_slice(&value);
                seen.modules.extend(head.ok().map(|head| {
                    let truth = Truth { head, revision };
                    (name.to_owned(), truth)
                }));
            } else if key.starts_with(&proxies) {
                seen.proxies
                    .extend(serde_json::from_slice::<Status>(&value).ok());
            }
        }
        Ok(seen)
    }

    /// Rings when there is something else than was seen.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn watch(&self, seen: &Seen) -> Result<Watch, Failed> {
        self.store.watch(&self.key("now/"), seen.revision + 1).await
    }

    /// Makes a text the truth of a module, if the truth is that of this revision still (0: if there
    /// is none). The parts of a long one are there before, and one small writing makes them the truth.
    ///
    /// # Errors
    /// Nobody answers: whether it was written is not known, if it was begun.
    pub async fn write(
        &self,
        module: &str,
        (mut head, guard): (Head, u64),
        text: &[u8],
        seal: Option<&Seal>,
    ) -> Result<Written, Failed> {
        let mut parts = Vec::new();
        for (nth, part) in text.chunks(PART_BYTES).enumerate() {
            let key = self.part_key(module, &head.id, nth);
            let part = match seal {
                Some(seal) => seal
                    .seal(&place(module, &head.id, nth), part)
                    .map_err(Failed::Said)?,
                None => part.to_vec(),
            };
            parts.push((key, part));
        }
        (head.parts, head.bytes, head.is_sealed) = (parts.len(), text.len(), seal.is_some());
        let value = serde_json::to_vec(&head).map_err(|error| Failed::Said(error.to_string()))?;
        let mut puts = vec![
            (self.head_key(module), value.clone()),
            (self.history_key(module, head.generation), value),
        ];
        if parts.len() < 2 {
            puts.append(&mut parts);
        }
        for (key, part) in &parts {
            self.store.put(key, part, 0).await?;
        }
        let key = self.head_key(module);
        if let Some(revision) = self.store.put_if((&key, guard), &puts).await? {
            return Ok(Written::Done(revision));
        }
        // A node that did not answer may have written it before the next one was asked.
        let truth = self.truth(module).await?;
        match truth.as_ref().filter(|truth| truth.head.id == head.id) {
            Some(truth) => Ok(Written::Done(truth.revision)),
            None => {
                if !parts.is_empty() {
                    let own = self.key(&format!("parts/{module}/{}/", head.id));
                    self.store.drop_all(&own).await?;
                }
                Ok(Written::Slower(truth))
            }
        }
    }

    /// The truth of one module.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn truth(&self, module: &str) -> Result<Option<Truth>, Failed> {
        let kept = self.store.read(&self.head_key(module)).await?;
        Ok(kept.and_then(|kept| {
            let head = serde_json::from_slice(&kept.value).ok()?;
            let revision = kept.revision;
            Some(Truth { head, revision })
        }))
    }

    /// The text of a generation.
    ///
    /// # Errors
    /// Nobody answers, a part is gone, or this proxy cannot open it.
    pub async fn text(
        &self,
        module: &str,
        head: &Head,
        seal: Option<&Seal>,
    ) -> Result<Vec<u8>, Failed> {
        let said = |words: &str| Failed::Said(words.to_owned());
        if head.parts > PARTS_MAX {
            return Err(said("it has more parts than a module can have"));
        }
        if head.is_sealed && seal.is_none() {
            return Err(said(
                "it is sealed, and admin-cluster_key_file is not set here",
            ));
        }
        let mut text = Vec::new();
        for nth in 0..head.parts {
            let part = self
                .store
                .read(&self.part_key(module, &head.id, nth))
                .await?;
            let part = part.ok_or_else(|| said("a part of it is not there"))?.value;
            match seal.filter(|_| head.is_sealed) {
                Some(seal) => {
                    let opened = seal.open(&place(module, &head.id, nth), &part);
                    let words =
                        "it is sealed with another key than that of admin-cluster_key_file here";
                    text.extend(opened.ok_or_else(|| said(words))?);
                }
                None => text.extend(part),
            }
        }
        match text.len() == head.bytes {
            true => Ok(text),
            false => Err(said("it has not as many bytes as it says")),
        }
    }

    /// The generations of a module that are kept, the latest first.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn history(&self, module: &str) -> Result<Vec<Head>, Failed> {
        let (_, kept) = self
            .store
            .range(&self.key(&format!("history/{module}/")), false)
            .await?;
        let heads = kept.iter().rev();
        Ok(heads
            .filter_map(|kept| serde_json::from_slice(&kept.value).ok())
            .collect())
    }

    /// Drops what is too old, behind a writing of this revision: generations, and parts of none.
    /// Whoever writes parts now and began before that revision is slower anyway.
    ///
    /// # Errors
    /// Nobody answers; the next writing tries again.
    pub async fn prune(&self, module: &str, revision: u64) -> Result<(), Failed> {
        let history = self.history(module).await?;
        let stay = kept_of(&history);
        for head in &history[stay..] {
            let key = self.history_key(module, head.generation);
            self.store.drop_one(&key).await?;
        }
        let named: BTreeSet<_> = history[..stay].iter().map(|head| &*head.id).collect();
        let beginning = self.key(&format!("parts/{module}/"));
        let (_, parts) = self.store.range(&beginning, true).await?;
        let id = |kept: &Kept| {
            let rest = kept.key.strip_prefix(&beginning)?;
            Some(rest.split_once('/')?.0.to_owned())
        };
        let old: BTreeSet<_> = parts
            .iter()
            .filter(|kept| kept.revision < revision)
            .filter_map(id)
            .filter(|id| !named.contains(&**id))
            .collect();
        for id in old {
            self.store.drop_all(&format!("{beginning}{id}/")).await?;
        }
        Ok(())
    }

    /// Says what this proxy has; the lease that was given, or another one if that has ended.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn say(&self, status: &Status, lease: Option<u64>) -> Result<u64, Failed> {
        let lease = match lease {
            Some(lease) => lease,
            None => self.store.lease(LEASE_S).await?,
        };
        let key = self.key(&format!("now/proxies/{}", status.uuid));
        let value = serde_json::to_vec(status).map_err(|error| Failed::Said(error.to_string()))?;
        self.store.put(&key, &value, lease).await?;
        Ok(lease)
    }

    /// Who has how much of each limit, and who needs how much.
    ///
    /// # Errors
    /// Nobody answers. What cannot be read is left out.
    pub async fn shares(&self) -> Result<Shares, Failed> {
        let (ledger, proxies) = (self.key("shares/ledger"), self.key("shares/proxies/"));
        let (_, kept) = self.store.range(&self.key("shares/"), false).await?;
        let mut shares = Shares::default();
        for Kept {
            key,
            value,
            revision,
        } in kept
        {
            if key == ledger {
                shares.ledger = serde_json::from_slice(&value).unwrap_or_default();
                shares.revision = revision;
            } else if key.starts_with(&proxies) {
                let report = serde_json::from_slice::<Report>(&value);
                shares.reports.extend(report.ok());
            }
        }
        Ok(shares)
    }

    /// Says what this proxy has and needs; the lease that was given, or another one if that has ended.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn say_needs(&self, report: &Report, lease: Option<u64>) -> Result<u64, Failed> {
        let lease = match lease {
            Some(lease) => lease,
            None => self.store.lease(SHARES_LEASE_S).await?,
        };
        let key = self.key(&format!("shares/proxies/{}", report.uuid));
        let value = serde_json::to_vec(report).map_err(|error| Failed::Said(error.to_string()))?;
        self.store.put(&key, &value, lease).await?;
        Ok(lease)
    }

    /// Writes the next ledger, if the one of that revision is still the last; whether it was.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn write_ledger(&self, ledger: &Ledger, revision: u64) -> Result<bool, Failed> {
        let value = serde_json::to_vec(ledger).map_err(|error| Failed::Said(error.to_string()))?;
        let key = self.key("shares/ledger");
        let puts = [(key.clone(), value)];
        let written = self.store.put_if((&key, revision), &puts).await?;
        Ok(written.is_some())
    }

    /// Whether what this proxy has said stays for a while longer.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn live(&self, lease: u64) -> Result<bool, Failed> {
        self.store.keep_alive(lease).await
    }
}

/// To what a sealed part is bound.
fn place(module: &str, id: &str, part: usize) -> String {
    format!("{module} {id} {part}")
}

/// How many of these, the latest first, are kept.
fn kept_of(history: &[Head]) -> usize {
    let mut bytes = 0_usize;
    let fits = |(nth, head): &(usize, &Head)| {
        bytes = bytes.saturating_add(head.bytes);
        *nth == 0 || *nth < HISTORY_MAX && bytes <= HISTORY_BYTES_MAX
    };
    history.iter().enumerate().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_generations_are_kept_within_both_bounds() {
        let of = |bytes: usize, count: usize| {
            let head = Head {
                bytes,
                ..Head::default()
            };
            kept_of(&vec![head; count])
        };
        assert_eq!(of(10, 5), 5);
        assert_eq!(of(10, 50), HISTORY_MAX);
        assert_eq!(of(HISTORY_BYTES_MAX / 4, 50), 4);
        assert_eq!(of(HISTORY_BYTES_MAX + 1, 50), 1);
        assert_eq!(of(0, 0), 0);
    }
}
