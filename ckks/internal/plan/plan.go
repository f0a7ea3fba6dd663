// Package plan chooses how a network is evaluated: the ring, the moduli, how many samples share a ciphertext, the layout
// of every value, and from these the rotation keys, sizes and memory.
//
// It reads the structure of the network and no weight, so client and server reach the same plan from the public half of
// a program, each on its own.
package plan

import (
	"fmt"

	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/params"
)

// Plan is how a network is evaluated.
type Plan struct {
	Set params.Set
	// Batch is how many slots the samples of one place have, Groups how many times the evaluation runs for all samples.
	Batch, Groups int
	// Layouts has the layout of each node's value.
	Layouts []packing.Layout
	// Transforms has, by node, argument and term, how a matrix is applied; an argument that is a node as it is has none.
	Transforms [][][]*packing.Transform
	// Entering has, by node and argument, the level at which matrices are applied; Argument and Made the levels of a
	// node's arguments and of itself.
	Entering       [][]int
	Argument, Made []int
	// Rotations maps each rotation, in slots, to the highest level that it is used at.
	Rotations map[int]int
	// RelinearisationLevel is the highest level of a product of ciphertexts, -1 if there is none.
	RelinearisationLevel int
	// Holders share the key under which results are flooded, as Shared plans it; 0 where a client keeps its own results.
	Holders int
	// Budget is how many ciphertexts may be decrypted under a key, as Shared plans it.
	Budget int
	// Cost is in transforms of one limb of 2^LogN coefficients, for all groups.
	Cost float64

	network *network.Network
}

// New plans a network for its batch of samples.
func New(n *network.Network) (*Plan, error) { return build(n, params.Choose, nil) }

// build plans with rings that `choose` offers, and among the plans that `accept` (nil: any) takes.
func build(n *network.Network, choose func(depth, logN int) (params.Set, bool), accept func(*Plan) bool) (*Plan, error) {
	argument, made, depth := levels(n)
	depth = max(depth, 1)
	var best *Plan
	tried := 0
	for logN := params.MinLogN; logN <= params.MaxLogN && tried < ringsTried; logN++ {
		set, ok := choose(depth, logN)
		if !ok {
			continue
		}
		fits := false
		for batch := min(pad(n.Batch), set.Slots()); batch >= 1; batch /= 2 {
			groups := (n.Batch + batch - 1) / batch
			if best != nil && float64(groups) > best.Cost {
				break
			}
			found, ok := at(n, set, batch, argument, made)
			if ok && accept != nil && !accept(found) {
				continue
			}
			fits = fits || ok
			if ok && (best == nil || found.Cost < best.Cost) {
				best = found
			}
			if !ok || found.Cost/float64(groups) > 0 && groups > groupsTried {
				break
			}
		}
		if fits {
			tried++
		}
	}
	if best == nil {
		return nil, fmt.Errorf("the model needs %d levels; no secure ring up to degree 2^%d has room for them without bootstrapping: use activations of a lower degree or fewer layers",
			depth, params.MaxLogN)
	}
	best.finish(argument, made)
	return best, nil
}

// A larger ring than the smallest has more slots; two steps up it never pays. A batch is cut into at most so many groups
// to see whether that is cheaper.
const (
	ringsTried  = 2
	groupsTried = 8
)

// at is the best plan at given parameters and slots per place.
func at(n *network.Network, set params.Set, batch int, argument, made []int) (*Plan, bool) {
	s := &search{
		network: n, set: set, features: set.Slots() / batch,
		argument: argument, made: made, known: map[string]*packing.Transform{},
	}
	found, ok := s.run()
	if !ok {
		return nil, false
	}
	groups := (n.Batch + batch - 1) / batch
	// A transform of a ring twice as large takes a little more than twice as long.
	unit := float64(set.Slots()) * float64(set.LogN)
	p := &Plan{
		Set: set, Batch: batch, Groups: groups, Layouts: found.layouts, network: n,
		Cost: found.cost * float64(groups) * unit,
	}
	for index, node := range n.Nodes {
		arguments := make([][]*packing.Transform, len(node.Arguments))
		for argument, expression := range node.Arguments {
			from := found.layouts[expression.Terms[0].Node]
			if expression.Trivial() && from.Name == found.layouts[index].Name {
				continue
			}
			for term := range expression.Terms {
				t, _ := s.transform(index, argument, term, found.layouts[expression.Terms[term].Node], found.layouts[index])
				arguments[argument] = append(arguments[argument], t)
			}
		}
		p.Transforms = append(p.Transforms, arguments)
	}
	return p, true
}

// finish fills in levels and the keys that they need.
func (p *Plan) finish(argument, made []int) {
	p.Rotations, p.RelinearisationLevel = map[int]int{}, -1
	for index, node := range p.network.Nodes {
		p.Argument = append(p.Argument, p.Set.Depth+argument[index])
		p.Made = append(p.Made, p.Set.Depth+made[index])
		entered := make([]int, len(node.Arguments))
		for i, expression := range node.Arguments {
			entered[i] = p.Set.Depth + entering(expression, made)
			for _, transform := range p.Transforms[index][i] {
				for _, places := range p.rotations(index, i, transform) {
					slots := places * p.Batch
					p.Rotations[slots] = max(p.Rotations[slots], entered[i])
				}
			}
		}
		p.Entering = append(p.Entering, entered)
		if node.Kind == network.Polynomial || node.Kind == network.Product {
			p.RelinearisationLevel = max(p.RelinearisationLevel, p.Argument[index])
		}
	}
}
