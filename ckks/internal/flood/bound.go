package flood

import (
	"fmt"
	"math"

	"privet/ckks/internal/network"
	"privet/ckks/internal/params"
	"privet/ckks/internal/plan"
)

// Scene says under whose key a network is evaluated, and what of it is encrypted.
type Scene struct {
	// Holders share the secret key.
	Holders int
	// Model says that weights are encrypted as well.
	Model bool
	// Magnitudes are those of the inputs.
	Magnitudes []float64
}

// bound tracks the noise of a network with its weights through a plan.
//
// Noise is counted by its variance in a slot, in units of encrypted integers. Errors of different sources are taken as
// independent, those of a rounding as uniform, as in the literature's average case (Costache, Curtis, Hales, Murphy,
// Ogilvie and Player, 2022), but for the worst inputs within their magnitudes: every value is taken at the end of its
// interval. A test measures.
type bound struct {
	network  *network.Network
	plan     *plan.Plan
	scene    Scene
	variance []float64
	reach    []float64
	// gathered is the largest period of all values since the last refresh that a node's noise comes from.
	gathered []int
	// norms are those of results; refreshes is what all refreshes of a run together spend of statistical distance.
	norms     map[int]float64
	refreshes float64
}

// Strength is by how many bits flooding protects the key and everything else beside results: what is revealed under a key's
// whole budget of decryptions, and carried over by all refreshes, tells more with an advantage of at most 2^-bits.
func Strength(n *network.Network, p *plan.Plan, scene Scene) float64 {
	b := track(n, p, scene)
	worst := 0.0
	for index, norm := range b.norms {
		worst = max(worst, params.Spent(p.Set.FloodDeviation(p.Period(index), scene.Holders), norm, p.Budget))
	}
	return params.Advantage(worst + float64(p.Runs())*b.refreshes)
}

// Check gives the strength, and refuses a network whose noise leaves fewer statistical bits than there must be.
func Check(n *network.Network, p *plan.Plan, scene Scene) (float64, error) {
	bits := Strength(n, p, scene)
	if bits < params.StatisticalBits {
		return bits, fmt.Errorf("the weights of this model let the noise of ciphertexts grow until flooding protects keys by %.0f bits only, not %d: give it smaller layers or a smaller batch",
			bits, params.StatisticalBits)
	}
	return bits, nil
}

// tail: the norm of a Gaussian vector exceeds its typical one by more than 6 deviations with probability 2^-26.
const tail = 6

// Norms are, for each output, what the norm over revealed coefficients of the noise in one ciphertext stays below.
func Norms(n *network.Network, p *plan.Plan, scene Scene) map[int]float64 {
	return track(n, p, scene).norms
}

// track follows the noise from the inputs to the outputs.
func track(n *network.Network, p *plan.Plan, scene Scene) *bound {
	b := &bound{
		network: n, plan: p, scene: scene, norms: map[int]float64{},
		variance: make([]float64, len(n.Nodes)), reach: make([]float64, len(n.Nodes)), gathered: make([]int, len(n.Nodes)),
	}
	inputs := 0
	for index, node := range n.Nodes {
		b.gather(index)
		switch node.Kind {
		case network.Input:
			b.reach[index] = scene.Magnitudes[inputs]
			inputs++
			if !n.Known {
				b.variance[index] = b.fresh()
			}
		case network.Linear:
			b.variance[index], b.reach[index] = b.argument(index, 0)
			if node.Reach > 0 {
				b.reach[index] = node.Reach
			}
		case network.Output:
			variance, _ := b.argument(index, 0)
			b.norms[index] = b.norm(index, variance)
		case network.Product:
			x, a := b.argument(index, 0)
			y, c := b.argument(index, 1)
			b.reach[index] = a * c
			b.variance[index] = c*c*x + a*a*y + b.product(p.Argument[index])
		case network.Polynomial:
			b.polynomial(index)
		}
		if p.Values[index] {
			b.variance[index] = b.refresh(index, true, b.variance[index])
		}
	}
	return b
}

// gather finds the period of a node's noise before its value is refreshed, or its argument.
func (b *bound) gather(index int) {
	b.gathered[index] = b.plan.Period(index)
	for _, expression := range b.network.Nodes[index].Arguments {
		for _, term := range expression.Terms {
			b.gathered[index] = max(b.gathered[index], b.gathered[term.Node])
		}
	}
}

// norm is what the norm over revealed coefficients of a node's noise stays below.
func (b *bound) norm(index int, variance float64) float64 {
	typical := math.Sqrt(variance) * b.plan.Set.Revealed(b.gathered[index])
	return typical * (1 + tail/math.Sqrt(float64(b.plan.Period(index))))
}

// fresh is the noise of an encryption: under a public key it comes down from the special primes by a rounding.
func (b *bound) fresh() float64 {
	if b.scene.Holders > 1 {
		return b.plan.Set.RoundingVariance(b.scene.Holders)
	}
	return b.plan.Set.FreshVariance()
}

// refresh is the variance after a refresh: after a collective one rounding, and a fresh error of each member; after an oblivious
// one, for which a ciphertext is re-randomised, a fresh error. What there was before is a part of the value from then on,
// either as it was or, where refreshes are flooded, under noise that hides it.
func (b *bound) refresh(index int, value bool, before float64) float64 {
	after := float64(b.scene.Holders) * b.plan.Set.FreshVariance()
	if b.scene.Holders > 1 {
		after += b.plan.Set.RoundingVariance(b.scene.Holders)
	} else {
		before += b.plan.Set.RandomisingVariance()
	}
	deviation := b.plan.RefreshDeviation(index, value)
	if deviation == 0 {
		return before + after
	}
	b.refreshes += params.Spent(deviation, b.norm(index, before), b.plan.Layouts[index].Ciphertexts)
	b.gathered[index] = b.plan.Period(index)
	return after
}

// product is what multiplying two ciphertexts adds: a key switch, which the rescaling divides by a prime, and rounding. A
// collective relinearisation key has the errors of its two rounds times secrets.
func (b *bound) product(level int) float64 {
	set := b.plan.Set
	key := set.FreshVariance() * float64(b.scene.Holders)
	if b.scene.Holders > 1 {
		key *= 2 * (1 + set.SecretVariance(b.scene.Holders))
	}
	scale := set.Scale()
	return set.SwitchVariance(level, key)/(scale*scale) + set.RoundingVariance(b.scene.Holders)
}
