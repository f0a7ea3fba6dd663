package flood

import (
	"math"

	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
)

// argument is the noise of an affine argument of a node, and its largest magnitude.
func (b *bound) argument(index, argument int) (made noise, reach float64) {
	expression := b.network.Nodes[index].Arguments[argument]
	transforms := b.plan.Transforms[index][argument]
	if transforms == nil {
		source := expression.Terms[0].Node
		return b.noise[source], b.reach[source]
	}
	level, sealed := b.plan.Entering[index][argument], b.scene.Model && !b.network.Nodes[index].Public
	for i, term := range expression.Terms {
		size, share := measure(term.Matrix), b.shares.through(b.plan, index, term.Node, transforms[i])
		part := b.noise[term.Node].through(size)
		part = part.and(white(b.rotations(term.Node, transforms[i], level) * share).through(size))
		if sealed {
			// Each product is with another element, and places without an element hold zeros.
			count := min(products(transforms[i]), float64(term.Matrix.Columns))
			part = part.with(count * b.reach[term.Node] * b.reach[term.Node] * b.fresh() * share)
		}
		made = made.plus(part)
		reach += size.row * b.reach[term.Node]
	}
	largest := 0.0
	for _, bias := range expression.Bias {
		largest = max(largest, math.Abs(bias))
	}
	// Rotations of sums and relinearisation come before the rescaling, as in a product.
	made = made.with(b.product(level) * b.shares.argument[index])
	if sealed {
		made = made.with(b.fresh() * b.shares.argument[index])
	}
	return made, reach + largest
}

// rotations is the noise of a key switch on an input that is rotated before it is multiplied.
func (b *bound) rotations(source int, transform *packing.Transform, level int) float64 {
	if b.network.Known && b.network.Nodes[source].Kind == network.Input || transform.Count().Hoisted == 0 {
		return 0
	}
	key := b.plan.Set.FreshVariance() * float64(b.scene.Holders)
	return b.plan.Set.SwitchVariance(level, key) + b.plan.Set.RoundingVariance(b.scene.Holders)
}

// products is how many products with encrypted diagonals add up in a slot of a result.
func products(t *packing.Transform) float64 {
	return math.Ceil(float64(len(t.Diagonals))/float64(t.To.Ciphertexts)) * math.Exp2(float64(len(t.Folds)))
}
