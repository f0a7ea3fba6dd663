//! Which extension makes a stock, and which is best for a demand.

use crate::{Demand, FieldBits, Role, Size, cost};

/// An OT extension; both parties must take the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extension {
    /// SoftSpokenOT: traffic for every OT, no preparation.
    SoftSpoken(FieldBits),
    /// Silent OT: little traffic, and less the more is made. Assumes LPN with regular noise.
    Silent(Size),
}

/// The link between the parties, as far as the choice of an extension depends on it. Both must state the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Bits per second in one direction.
    pub bits_per_second: f64,
}

impl Link {
    /// 10 gigabits per second.
    pub const LOCAL: Self = Self { bits_per_second: 1e10 };
    /// 1 gigabit per second.
    pub const LAN: Self = Self { bits_per_second: 1e9 };
    /// 100 megabits per second.
    pub const WAN: Self = Self { bits_per_second: 1e8 };
}

impl Default for Link {
    fn default() -> Self {
        Self::LAN
    }
}

impl Extension {
    /// Every extension.
    pub const ALL: [Self; 7] = [
        Self::SoftSpoken(FieldBits::One),
        Self::SoftSpoken(FieldBits::Two),
        Self::SoftSpoken(FieldBits::Four),
        Self::SoftSpoken(FieldBits::Eight),
        Self::Silent(Size::Small),
        Self::Silent(Size::Medium),
        Self::Silent(Size::Large),
    ];

    /// The extension that makes `demand` in the least time over `link`: exact bytes, and a core's time per OT as measured
    /// (`examples/rate.rs`). Depends on public numbers alone, so both parties come to the same.
    pub fn for_demand(demand: &Demand, link: Link) -> Self {
        let seconds = |extension: &Self| extension.seconds(demand, link);
        Self::ALL.into_iter().min_by(|a, b| seconds(a).total_cmp(&seconds(b))).unwrap_or_default()
    }

    /// The estimate that [`Self::for_demand`] compares: transfer in both directions at once, and then computation.
    pub fn seconds(self, demand: &Demand, link: Link) -> f64 {
        let cost = cost::generate(demand, self, Role::Client);
        let transfer = 8.0 * cost.bytes_sent.max(cost.bytes_received) as f64 / link.bits_per_second;
        let ots: usize =
            [Role::Client, Role::Server].map(|role| demand.bit_ots(role) + demand.word_ots(role)).iter().sum();
        transfer + self.start_seconds() + self.ot_seconds() * ots as f64
    }

    /// A core's time for one OT, both its ends taken together.
    fn ot_seconds(self) -> f64 {
        match self {
            Self::SoftSpoken(FieldBits::One) => 38e-9,
            Self::SoftSpoken(FieldBits::Two) => 36e-9,
            Self::SoftSpoken(FieldBits::Four) => 40e-9,
            Self::SoftSpoken(FieldBits::Eight) => 90e-9,
            Self::Silent(_) => 40e-9,
        }
    }

    /// A core's time before the first OT.
    fn start_seconds(self) -> f64 {
        match self {
            Self::SoftSpoken(_) => 0.0,
            Self::Silent(_) => 5e-3,
        }
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
