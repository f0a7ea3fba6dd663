package plan

import (
	"cmp"
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
	// features is how many places a ciphertext has, groups how many times the evaluation runs.
	features, groups int
	known            map[string]*packing.Transform
}

// run is the cheapest assignment, for all groups, found; ok is false if there is none.
func (s *search) run() (assignment, bool) {
	states := []assignment{{}}
	for index := range s.network.Nodes {
		var next []assignment
		choices := s.candidates(index)
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
		slices.SortStableFunc(next, func(a, b assignment) int { return cmp.Compare(a.cost, b.cost) })
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
	at := weigher{set: s.set, level: s.schedule.Argument[index]}
	ciphertexts := float64(layout.Ciphertexts * s.groups)
	total += ciphertexts * at.node(node)
	if node.Kind == network.Input {
		// What the client encrypts and sends.
		total = ciphertexts * 4 * float64(s.set.Limbs(s.set.Depth))
	}
	for _, refreshed := range []bool{s.schedule.Arguments[index], s.schedule.Values[index]} {
		if refreshed && layout.Skew > 0 {
			return 0, false // only what repeats comes through
		}
		if refreshed {
			total += ciphertexts * s.refresh.costOf(s.network, index)
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
	return weigher{
		set: s.set, level: s.schedule.Entering[index][argument], sealed: sealed,
		groups: s.groups, members: s.refresh.Members, alike: s.alike(index, argument),
	}
}

// alike is how many arguments have as many elements and read as many as this one, so that most likely the same rotations
// serve all of them.
func (s *search) alike(index, argument int) int {
	own, count := s.network.Nodes[index].Arguments[argument], 0
	for _, node := range s.network.Nodes {
		for _, other := range node.Arguments {
			if len(other.Terms) == len(own.Terms) && other.Size == own.Size && s.read(other) == s.read(own) {
				count++
			}
		}
	}
	return count
}

// read is how many elements the values have that an expression reads.
func (s *search) read(expression network.Expression) int {
	total := 0
	for _, term := range expression.Terms {
		total += s.network.Nodes[term.Node].Size
	}
	return total
}
