package params

import "math"

// What holds where somebody learns decryptions under a key that it does not have (docs/reference/protocols/ckks.md, "Flooding").
const (
	// StatisticalBits is the least l for which all decryptions under a key together tell it, or anything else but the
	// results, with an advantage of at most 2^-l. Most plans have more.
	StatisticalBits = 16
	// Decryptions is the budget of ciphertexts that are decrypted under the key of a session.
	Decryptions = 64
	// PrecisionBits: noise moves a result by more than 2^-PrecisionBits once in 150,000 times.
	PrecisionBits = 9
	// RefreshBits: the noise that up to refreshShares members of a cohort together add to a value that they refresh has, in
	// each slot, a standard deviation of 2^-RefreshBits. More members add more: the more there are, the more noise must be
	// covered, and each of them covers it alone.
	RefreshBits   = 13
	refreshShares = 4
	// farthest is what that is in standard deviations.
	farthest = 4.5
)

// Scales in bits of parameters whose results are flooded. Special primes have a bit more, and more than 61 no prime may have.
const (
	minSharedBits = 40
	MaxSharedBits = 60
	// maxBaseBits are those of two primes whose residues take five bytes.
	maxBaseBits = 80
)

// ChooseShared is as Choose for results that are flooded: with the largest scale, and a last modulus of two primes, which
// holds a result at that scale. Where values are refreshed, it is larger by as few bits as make so many levels above it hold
// masks of so many bits (0: no refresh), if that saves a level.
func ChooseShared(depth, logN int, masks float64) (Set, bool) {
	for scale := MaxSharedBits; scale >= minSharedBits; scale -= 2 {
		set := Set{
			LogN: logN, Depth: depth + 1, ScaleBits: scale, BaseBits: scale + HeadroomBits, BasePrimes: 2,
			Specials: 1, SpecialBits: 61,
		}
		if levels := math.Floor((masks - HeadroomBits) / float64(scale)); masks > 0 {
			set.BaseBits = max(set.BaseBits, 2*int(math.Ceil((masks-(levels-1)*float64(scale))/2)))
			if set.BaseBits > maxBaseBits {
				set.BaseBits = scale + HeadroomBits
			}
		}
		if set.LogQP() <= Budget(logN) {
			return set.withSpecials(), true
		}
	}
	return Set{}, false
}

// FloodDeviation is the standard deviation of the noise, on each coefficient that a result of `period` different slots
// has, with which one of so many holders of a key covers its part of a decryption.
//
// A slot is a sum of coefficients times twice a cosine, so that its noise is sqrt(2 period) times as large.
func (s Set) FloodDeviation(period, holders int) float64 {
	return s.Scale() * math.Exp2(-PrecisionBits) / (farthest * math.Sqrt(float64(2*period*holders)))
}

// RefreshDeviation is that of the noise on each coefficient of a value of `period` different slots with which one of so many
// members covers what a refresh carries over from the ciphertext before.
func (s Set) RefreshDeviation(period, members int) float64 {
	return s.Scale() * math.Exp2(-RefreshBits) / math.Sqrt(float64(2*period*min(members, refreshShares)))
}

// LightDeviation is that of noise that moves a result by 2^-lightBits, about as much as encryption does at the smallest
// scale: it blurs what the noise of ciphertexts tells of weights, and hides nothing statistically.
func (s Set) LightDeviation(period int) float64 {
	return s.Scale() * math.Exp2(-lightBits) / math.Sqrt(float64(2*period))
}

const lightBits = 14

// Spent is twice the divergence (Kullback and Leibler) of what is revealed of so many ciphertexts, flooded with a deviation,
// from what depends on nothing but their values. Each has noise of norm `noise` over the coefficients that are revealed:
// the divergence of a Gaussian from one that is shifted by a vector is norm^2 / (2 deviation^2). It adds up over
// ciphertexts, also where they depend on earlier ones.
func Spent(deviation, noise float64, ciphertexts int) float64 {
	return float64(ciphertexts) * noise * noise / (deviation * deviation)
}

// Advantage is l if nobody tells the two apart with an advantage above 2^-l: Pinsker bounds it by the root of half of the
// divergence.
func Advantage(spent float64) float64 { return 1 - math.Log2(spent)/2 }

// RoundingVariance is that of the noise in a slot that a rescaling leaves under a key of so many holders: rounding of both
// parts, the second times the secret.
func (s Set) RoundingVariance(holders int) float64 {
	return s.slotVariance(1.0/12) * (1 + s.SecretVariance(holders))
}

// SecretVariance is that of a slot of the secret, the sum of the holders' ternary ones.
func (s Set) SecretVariance(holders int) float64 { return float64(holders) * s.slotVariance(2.0/3) }

// FreshVariance is that of a slot of the error of an encryption under the secret key.
func (s Set) FreshVariance() float64 { return s.slotVariance(errorDeviation * errorDeviation) }

// errorDeviation is that of Lattigo's errors.
const errorDeviation = 3.2

// RandomisingVariance is that of the noise in a slot that re-randomising a ciphertext adds, by an encryption of zero times a
// ternary polynomial and an error in either part.
func (s Set) RandomisingVariance() float64 { return s.FreshVariance() * (1 + 2*s.SecretVariance(1)) }

// SwitchVariance is that of the noise in a slot that a key switch at a level adds, besides rounding: digits times the
// errors in the key, of a variance in a slot, over the special primes.
func (s Set) SwitchVariance(level int, key float64) float64 {
	ratio := math.Exp2(float64(s.Specials * (max(s.ScaleBits, s.BaseBits/s.BasePrimes) - s.SpecialBits)))
	return float64(s.Digits(level)) * s.slotVariance(1.0/12) * key * ratio * ratio
}

// slotVariance is the variance in a slot of a polynomial whose coefficients have one.
func (s Set) slotVariance(coefficient float64) float64 { return 2 * float64(s.Slots()) * coefficient }

// typicalGain is how much more noise than that of one rescaling a planner expects in what is revealed; what a model really
// has is known to the owner of its weights alone, who checks it.
const typicalGain = 16

// Expected is what a plan may expect to be spent on ciphertexts with `period` different slots under a deviation.
func (s Set) Expected(deviation float64, period, holders, ciphertexts int) float64 {
	noise := typicalGain * math.Sqrt(s.RoundingVariance(holders)) * s.Revealed(period)
	return Spent(deviation, noise, ciphertexts)
}

// Revealed is what the norm over revealed coefficients of noise with variance 1 in each slot is. `period` is that of the
// values that the noise comes from: they are polynomials in a power of X, whose coefficients alone are revealed. A sum of
// rotations gathers their noise in the coefficients that it has itself.
func (s Set) Revealed(period int) float64 { return math.Sqrt(float64(period) / float64(2*s.Slots())) }
