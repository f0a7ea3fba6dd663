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
	// AnyInput does not trust the intervals of polynomials, which calibration measured: whoever chooses the inputs can leave
	// them, within the inputs' magnitudes.
	AnyInput bool
}

// bound tracks the noise of a network with its weights through a plan, for the worst inputs and whatever the weights.
//
// Fresh errors, those of encryptions, key switches and roundings, are independent of each other and of everything else, and
// count by their variance, in units of encrypted integers. What a layer makes of them is not independent any more: in a layer of
// rank one all results have the same noise, and a sum of n of them has n times as much, not sqrt(n) times. To take noise as
// independent in every layer is what Guo, Nabokov, Suvanto and Johansson exploit (USENIX Security 2024). So noise is tracked by
// two numbers that hold whatever correlates: see noise. Every value is taken at the end of its interval. Tests measure.
type bound struct {
	network *network.Network
	plan    *plan.Plan
	scene   Scene
	noise   []noise
	reach   []float64
	shares  shares
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
	bits := params.Advantage(worst + float64(p.Runs())*b.refreshes)
	if !(bits > 0) {
		return 0 // also where a polynomial beyond its interval is larger than any number
	}
	return bits
}

// ForAnyInput is the strength without trust in the intervals that calibration measured. It is mostly far less, and 0 for
// polynomials of high degree: an input within its bound can drive values out of an interval, where a polynomial's slope has no
// use as a bound. Nobody who evaluates sees that happen.
func ForAnyInput(n *network.Network, p *plan.Plan, scene Scene) float64 {
	scene.AnyInput = true
	return Strength(n, p, scene)
}

// Check gives the strength, and refuses a network whose noise leaves fewer statistical bits than there must be.
func Check(n *network.Network, p *plan.Plan, scene Scene) (float64, error) {
	bits := Strength(n, p, scene)
	if bits < params.StatisticalBits {
		return bits, tooWeak(bits)
	}
	return bits, nil
}

// tooWeak says how many whole bits there are.
func tooWeak(bits float64) error {
	return fmt.Errorf("the weights of this model let the noise of ciphertexts grow until flooding protects keys by %.0f bits only, not %d: give it smaller layers or a smaller batch",
		math.Floor(bits), params.StatisticalBits)
}

// tail: a Gaussian exceeds its mean by more than 6 deviations with probability 2^-30.
const tail = 6

// Norms are, for each output, what the norm over revealed coefficients of the noise in one ciphertext stays below.
func Norms(n *network.Network, p *plan.Plan, scene Scene) map[int]float64 {
	return track(n, p, scene).norms
}

// track follows the noise from the inputs to the outputs.
func track(n *network.Network, p *plan.Plan, scene Scene) *bound {
	b := &bound{
		network: n, plan: p, scene: scene, norms: map[int]float64{},
		noise: make([]noise, len(n.Nodes)), reach: make([]float64, len(n.Nodes)), shares: share(n, p),
	}
	inputs := 0
	for index, node := range n.Nodes {
		switch node.Kind {
		case network.Input:
			b.reach[index] = scene.Magnitudes[inputs]
			inputs++
			if !n.Known {
				b.noise[index] = white(b.fresh() * b.shares.value[index])
			}
		case network.Linear:
			b.noise[index], b.reach[index] = b.argument(index, 0)
			if node.Reach > 0 && !scene.AnyInput {
				b.reach[index] = node.Reach
			}
		case network.Output:
			made, _ := b.argument(index, 0)
			b.norms[index] = b.norm(index, made)
		case network.Product:
			x, a := b.argument(index, 0)
			y, c := b.argument(index, 1)
			b.reach[index] = a * c
			b.noise[index] = x.times(c).plus(y.times(a)).with(b.product(p.Argument[index]) * b.shares.made[index])
		case network.Polynomial:
			b.polynomial(index)
		}
		if p.Values[index] {
			b.noise[index] = b.refresh(index, true, b.noise[index])
		}
	}
	return b
}

// norm is what the norm over revealed coefficients of a node's noise stays below. A Gaussian vector's norm exceeds the root of the
// sum of its variances by less than `tail` times its deviation in the direction in which that is largest.
func (b *bound) norm(index int, n noise) float64 {
	period := float64(b.plan.Period(index))
	direction := min(n.spread, n.slot*period)
	return b.plan.Set.Revealed(b.plan.Set.Slots()) * (math.Sqrt(n.slot) + tail*math.Sqrt(direction/period))
}

// fresh is the noise of an encryption: under a public key it comes down from the special primes by a rounding.
func (b *bound) fresh() float64 {
	if b.scene.Holders > 1 {
		return b.plan.Set.RoundingVariance(b.scene.Holders)
	}
	return b.plan.Set.FreshVariance()
}

// refresh is the variance after a refresh: after a collective one rounding, and a fresh error of each member; after an oblivious
// one, for which a ciphertext is re-randomised, a fresh error. What there was before is a part of the value from then on, under
// noise that hides it.
func (b *bound) refresh(index int, value bool, before noise) noise {
	after, share := float64(b.scene.Holders)*b.plan.Set.FreshVariance(), b.shares.made[index]
	if value {
		share = b.shares.value[index]
	}
	if b.scene.Holders > 1 {
		after += b.plan.Set.RoundingVariance(b.scene.Holders)
	} else {
		before = before.with(b.plan.Set.RandomisingVariance() * part(b.plan, b.plan.Period(index)))
	}
	deviation := b.plan.RefreshDeviation(index, value)
	b.refreshes += params.Spent(deviation, b.norm(index, before), b.plan.Layouts[index].Ciphertexts)
	return white(after * share)
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
