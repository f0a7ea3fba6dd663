package plan

import (
	"math"

	"privet/ckks/internal/bootstrap"
	"privet/ckks/internal/params"
)

// MaskBits is by how much the masks of a collective refresh exceed what they hide.
const MaskBits = 128

// Refresh says how ciphertexts get levels back; the zero value says that they do not.
type Refresh struct {
	// Members of a cohort refresh together, by collective bootstrapping; 0 is no cohort.
	Members int
	// Central is bootstrapping by whoever evaluates.
	Central bool
	// Flooded asks for parameters that leave room for noise that hides statistically.
	Flooded bool
}

// possible tells whether there is any way to refresh.
func (r Refresh) possible() bool { return r.Members > 0 || r.Central }

// floor is the lowest level at which a ciphertext can be refreshed. A cohort's masks, 2^MaskBits times as large as the
// scale and one from each member, must have room in the modulus; primes are a little smaller than the powers of two that
// name them.
func (r Refresh) floor(set params.Set) int {
	if r.Central {
		return bootstrap.InputLevel
	}
	const short = 0.01
	needed := MaskBits + float64(set.ScaleBits) + math.Log2(float64(r.Members)) + short
	return set.Floor() + max(1, int(math.Ceil((needed-float64(set.BaseBits))/float64(set.ScaleBits))))
}

// cost of refreshing one ciphertext: each member draws, adds and encrypts masks of hundreds of bits, one by one; a circuit
// for central bootstrapping takes some ten seconds.
func (r Refresh) cost() float64 {
	if r.Central {
		return centralWeight
	}
	return memberWeight * float64(r.Members)
}

// setup is what refreshing takes at parameters before the first refresh: keys, whose room counts more than their making.
func (r Refresh) setup(set params.Set) float64 {
	if !r.Central {
		return 0
	}
	return keyRoomWeight * circuitKeys * float64(set.CircuitKeyLimbs())
}

const (
	memberWeight  = 500
	centralWeight = 30000
	// circuitKeys is about how many keys a circuit has. A gigabyte of them counts like 40 seconds.
	circuitKeys   = 30
	keyRoomWeight = 60
)

// choose gives the parameters for a depth in a ring, if there are any.
func (r Refresh) choose(depth, logN int) (params.Set, bool) {
	if r.Flooded {
		return params.ChooseShared(depth, logN)
	}
	if !r.Central {
		return params.Choose(depth, logN)
	}
	if logN != params.CentralLogN {
		return params.Set{}, false
	}
	return params.ChooseCentral(depth)
}
