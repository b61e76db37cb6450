//! Tests of the admin port as a whole: scripts of operators, and what each promises.

mod careful;
mod digests;
mod durability;
mod firewall;
mod golden;
mod honest;
mod layers;
mod published;
mod scripts;
mod shown;
mod starts;
