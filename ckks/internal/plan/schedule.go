package plan

import (
	"cmp"
	"math"
	"slices"

	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/params"
)

// Schedule says at which levels a network is evaluated, and where values are refreshed: as low as everything that follows
// allows, since all that is done to a ciphertext takes time and room in proportion to its level.
type Schedule struct {
	// Entering has, by node and argument, the level at which matrices are applied; Argument and Made the levels of a
	// node's arguments and of itself, after a refresh if there is one.
	Entering       [][]int
	Argument, Made []int
	// Arguments and Values tell of each node whether its argument, and whether its value, is refreshed.
	Arguments, Values []bool
	// Floor is the level that a value is refreshed from.
	Floor int
	cost  float64
}

// state is a schedule of the nodes from some node on: for each node before, the level that it must have (-1: none).
type state struct {
	needed  []int
	choices []choice
	cost    float64
}

// choice is what is done about one node.
type choice struct{ argument, value bool }

// scheduler looks for a shortest path over layers and levels, from the outputs back to the inputs.
type scheduler struct {
	network *network.Network
	set     params.Set
	refresh Refresh
	floor   int
	batch   int
}

// maxNodes bounds the networks that refreshes are planned for, so that a program from a peer cannot keep a planner busy.
const maxNodes = 512

// width is how many partial schedules are kept. In a network without branches there are no more than levels.
const width = 256

// schedule finds levels and refreshes within a depth; ok is false if there are none.
func schedule(n *network.Network, set params.Set, refresh Refresh) (found Schedule, ok bool) {
	if refresh.possible() && len(n.Nodes) > maxNodes {
		return Schedule{}, false
	}
	s := &scheduler{network: n, set: set, refresh: refresh, batch: min(packing.PowerOfTwo(n.Batch), set.Slots())}
	if refresh.possible() {
		s.floor = refresh.floor(set)
	}
	needed := make([]int, len(n.Nodes))
	for i := range needed {
		needed[i] = -1
	}
	states := []state{{needed: needed, choices: make([]choice, len(n.Nodes))}}
	for index := len(n.Nodes) - 1; index >= 0; index-- {
		var next []state
		for _, from := range states {
			for _, chosen := range s.choices(index) {
				if made, ok := s.before(index, from, chosen); ok {
					next = append(next, made)
				}
			}
		}
		if states = prune(next, index); len(states) == 0 {
			return Schedule{}, false
		}
	}
	found = s.describe(states[0])
	found.cost += refresh.setup(set)
	return found, true
}

func (s *scheduler) choices(index int) []choice {
	node := s.network.Nodes[index]
	found := []choice{{}}
	if !s.refresh.possible() || node.Kind == network.Input || node.Kind == network.Output || node.Public {
		return found // a public node's repetitions differ, and a refresh keeps what they have in common
	}
	found = append(found, choice{value: true})
	if node.Kind == network.Polynomial && !node.Arguments[0].Trivial() {
		found = append(found, choice{argument: true}, choice{argument: true, value: true})
	}
	return found
}

// before extends a schedule by the node before it.
func (s *scheduler) before(index int, from state, chosen choice) (state, bool) {
	made := state{slices.Clone(from.needed), slices.Clone(from.choices), from.cost}
	made.choices[index] = chosen
	_, argument, entering, ok := s.levels(index, from.needed[index], chosen)
	if !ok {
		return made, false
	}
	node := s.network.Nodes[index]
	for i, expression := range node.Arguments {
		for _, term := range expression.Terms {
			made.needed[term.Node] = max(made.needed[term.Node], entering[i])
		}
		made.cost += s.linear(expression, entering[i], !node.Public && s.refresh.sealed(s.network))
	}
	ciphertexts := float64(s.ciphertexts(node.Size))
	made.cost += ciphertexts * weigher{set: s.set, level: argument}.node(node)
	for _, refreshed := range []bool{chosen.argument, chosen.value} {
		if refreshed {
			made.cost += ciphertexts * s.refresh.costOf(s.network, index)
		}
	}
	return made, true
}

// levels are those of a node that is needed at a level: its own before a refresh of its value, its argument's after a
// refresh of that, and its matrices'.
func (s *scheduler) levels(index, needed int, chosen choice) (made, argument int, entering []int, ok bool) {
	node := s.network.Nodes[index]
	made = max(needed, s.set.Floor())
	if made > s.set.Depth || (chosen.value && made <= s.floor) {
		return 0, 0, nil, false
	}
	if chosen.value {
		made = s.floor
	}
	argument = made + levels(node)
	before := argument
	if chosen.argument {
		if argument <= s.floor {
			return 0, 0, nil, false
		}
		before = s.floor
	}
	for _, expression := range node.Arguments {
		level := before
		if !expression.Trivial() {
			level++
		}
		entering = append(entering, level)
		ok = level <= s.set.Depth
		if !ok {
			return 0, 0, nil, false
		}
	}
	return made, argument, entering, argument <= s.set.Depth
}

// ciphertexts is about how many a value of so many elements takes.
func (s *scheduler) ciphertexts(size int) int {
	return (size*s.batch + s.set.Slots() - 1) / s.set.Slots()
}

// linear is about what the matrices of an expression take.
func (s *scheduler) linear(e network.Expression, level int, sealed bool) float64 {
	if e.Trivial() {
		return 0
	}
	w, total := weigher{set: s.set, level: level, sealed: sealed}, 0.0
	for _, term := range e.Terms {
		diagonals := float64(term.Matrix.Entries()) / float64(max(1, term.Matrix.Rows)) * float64(s.ciphertexts(e.Size))
		total += diagonals * (w.passes() + w.making())
		total += 2 * math.Sqrt(diagonals) * w.keySwitch()
	}
	return total
}

// prune keeps the cheapest states of which no other is as good in every level and in cost.
func prune(states []state, index int) []state {
	slices.SortStableFunc(states, func(a, b state) int { return cmp.Compare(a.cost, b.cost) })
	var kept []state
	for _, candidate := range states {
		beaten := slices.ContainsFunc(kept, func(better state) bool {
			for node := range index {
				if better.needed[node] > candidate.needed[node] {
					return false
				}
			}
			return true
		})
		if !beaten && len(kept) < width {
			kept = append(kept, candidate)
		}
	}
	return kept
}

func (s *scheduler) describe(best state) Schedule {
	found := Schedule{Floor: s.floor, cost: best.cost}
	for index, node := range s.network.Nodes {
		chosen := best.choices[index]
		_, argument, entering, _ := s.levels(index, best.needed[index], chosen)
		needed := max(best.needed[index], 0)
		if node.Kind == network.Input {
			needed, argument = s.set.Depth, s.set.Depth
		}
		found.Entering = append(found.Entering, entering)
		found.Argument = append(found.Argument, argument)
		found.Made = append(found.Made, needed)
		found.Arguments = append(found.Arguments, chosen.argument)
		found.Values = append(found.Values, chosen.value)
	}
	return found
}

// deepest is how many levels a network takes without any refresh.
func deepest(n *network.Network) int {
	needed := make([]int, len(n.Nodes))
	found := 1
	for index := len(n.Nodes) - 1; index >= 0; index-- {
		node := n.Nodes[index]
		level := needed[index] + levels(node)
		for _, expression := range node.Arguments {
			entering := level
			if !expression.Trivial() {
				entering++
			}
			for _, term := range expression.Terms {
				needed[term.Node] = max(needed[term.Node], entering)
			}
			found = max(found, entering)
		}
	}
	return found
}
