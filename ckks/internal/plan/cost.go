package plan

import (
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/params"
)

// Costs are counted in number-theoretic transforms of one limb. A pass that multiplies and adds one limb takes about a
// seventh of one.
const pass = 0.15

// weigher weighs transforms at a level; sealed ones have encrypted matrices. An evaluation runs `groups` times with what is
// made once. Members of a cohort (0: there is none) make each key together, and `alike` transforms share theirs.
type weigher struct {
	set                    params.Set
	level                  int
	sealed                 bool
	groups, members, alike int
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
	each := float64(counts.Products)*w.passes() + float64(counts.Rotations)*w.keySwitch()
	each += float64(counts.Hoisted)*w.product() + float64(counts.Decompositions)*w.decompose()
	return each*float64(w.groups) + float64(counts.Products)*w.making() + float64(counts.Keys)*w.key()
}

// known is what a transform of values takes that the evaluator knows: rotating them needs no keys.
func (w weigher) known(t *packing.Transform) float64 {
	counts := t.Count()
	limbs := float64(w.set.Limbs(w.level))
	each := float64(counts.Products)*w.passes() + float64(counts.Hoisted)*pass*limbs + float64(counts.Rotations)*w.keySwitch()
	return each*float64(w.groups) + float64(counts.Products)*w.making() + float64(counts.Rotations)*w.key()
}

// passes are what a product with a diagonal takes.
func (w weigher) passes() float64 {
	parts := 2.0
	if w.sealed {
		parts = 4
	}
	return parts * pass * float64(w.set.Limbs(w.level))
}

// making is what it takes until a diagonal is there: encoding it, or encrypting, sending and keeping it.
func (w weigher) making() float64 {
	limbs := float64(w.set.Limbs(w.level))
	if w.sealed {
		return sealWeight * (limbs + float64(w.set.Specials))
	}
	return encodeWeight * (limbs + 2)
}

// key is what a rotation key takes. A client's is made, sent and expanded once for all that it asks; of a cohort's, which
// serves one run, each member makes and sends a share.
func (w weigher) key() float64 {
	if w.members == 0 {
		return keyWeight * w.keySwitch()
	}
	return shareWeight * float64(w.members) * w.decompose() / float64(max(1, w.alike))
}

const keyWeight = 0.25

// shareWeight is how many transforms of each limb of each digit a member's share of a key takes. Like sealWeight it is less
// than what they take on one machine: nobody waits for a result meanwhile.
const shareWeight = 2

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

// node is about what a polynomial or a product of ciphertexts takes for each; other nodes have their matrices only.
func (w weigher) node(node network.Node) float64 {
	switch node.Kind {
	case network.Polynomial:
		return w.polynomial(node.Degree)
	case network.Product:
		return w.keySwitch()
	}
	return 0
}

// levels is how many a node takes beside its matrices.
func levels(node network.Node) int {
	switch node.Kind {
	case network.Polynomial:
		return depth(node.Degree)
	case network.Product:
		return 1
	}
	return 0
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

// costOf is what refreshing a ciphertext of a node takes. The noise of a flooded refresh suits arguments and values that
// intervals keep near 1; squares have none, and noise on a large one grows with it, so they are refreshed where there is no
// other way only.
func (r Refresh) costOf(n *network.Network, index int) float64 {
	if r.Flooded && squared(n, index) {
		return r.cost() + lastResort
	}
	return r.cost()
}

// lastResort is more than any evaluation takes.
const lastResort = 1e7

// squared tells whether a node is a square.
func squared(n *network.Network, index int) bool {
	node := n.Nodes[index]
	return node.Kind == network.Polynomial && node.Degree == 2
}
