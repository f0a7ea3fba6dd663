//! Which extension makes a stock, and which is best for a demand.

use privet_channel::Link;

use crate::{Demand, FieldBits, Role, Size, cost};

/// An OT extension; both parties must take the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extension {
    /// SoftSpokenOT: traffic for every OT, no preparation.
    SoftSpoken(FieldBits),
    /// Silent OT: little traffic, and less the more is made. Assumes LPN with regular noise.
    Silent(Size),
}

impl Extension {
    /// Every extension.
    pub const ALL: [Self; 8] = [
        Self::SoftSpoken(FieldBits::One),
        Self::SoftSpoken(FieldBits::Two),
        Self::SoftSpoken(FieldBits::Four),
        Self::SoftSpoken(FieldBits::Eight),
        Self::Silent(Size::Small),
        Self::Silent(Size::Medium),
        Self::Silent(Size::Large),
        Self::Silent(Size::Huge),
    ];

    /// The extension that makes `demand` in the least time over `link`: exact bytes and rounds, and a core's time per OT as
    /// measured by `examples/rate.rs`. It depends on public numbers alone, so both parties come to the same.
    pub fn for_demand(demand: &Demand, link: &Link) -> Self {
        Self::cheapest(&Self::ALL, demand, link, 0.0)
    }

    /// The one of `among` with the least sum of [`Self::seconds`] and the price of its bytes, both directions together:
    /// `seconds_per_gigabyte` is what sending a gigabyte less is worth. The default if `among` is empty.
    pub fn cheapest(among: &[Self], demand: &Demand, link: &Link, seconds_per_gigabyte: f64) -> Self {
        let price = |extension: &Self| {
            let cost = cost::generate(demand, *extension, Role::Client);
            let gigabytes = (cost.bytes_sent + cost.bytes_received) as f64 / 1e9;
            extension.seconds(demand, link) + seconds_per_gigabyte * gigabytes
        };
        among.iter().copied().min_by(|a, b| price(a).total_cmp(&price(b))).unwrap_or_default()
    }

    /// The estimate of time that [`Self::cheapest`] compares: both directions' transfer at once, and one core for both parties.
    pub fn seconds(self, demand: &Demand, link: &Link) -> f64 {
        let cost = cost::generate(demand, self, Role::Client);
        let bits = 8 * cost.bytes_sent.max(cost.bytes_received);
        let transfer = bits as f64 / link.bits_per_second() as f64 + link.rtt().as_secs_f64() * cost.rounds as f64;
        transfer + self.core_seconds(demand)
    }

    /// The part of [`Self::seconds`] that is computing.
    pub fn core_seconds(self, demand: &Demand) -> f64 {
        let ots = [Role::Client, Role::Server].map(|sender| demand.ots(sender));
        let started = ots.into_iter().filter(|&ots| ots > 0).count();
        let ots: usize = ots.into_iter().sum();
        self.seconds_to_start() * started as f64 + self.seconds_per_ot() * ots as f64
    }

    /// A core's time for one OT, sender and receiver together.
    fn seconds_per_ot(self) -> f64 {
        match self {
            Self::SoftSpoken(FieldBits::One) => 9.2e-9,
            Self::SoftSpoken(FieldBits::Two) => 7.4e-9,
            Self::SoftSpoken(FieldBits::Four) => 10.5e-9,
            Self::SoftSpoken(FieldBits::Eight) => 46.2e-9,
            Self::Silent(Size::Small) => 7.6e-9,
            Self::Silent(Size::Medium) => 9.4e-9,
            Self::Silent(Size::Large) => 10.3e-9,
            Self::Silent(Size::Huge) => 14.3e-9,
        }
    }

    /// A core's time before the first OT of one direction.
    fn seconds_to_start(self) -> f64 {
        match self {
            Self::SoftSpoken(_) => 0.0,
            Self::Silent(_) => 6e-3,
        }
    }

    /// Bytes of memory that each direction holds beside the OTs it has made: an upper bound. Silent OT keeps the blocks that one iteration
    /// starts from and makes those for the next, in memory that may be moved once.
    pub fn memory(self) -> u64 {
        match self {
            Self::SoftSpoken(_) => 4 << 20,
            Self::Silent(size) => (8 << 20) + 3 * 16 * size.kept() as u64,
        }
    }

    /// Its name in control messages and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::SoftSpoken(FieldBits::One) => "softspoken-1",
            Self::SoftSpoken(FieldBits::Two) => "softspoken-2",
            Self::SoftSpoken(FieldBits::Four) => "softspoken-4",
            Self::SoftSpoken(FieldBits::Eight) => "softspoken-8",
            Self::Silent(Size::Small) => "silent-small",
            Self::Silent(Size::Medium) => "silent-medium",
            Self::Silent(Size::Large) => "silent-large",
            Self::Silent(Size::Huge) => "silent-huge",
        }
    }

    /// The extension with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.name() == name)
    }

    /// The field of the SoftSpokenOT in it.
    pub(crate) fn field(self) -> FieldBits {
        match self {
            Self::SoftSpoken(field) => field,
            Self::Silent(_) => crate::silent::BASE_FIELD,
        }
    }

    /// The byte that stands for it in the first message.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::SoftSpoken(field) => field.k() as u8,
            Self::Silent(Size::Small) => 0x81,
            Self::Silent(Size::Medium) => 0x82,
            Self::Silent(Size::Large) => 0x83,
            Self::Silent(Size::Huge) => 0x84,
        }
    }
}

impl Default for Extension {
    fn default() -> Self {
        Self::SoftSpoken(FieldBits::default())
    }
}

impl From<FieldBits> for Extension {
    fn from(field: FieldBits) -> Self {
        Self::SoftSpoken(field)
    }
}

impl From<Size> for Extension {
    fn from(size: Size) -> Self {
        Self::Silent(size)
    }
}
