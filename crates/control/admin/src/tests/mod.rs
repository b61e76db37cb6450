//! Tests of the admin port as a whole: scripts of operators, and what each promises.

mod careful;
mod durability;
mod firewall;
mod golden;
mod honest;
mod published;
mod scripts;
