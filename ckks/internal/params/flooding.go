package params

import "math"

// What holds where somebody learns decryptions under a key that it does not have (docs/protocols/ckks.md, "Flooding").
const (
	// StatisticalBits is the least l for which all decryptions under a key together tell it, or anything else but the
	// results, with an advantage of at most 2^-l. Most plans have more.
	StatisticalBits = 16
	// Decryptions is the budget of ciphertexts that are decrypted under the key of a session.
	Decryptions = 64
	// PrecisionBits: noise moves a result by more than 2^-PrecisionBits once in 150,000 times.
	PrecisionBits = 9
	// farthest is what that is in standard deviations.
	farthest = 4.5
)

// Scales in bits of parameters whose results are flooded. Larger ones would come close to the special primes, and noise of
// key switches would grow with them.
const (
	minSharedBits = 40
	maxSharedBits = 58
)

// ChooseShared is as Choose for results that are flooded: with the largest scale, and a last modulus of two primes, which
// holds a result at that scale.
func ChooseShared(depth, logN int) (Set, bool) {
	for scale := maxSharedBits; scale >= minSharedBits; scale -= 2 {
		set := Set{
			LogN: logN, Depth: depth + 1, ScaleBits: scale, BaseBits: scale + HeadroomBits, BasePrimes: 2,
			Specials: 1, SpecialBits: 60,
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

// LightDeviation is that of noise that moves a result by 2^-lightBits, about as much as encryption does at the smallest
// scale: it blurs what the noise of ciphertexts tells of weights, and hides nothing statistically.
func (s Set) LightDeviation(period int) float64 {
	return s.Scale() * math.Exp2(-lightBits) / math.Sqrt(float64(2*period))
}

const lightBits = 14

// Advantage is l if so many ciphertexts, flooded with a deviation, are told apart with an advantage of at most 2^-l
// from what depends on nothing but results. Each has noise of norm `noise` over the coefficients that are revealed.
//
// The divergence (Kullback and Leibler) of a Gaussian from one that is shifted by a vector is norm^2 / (2 deviation^2); it
// adds up over decryptions, also where ciphertexts depend on earlier ones, and Pinsker bounds the distance by the root
// of its half.
func Advantage(deviation, noise float64, ciphertexts int) float64 {
	return math.Log2(2 * deviation / (math.Sqrt(float64(ciphertexts)) * noise))
}

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

// SwitchVariance is that of the noise in a slot that a key switch at a level adds, besides rounding: digits times the
// errors in the key, of a variance in a slot, over the special primes.
func (s Set) SwitchVariance(level int, key float64) float64 {
	ratio := math.Exp2(float64(s.Specials * (max(s.ScaleBits, s.BaseBits/s.BasePrimes) - s.SpecialBits)))
	return float64(s.Digits(level)) * s.slotVariance(1.0/12) * key * ratio * ratio
}

// slotVariance is the variance in a slot of a polynomial whose coefficients have one.
func (s Set) slotVariance(coefficient float64) float64 { return 2 * float64(s.Slots()) * coefficient }

// typicalGain is how much more noise than that of one rescaling a planner expects in results; what a model really has is
// known to the owner of its weights alone, who checks it.
const typicalGain = 16

// Promises tells whether a plan may expect enough statistical bits for a result of `period` different slots.
func (s Set) Promises(period, holders, ciphertexts int) bool {
	noise := typicalGain * math.Sqrt(s.RoundingVariance(holders)) * s.Revealed(period)
	return Advantage(s.FloodDeviation(period, holders), noise, ciphertexts) >= StatisticalBits
}

// Revealed is the part of the norm of noise that the coefficients of a result with `period` different slots have: such a
// result is a polynomial in a power of X, and no other coefficient is revealed.
func (s Set) Revealed(period int) float64 { return math.Sqrt(float64(period) / float64(s.Slots())) }
