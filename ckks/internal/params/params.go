package params

import (
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Set describes parameters: what a planner chooses and both parties derive alike.
//
// The ring is the real subring Z[X + 1/X], in which a ciphertext of degree N has N real slots and products act on each.
// (A complex slot holds two reals as well, but a product mixes them.)
type Set struct {
	LogN int `json:"log_n"`
	// Depth is the highest level.
	Depth     int `json:"depth"`
	ScaleBits int `json:"scale_bits"`
	// BaseBits is the size of the last modulus, in which results are decrypted, in all its BasePrimes primes.
	BaseBits   int `json:"base_bits"`
	BasePrimes int `json:"base_primes"`
	// Specials is the number of special primes, of SpecialBits each.
	Specials    int `json:"special_primes"`
	SpecialBits int `json:"special_bits"`
	// Central tells that ciphertexts are refreshed by central bootstrapping.
	Central bool `json:"central,omitempty"`
}

// LogQP is the size of the whole modulus in bits, at most.
func (s Set) LogQP() float64 {
	return float64(s.BaseBits + (s.Depth-s.Floor())*s.ScaleBits + s.Specials*s.SpecialBits)
}

// Floor is the level of results, at which the last modulus is left.
func (s Set) Floor() int { return s.BasePrimes - 1 }

// Slots is the number of real numbers in a ciphertext.
func (s Set) Slots() int { return 1 << s.LogN }

// Limbs is the number of primes of a ciphertext at a level.
func (s Set) Limbs(level int) int { return level + 1 }

// Digits is into how many parts a key switch at a level cuts a ciphertext.
func (s Set) Digits(level int) int { return (level + s.Specials) / s.Specials }

// Scale is the scale of encrypted values.
func (s Set) Scale() float64 { return math.Ldexp(1, s.ScaleBits) }

// Build makes the parameters, all primes just below the powers of two that name them.
func (s Set) Build() (ckks.Parameters, error) {
	if err := CheckSecure(s.LogN, s.LogQP()); err != nil {
		return ckks.Parameters{}, err
	}
	if s.BasePrimes < 1 || s.BasePrimes > 2 || s.Depth <= s.Floor() || s.Specials < 1 || s.ScaleBits < 20 ||
		s.BaseBits < s.ScaleBits || s.SpecialBits > MaxPrimeBits || s.BaseBits > 60*s.BasePrimes {
		return ckks.Parameters{}, fmt.Errorf("parameters %+v make no sense", s)
	}
	primes := generators{order: uint64(4) << s.LogN, known: map[int]*ring.NTTFriendlyPrimesGenerator{}}
	base, err := primes.below(s.BaseBits/s.BasePrimes, s.BasePrimes)
	if err != nil {
		return ckks.Parameters{}, err
	}
	rest, err := primes.below(s.ScaleBits, s.Depth-s.Floor())
	if err != nil {
		return ckks.Parameters{}, err
	}
	special, err := primes.below(s.SpecialBits, s.Specials)
	if err != nil {
		return ckks.Parameters{}, err
	}
	made, err := ckks.NewParametersFromLiteral(ckks.ParametersLiteral{
		LogN: s.LogN, Q: append(base, rest...), P: special,
		LogDefaultScale: s.ScaleBits, RingType: ring.ConjugateInvariant,
	})
	if err != nil {
		return made, err
	}
	return made, CheckSecure(s.LogN, made.LogQP())
}

// generators give each prime once, whichever of the moduli it is for.
type generators struct {
	order uint64
	known map[int]*ring.NTTFriendlyPrimesGenerator
}

func (g generators) below(bits, count int) ([]uint64, error) {
	if g.known[bits] == nil {
		made := ring.NewNTTFriendlyPrimesGenerator(uint64(bits), g.order)
		g.known[bits] = &made
	}
	return g.known[bits].NextDownstreamPrimes(count)
}

// Choose is the smallest ring that has room for a depth, with the largest scale up to wanted bits and at least
// MinScaleBits; larger leaves a step more. A result of up to MostResult fits the last modulus.
func Choose(depth, logN int) (Set, bool) {
	for scale := MaxScaleBits; scale >= MinScaleBits; scale-- {
		set := Set{LogN: logN, Depth: depth, ScaleBits: scale, BaseBits: scale + HeadroomBits, BasePrimes: 1, Specials: 1}
		set.SpecialBits = min(60, set.BaseBits+2)
		if set.LogQP() > Budget(logN) {
			continue
		}
		return set.withSpecials(), true
	}
	return Set{}, false
}

// MaxPrimeBits bounds special primes; others have a bit less.
const MaxPrimeBits = 61

// Scales and headroom in bits. Below 28 bits the noise of rotations would show in the results; above 36 nothing is gained.
const (
	MinScaleBits = 28
	MaxScaleBits = 36
	HeadroomBits = 8
	// MostResult is the largest magnitude of results that never wraps around in the last modulus: no coefficient is larger than the
	// largest slot.
	MostResult = 1 << (HeadroomBits - 1)
)

// withSpecials adds special primes while they make key switching cheaper and the modulus stays secure: fewer digits to
// multiply and smaller keys, for more primes to carry.
func (s Set) withSpecials() Set {
	best := s
	for s.Specials < 8 {
		s.Specials++
		if s.LogQP() > Budget(s.LogN) {
			break
		}
		if s.keySwitch() < best.keySwitch() {
			best = s
		}
	}
	return best
}

// keySwitch is about how many transforms a key switch takes at half of the depth.
func (s Set) keySwitch() int {
	level := s.Depth/2 + 1
	return s.Digits(level) * (s.Limbs(level) + s.Specials)
}
