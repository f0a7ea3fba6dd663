package plan

import (
	"math"

	"privet/ckks/internal/params"
)

// MaskBits is by how much the masks of a collective refresh exceed what they hide.
const MaskBits = 128

// Refresh says how ciphertexts get levels back; the zero value says that they do not.
type Refresh struct {
	// Members of a cohort refresh together, by collective bootstrapping; 0 is no cohort.
	Members int
}

// possible tells whether there is any way to refresh.
func (r Refresh) possible() bool { return r.Members > 0 }

// floor is the lowest level at which a ciphertext can be refreshed. A cohort's masks, 2^MaskBits times as large as the
// scale and one from each member, must have room in the modulus; primes are a little smaller than the powers of two that
// name them.
func (r Refresh) floor(set params.Set) int {
	const short = 0.01
	needed := MaskBits + float64(set.ScaleBits) + math.Log2(float64(r.Members)) + short
	return max(1, int(math.Ceil((needed-float64(set.BaseBits))/float64(set.ScaleBits))))
}

// cost of refreshing one ciphertext: each member draws, adds and encrypts masks of hundreds of bits, one by one.
func (r Refresh) cost() float64 { return refreshWeight * float64(r.Members) }

const refreshWeight = 500
