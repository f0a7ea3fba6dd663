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
}

// Strength is by how many bits flooding protects the worst of a network's outputs: each tells no more than its result,
// with an advantage of at most 2^-bits over a key's whole budget of decryptions.
func Strength(n *network.Network, p *plan.Plan, scene Scene) float64 {
	least := math.Inf(1)
	for index, norm := range Norms(n, p, scene) {
		deviation := p.Set.FloodDeviation(p.Period(index), scene.Holders)
		least = min(least, params.Advantage(deviation, norm, p.Budget))
	}
	return least
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
	b := &bound{n, p, scene, make([]float64, len(n.Nodes)), make([]float64, len(n.Nodes))}
	norms := map[int]float64{}
	inputs := 0
	for index, node := range n.Nodes {
		switch node.Kind {
		case network.Input:
			b.reach[index] = scene.Magnitudes[inputs]
			inputs++
			if !n.Known {
				b.variance[index] = b.fresh()
			}
		case network.Linear:
			b.variance[index], b.reach[index] = b.argument(index, 0)
		case network.Output:
			variance, _ := b.argument(index, 0)
			period := p.Period(index)
			norms[index] = math.Sqrt(variance) * p.Set.Revealed(period) * (1 + tail/math.Sqrt(float64(period)))
		case network.Product:
			x, a := b.argument(index, 0)
			y, c := b.argument(index, 1)
			b.reach[index] = a * c
			b.variance[index] = c*c*x + a*a*y + b.product(p.Argument[index])
		case network.Polynomial:
			b.polynomial(index)
		}
		if p.Values[index] {
			b.variance[index] += b.refresh()
		}
	}
	return norms
}

// fresh is the noise of an encryption: under a public key it comes down from the special primes by a rounding.
func (b *bound) fresh() float64 {
	if b.scene.Holders > 1 {
		return b.plan.Set.RoundingVariance(b.scene.Holders)
	}
	return b.plan.Set.FreshVariance()
}

// refresh is what a collective refresh adds: rounding, and a fresh error of each member.
func (b *bound) refresh() float64 {
	return b.plan.Set.RoundingVariance(b.scene.Holders) + float64(b.scene.Holders)*b.plan.Set.FreshVariance()
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

func (b *bound) polynomial(index int) {
	node := b.network.Nodes[index]
	variance, reach := b.argument(index, 0)
	if b.plan.Arguments[index] {
		variance += b.refresh()
	}
	if node.Reach > 0 {
		reach = node.Reach
	}
	step := b.product(b.plan.Argument[index])
	if node.Degree == 2 {
		b.reach[index] = reach*reach + math.Abs(node.Offset)
		b.variance[index] = 4*reach*reach*variance + step
		return
	}
	slope, most := 0.0, 0.0
	for k, coefficient := range node.Coefficients {
		slope += float64(k*k) * math.Abs(coefficient)
		most += math.Abs(coefficient)
	}
	b.reach[index] = most
	// Each of Paterson and Stockmeyer's products doubles what it multiplies.
	b.variance[index] = slope*slope*variance + 4*float64(node.Degree*node.Degree)*step
}
