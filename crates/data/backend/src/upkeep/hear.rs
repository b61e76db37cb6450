//! Words of other cores, and who acts on each.

use crate::cores::word::Word;
use crate::pool::pools::Pools;
use std::rc::Rc;

impl Pools {
    /// A core has said this.
    pub fn hear(self: &Rc<Self>, from: u32, word: Word) {
        match word {
            Word::Wanted(wanted) => self.wanted(from, wanted),
            Word::Lent(lent) => self.arrived(*lent),
            Word::NotLent(number) => self.neighbours.answered(number),
            Word::Met(met) => self.heard_of(&met.host, met.port, met.bulk),
            Word::Crowded(crowded, number) => self.hear_of_crowd(from, crowded, number),
            Word::Uncrowded(number) => self.neighbours.answered(number),
            Word::Slot(hostgroup) => self.hear_of_slot(hostgroup),
            Word::Shed(hostgroup) => self.hear_of_shedding(hostgroup),
        }
    }
}
