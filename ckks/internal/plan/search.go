package plan

import (
	"fmt"
	"slices"

	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/params"
)

// beam is how many partial assignments of layouts the search keeps. Networks without branches have few candidates for
// each value, so that for them the search is exact: a shortest path over layers and layouts.
const beam = 24

// assignment gives the nodes up to some node a layout each.
type assignment struct {
	layouts []packing.Layout
	cost    float64
}

// search finds layouts for all nodes at parameters and a number of features for each ciphertext.
type search struct {
	network  *network.Network
	set      params.Set
	schedule Schedule
	refresh  Refresh
	features int
	known    map[string]*packing.Transform
}

// run is the cheapest assignment found; ok is false if there is none.
func (s *search) run() (assignment, bool) {
	states := []assignment{{}}
	for index := range s.network.Nodes {
		var next []assignment
		choices := candidates(s.network, index, s.features)
		for _, state := range states {
			options := choices
			if passed, ok := s.passed(index, state); ok {
				options = []packing.Layout{passed}
			}
			for _, layout := range options {
				cost, ok := s.cost(index, state, layout)
				if !ok {
					continue
				}
				layouts := append(slices.Clip(slices.Clone(state.layouts)), layout)
				next = append(next, assignment{layouts, state.cost + cost})
			}
		}
		slices.SortStableFunc(next, func(a, b assignment) int { return compare(a.cost, b.cost) })
		states = next[:min(len(next), beam)]
		if len(states) == 0 {
			return assignment{}, false
		}
	}
	return states[0], true
}

// passed is the layout that a node takes over because it reads a value as it is.
func (s *search) passed(index int, state assignment) (packing.Layout, bool) {
	for _, expression := range s.network.Nodes[index].Arguments {
		if expression.Trivial() {
			return state.layouts[expression.Terms[0].Node], true
		}
	}
	return packing.Layout{}, false
}

func (s *search) cost(index int, state assignment, layout packing.Layout) (float64, bool) {
	node := s.network.Nodes[index]
	total := 0.0
	for argument, expression := range node.Arguments {
		if expression.Trivial() {
			if state.layouts[expression.Terms[0].Node].Name != layout.Name {
				return 0, false // another layout would take a level
			}
			continue
		}
		for term := range expression.Terms {
			transform, ok := s.transform(index, argument, term, state.layouts[expression.Terms[term].Node], layout)
			if !ok {
				return 0, false
			}
			total += s.weigher(index, argument).transform(transform)
		}
	}
	at := weigher{s.set, s.schedule.Argument[index], false}
	switch node.Kind {
	case network.Input:
		// What the client encrypts and sends.
		total = float64(layout.Ciphertexts) * 4 * float64(s.set.Limbs(s.set.Depth))
	case network.Polynomial:
		total += float64(layout.Ciphertexts) * at.polynomial(node.Degree)
	case network.Product:
		total += float64(layout.Ciphertexts) * at.keySwitch()
	}
	for _, refreshed := range []bool{s.schedule.Arguments[index], s.schedule.Values[index]} {
		if refreshed {
			total += float64(layout.Ciphertexts) * s.refresh.cost()
		}
	}
	return total, true
}

// transform plans a term once for each pair of layouts.
func (s *search) transform(index, argument, term int, from, to packing.Layout) (*packing.Transform, bool) {
	key := fmt.Sprint(index, argument, term, "|", from.Name, "|", to.Name)
	if found, ok := s.known[key]; ok {
		return found, found != nil
	}
	expression := s.network.Nodes[index].Arguments[argument]
	weigh := s.weigher(index, argument).transform
	if s.network.Known && s.network.Nodes[expression.Terms[term].Node].Kind == network.Input {
		weigh = s.weigher(index, argument).known
	}
	made, ok := packing.Plan(expression.Terms[term].Matrix, from, to, weigh)
	s.known[key] = made
	return made, ok
}

func (s *search) weigher(index, argument int) weigher {
	sealed := !s.network.Nodes[index].Public && s.refresh.sealed(s.network)
	return weigher{s.set, s.schedule.Entering[index][argument], sealed}
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
