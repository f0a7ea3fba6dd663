package plan

import (
	"fmt"
	"slices"

	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/params"
)

// Shared plans a network whose results are flooded, each by one of so many holders of the key: parameters that leave the
// result intact under noise that hides everything else. `budget` is how many ciphertexts may be decrypted under a key; 0 is
// for the results of one run. `members` of a cohort refresh values, 1 obliviously for whoever evaluates; 0 is without
// refreshes.
//
// Where it is cheaper, dense layers read rearranged values: see Arrange.
func Shared(n *network.Network, holders, budget, members int) (*Plan, error) {
	refresh := Refresh{Members: members, Flooded: true}
	accept := func(p *Plan) bool {
		p.Holders, p.Budget = holders, budget
		if budget == 0 {
			_, p.Budget = p.Ciphertexts()
		}
		return params.Advantage(p.expected()) >= params.StatisticalBits
	}
	made, err := build(n, refresh, accept)
	if err != nil {
		return nil, fmt.Errorf("with results under statistical noise, %w", err)
	}
	if !refresh.sealed(n) {
		return made, nil
	}
	copies := rearranged(n)
	if len(copies.Nodes) == len(n.Nodes) {
		return made, nil
	}
	// A level more must not be at the expense of the scale, which keeps noise small.
	other, err := build(copies, refresh, accept)
	if err == nil && other.Cost < made.Cost && other.Set.ScaleBits >= made.Set.ScaleBits {
		other.Rearranged = true
		return other, nil
	}
	return made, nil
}

// rearranged has copies of values that leave room for repetitions in some ring.
func rearranged(n *network.Network) *network.Network {
	return n.Rearranged((1 << params.MaxLogN) / (2 * packing.PowerOfTwo(n.Batch)))
}

// Arrange gives a network, with weights or without, the nodes that the plan is for.
func (p *Plan) Arrange(n *network.Network) *network.Network {
	if p.Rearranged {
		return rearranged(n)
	}
	return n
}

// Runs is how many times the network can be evaluated under a key, for a group of samples each.
func (p *Plan) Runs() int {
	_, results := p.Ciphertexts()
	return p.Budget * p.Groups / results
}

// HidingLevel is the level of results when they are re-randomised, just before the last rescaling.
func (p *Plan) HidingLevel() int { return p.Set.Floor() + 1 }

// ZeroLevel is that of the encryption of zero by which results, and values that are refreshed obliviously, are re-randomised.
func (p *Plan) ZeroLevel() int {
	if p.Refresh.oblivious() {
		return max(p.HidingLevel(), p.Floor)
	}
	return p.HidingLevel()
}

// expected is what is spent of statistical distance if noise grows as it typically does.
func (p *Plan) expected() float64 {
	worst, refreshes := 0.0, 0.0
	for index, layout := range p.Layouts {
		period := p.Period(index)
		if p.network.Nodes[index].Kind == network.Output {
			worst = max(worst, p.Set.Expected(p.FloodDeviation(index), period, p.Holders, p.Budget))
		}
		for _, value := range p.refreshesOf(index) {
			count := p.Runs() * layout.Ciphertexts
			refreshes += p.Set.Expected(p.RefreshDeviation(index, value), period, p.Holders, count)
		}
	}
	return worst + refreshes
}

// RefreshDeviation is that of the noise that a member adds to each coefficient of a node's value, or of its argument, when it
// is refreshed; 0 where flooding is light. The value of a polynomial of a high degree, which is steep somewhere and has
// much noise, takes more.
func (p *Plan) RefreshDeviation(index int, value bool) float64 {
	if p.Holders == 0 {
		return 0
	}
	made := p.Set.RefreshDeviation(p.Period(index), p.Holders)
	if node := p.network.Nodes[index]; value && node.Kind == network.Polynomial {
		const gentle = 8
		made *= max(1, float64(node.Degree+1)/gentle)
	}
	return made
}

// FloodDeviation is that of the noise on each coefficient that the result of an output node has.
func (p *Plan) FloodDeviation(index int) float64 {
	if p.Holders > 0 {
		return p.Set.FloodDeviation(p.Period(index), p.Holders)
	}
	return p.Set.LightDeviation(p.Period(index))
}

// Period is after how many slots the value of a node repeats: a power of two.
func (p *Plan) Period(index int) int { return p.Layouts[index].Period * p.Batch }

func (p *Plan) outputs() []int {
	var found []int
	for index, node := range p.network.Nodes {
		if node.Kind == network.Output {
			found = append(found, index)
		}
	}
	return found
}

// rotations are those that a transform needs keys for: an evaluator rotates what it knows without any.
func (p *Plan) rotations(index, argument int, transform *packing.Transform) []int {
	source := slices.Index(p.Transforms[index][argument], transform)
	term := p.network.Nodes[index].Arguments[argument].Terms[source]
	if !p.network.Known || p.network.Nodes[term.Node].Kind != network.Input {
		return transform.Rotations()
	}
	needed := slices.Clone(transform.Folds)
	for _, giants := range transform.Giants() {
		needed = append(needed, giants...)
	}
	slices.Sort(needed)
	return slices.Compact(needed)
}
