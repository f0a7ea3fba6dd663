package plan

import (
	"math"
	"slices"

	"privet/ckks/internal/bootstrap"
	"privet/ckks/internal/network"
	"privet/ckks/internal/params"
)

// MaskBits is by how much the masks of a collective refresh exceed what they hide. WrapBits is by how much the modulus
// exceeds a value in an oblivious refresh, whose masks are uniform: the mask of one coefficient in 2^WrapBits is so large
// that it and the value wrap around, which spoils the value.
const (
	MaskBits = 128
	WrapBits = 64
)

// Refresh says how ciphertexts get levels back; the zero value says that they do not.
type Refresh struct {
	// Members of a cohort refresh together, by collective bootstrapping; 0 is no cohort. Alone in knowing the key, one
	// refreshes values that whoever evaluates has masked: an oblivious refresh.
	Members int
	// Central is bootstrapping by whoever evaluates.
	Central bool
	// Flooded asks for parameters that leave room for noise that hides statistically.
	Flooded bool
}

// sealed tells whether a network's weights are encrypted: in a cohort, and where whoever evaluates knows the inputs.
func (r Refresh) sealed(n *network.Network) bool { return r.Members > 0 || n.Known }

// possible tells whether there is any way to refresh.
func (r Refresh) possible() bool { return r.Members > 0 || r.Central }

// oblivious tells whether the owner of the key refreshes values that are masked.
func (r Refresh) oblivious() bool { return r.Members == 1 }

// floor is the lowest level at which a ciphertext can be refreshed. A cohort's masks, 2^MaskBits times as large as the
// scale and one from each member, must have room in the modulus; primes are a little smaller than the powers of two that
// name them.
func (r Refresh) floor(set params.Set) int {
	if r.Central {
		return bootstrap.InputLevel
	}
	needed := float64(set.ScaleBits) + r.maskBits()
	return set.Floor() + max(1, int(math.Ceil((needed-float64(set.BaseBits))/float64(set.ScaleBits))))
}

// allows tells whether values may be refreshed as a schedule says: where refreshes are flooded, noise must be small beside
// the values, for which there is no room below the largest scale.
func (r Refresh) allows(set params.Set, found Schedule) bool {
	return !r.Flooded || set.ScaleBits == params.MaxSharedBits || !slices.Contains(slices.Concat(found.Arguments, found.Values), true)
}

// maskBits is how many bits more than a value's scale a ciphertext must have where it is refreshed.
func (r Refresh) maskBits() float64 {
	const short = 0.01
	if r.oblivious() {
		return WrapBits + short
	}
	return MaskBits + math.Log2(float64(r.Members)) + short
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

// choose gives the parameters for a depth in a ring, if there are any; `whole` is the depth at which nothing is refreshed.
func (r Refresh) choose(depth, logN, whole int) (params.Set, bool) {
	if r.Flooded && r.Members > 0 && depth < whole {
		return params.ChooseShared(depth, logN, r.maskBits())
	}
	if r.Flooded {
		return params.ChooseShared(depth, logN, 0)
	}
	if !r.Central {
		return params.Choose(depth, logN)
	}
	if logN != params.CentralLogN {
		return params.Set{}, false
	}
	return params.ChooseCentral(depth)
}
