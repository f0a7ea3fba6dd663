package plan

import (
	"fmt"
	"slices"

	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
)

// Shared plans a network whose results are flooded, each by one of so many holders of the key: parameters that leave the
// result intact under noise that hides everything else. `budget` is how many ciphertexts may be decrypted under a key; 0 is
// for the results of one run. `members` of a cohort refresh values; 0 is without refreshes.
func Shared(n *network.Network, holders, budget, members int) (*Plan, error) {
	made, err := build(n, Refresh{Members: members, Flooded: true}, func(p *Plan) bool {
		p.Holders, p.Budget = holders, budget
		if budget == 0 {
			_, p.Budget = p.Ciphertexts()
		}
		return !slices.ContainsFunc(p.outputs(), func(index int) bool {
			return !p.Set.Promises(p.Period(index), holders, p.Budget)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("with results under statistical noise, %w", err)
	}
	return made, nil
}

// HidingLevel is the level of results when they are re-randomised, just before the last rescaling.
func (p *Plan) HidingLevel() int { return p.Set.Floor() + 1 }

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
