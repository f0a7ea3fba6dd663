package plan

import (
	"privet/ckks/internal/packing"
	"privet/ckks/internal/params"
)

// Costs are counted in number-theoretic transforms of one limb. A pass that multiplies and adds one limb takes about a
// seventh of one.
const pass = 0.15

// weigher weighs transforms at a level; sealed ones have encrypted matrices.
type weigher struct {
	set    params.Set
	level  int
	sealed bool
}

// decompose is what cutting a ciphertext into digits takes, before any key is used.
func (w weigher) decompose() float64 {
	return float64(w.set.Digits(w.level) * (w.set.Limbs(w.level) + w.set.Specials))
}

// product is what multiplying the digits with a key and dividing by the special primes takes.
func (w weigher) product() float64 {
	limbs := float64(w.set.Limbs(w.level) + w.set.Specials)
	return 2*pass*float64(w.set.Digits(w.level))*limbs + 2*limbs
}

func (w weigher) keySwitch() float64 { return w.decompose() + w.product() }

func (w weigher) transform(t *packing.Transform) float64 {
	counts := t.Count()
	cost := float64(counts.Products) * w.factor()
	cost += float64(counts.Hoisted)*w.product() + float64(counts.Decompositions)*w.decompose()
	cost += float64(counts.Rotations) * w.keySwitch()
	// A key is made, sent and expanded once for all that a client asks; it counts a little.
	return cost + keyWeight*float64(counts.Keys)*w.keySwitch()
}

// known is what a transform of values takes that the evaluator knows: rotating them needs no keys.
func (w weigher) known(t *packing.Transform) float64 {
	counts := t.Count()
	limbs := float64(w.set.Limbs(w.level))
	cost := float64(counts.Products)*w.factor() + float64(counts.Hoisted)*pass*limbs
	return cost + float64(counts.Rotations)*(1+keyWeight)*w.keySwitch()
}

// factor is what a product with a diagonal takes, and making that: encoding it, or encrypting, sending and keeping it.
func (w weigher) factor() float64 {
	limbs := float64(w.set.Limbs(w.level))
	if w.sealed {
		return 4*pass*limbs + sealWeight*(limbs+float64(w.set.Specials))
	}
	return 2*pass*limbs + encodeWeight*(limbs+2)
}

const keyWeight = 0.25

// sealWeight is how many transforms of each limb it takes until an encrypted diagonal lies with whoever evaluates.
const sealWeight = 5

// encodeWeight likewise weighs that a product's plaintext is encoded once for all requests, and kept in memory.
const encodeWeight = 0.25

// polynomial is about what a polynomial of that degree takes for each ciphertext.
func (w weigher) polynomial(degree int) float64 {
	products := 1.0
	for n := 1; n*n < degree; n++ {
		products += 2
	}
	return products * (w.keySwitch() + 4*float64(w.set.Limbs(w.level)))
}

// depth is how many levels a polynomial takes.
func depth(degree int) int {
	levels := 1
	if degree == 2 {
		return levels
	}
	for 1<<levels <= degree {
		levels++
	}
	return levels
}
