// Package plan chooses how a network is evaluated: the ring, the moduli, how many samples share a ciphertext, the layout
// of every value, and from these the rotation keys, sizes and memory.
//
// It reads the structure of the network and no weight, so client and server reach the same plan from the public half of
// a program, each on its own.
package plan

import (
	"fmt"
	"math/bits"

	"privet/ckks/internal/bootstrap"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/params"
)

// Plan is how a network is evaluated.
type Plan struct {
	Set params.Set
	Schedule
	// Refresh is how values that the schedule refreshes get levels back.
	Refresh Refresh
	// Batch is how many slots the samples of one place have, Groups how many times the evaluation runs for all samples.
	Batch, Groups int
	// Circuit is the circuit of central bootstrapping, nil without.
	Circuit *bootstrap.Parameters
	// Layouts has the layout of each node's value.
	Layouts []packing.Layout
	// Transforms has, by node, argument and term, how a matrix is applied; an argument that is a node as it is has none.
	Transforms [][][]*packing.Transform
	// Rotations maps each rotation, in slots, to the highest level that it is used at.
	Rotations map[int]int
	// RelinearisationLevel is the highest level of a product of ciphertexts, -1 if there is none.
	RelinearisationLevel int
	// Holders share the key under which results are flooded, as Shared plans it; 0 where a client keeps its own results.
	Holders int
	// Budget is how many ciphertexts may be decrypted under a key, as Shared plans it.
	Budget int
	// Rearranged says that the plan is for a network with copies of values; see Arrange.
	Rearranged bool
	// Cost is in transforms of one limb of 2^LogN coefficients, for all groups.
	Cost float64

	network *network.Network
}

// New plans a network for its batch of samples: without any refresh, or, where no ring has room for that, with central
// bootstrapping.
func New(n *network.Network) (*Plan, error) {
	planned, err := Refreshed(n, Refresh{})
	if err == nil {
		return planned, nil
	}
	if planned, central := Refreshed(n, Refresh{Central: true}); central == nil {
		return planned, nil
	}
	return nil, err
}

// Refreshed plans a network for its batch of samples, with refreshes where they pay.
func Refreshed(n *network.Network, refresh Refresh) (*Plan, error) {
	return build(n, refresh, func(*Plan) bool { return true })
}

// build finds the best of the plans that `accept` takes.
func build(n *network.Network, refresh Refresh, accept func(*Plan) bool) (*Plan, error) {
	var best *Plan
	accepted := 0
	for _, option := range options(n, refresh) {
		if accepted == ringsTried {
			break
		}
		fits := false
		set := option.set
		for batch := min(packing.PowerOfTwo(n.Batch), set.Slots()/2); batch >= 1; batch /= 2 {
			groups := (n.Batch + batch - 1) / batch
			if best != nil && float64(groups) > best.Cost {
				break
			}
			found, ok := at(n, option, refresh, batch)
			if ok && !accept(found) {
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
			accepted++
		}
	}
	if best == nil {
		return nil, refused(n, refresh)
	}
	best.finish()
	if err := best.addCircuit(); err != nil {
		return nil, err
	}
	return best, params.CheckPublished(best.Published())
}

func refused(n *network.Network, refresh Refresh) error {
	if refresh.Members > 0 {
		return fmt.Errorf("a layer needs more levels in a row than a secure ring up to degree 2^%d has room for above those that a refresh takes, or the model has more than %d encrypted values: use activations of a lower degree or fewer layers",
			params.MaxLogN, maxNodes)
	}
	return fmt.Errorf("the model needs %d levels; no secure ring up to degree 2^%d has room for them, nor for the longest of its activations beside bootstrapping: use activations of a lower degree or fewer layers",
		deepest(n), params.MaxLogN)
}

// A larger ring than the smallest has more slots; two steps up it never pays. A batch is cut into at most so many groups
// to see whether that is cheaper.
const (
	ringsTried  = 2
	groupsTried = 8
)

// option is a ring with the cheapest schedule in it.
type option struct {
	set      params.Set
	schedule Schedule
}

// options are the smallest rings that have room, each with the depth that makes the network cheapest.
func options(n *network.Network, refresh Refresh) []option {
	var found []option
	whole := deepest(n)
	for logN := params.MinLogN; logN <= params.MaxLogN && (refresh.Flooded || len(found) < ringsTried); logN++ {
		least := whole
		if refresh.possible() {
			least = 1
		}
		var best *option
		for depth := whole; depth >= least; depth-- {
			set, ok := refresh.choose(depth, logN, whole)
			if !ok {
				continue
			}
			if made, ok := schedule(n, set, refresh); ok && refresh.allows(set, made) && (best == nil || made.cost < best.schedule.cost) {
				best = &option{set, made}
			}
		}
		if best != nil {
			found = append(found, *best)
		}
	}
	return found
}

// at is the best plan at given parameters and slots per place.
func at(n *network.Network, o option, refresh Refresh, batch int) (*Plan, bool) {
	groups := (n.Batch + batch - 1) / batch
	s := &search{
		network: n, set: o.set, schedule: o.schedule, refresh: refresh, features: o.set.Slots() / batch, groups: groups,
		known: map[string]*packing.Transform{},
	}
	found, ok := s.run()
	if !ok {
		return nil, false
	}
	// A transform of a ring twice as large takes a little more than twice as long.
	unit := float64(o.set.Slots()) * float64(o.set.LogN)
	p := &Plan{
		Set: o.set, Schedule: o.schedule, Refresh: refresh, Batch: batch, Groups: groups, Layouts: found.layouts,
		network: n, Cost: found.cost * unit,
	}
	for index, node := range n.Nodes {
		arguments := make([][]*packing.Transform, len(node.Arguments))
		for argument, expression := range node.Arguments {
			if expression.Trivial() {
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

// finish fills in the keys that the plan needs.
func (p *Plan) finish() {
	p.Rotations, p.RelinearisationLevel = map[int]int{}, -1
	for index, node := range p.network.Nodes {
		for i := range node.Arguments {
			entered := p.Entering[index][i]
			for _, transform := range p.Transforms[index][i] {
				for _, places := range p.rotations(index, i, transform) {
					slots := places * p.Batch
					p.Rotations[slots] = max(p.Rotations[slots], entered)
				}
			}
		}
		if node.Kind == network.Polynomial || node.Kind == network.Product {
			p.RelinearisationLevel = max(p.RelinearisationLevel, p.Argument[index])
		}
	}
}

// addCircuit makes the circuit for what the plan refreshes. Values that repeat in their ciphertext take a smaller one.
func (p *Plan) addCircuit() error {
	if !p.Set.Central {
		return nil
	}
	slots := 1
	for index, layout := range p.Layouts {
		if p.Arguments[index] || p.Values[index] {
			slots = max(slots, layout.Period*p.Batch)
		}
	}
	residual, err := p.Set.Build()
	if err != nil {
		return err
	}
	p.Circuit, err = bootstrap.New(p.Set, residual, bits.Len(uint(slots-1)))
	return err
}
