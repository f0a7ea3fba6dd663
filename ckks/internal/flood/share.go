package flood

import (
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/plan"
)

// shares tell how much of the variance of a fresh error matters for what is revealed, by node: of an error in its argument, in
// what it makes of that, and in its value after a refresh.
//
// A value of a period is a polynomial in a power of X. Fresh errors are not, and of them only the part that is one comes
// through: the period's share of all slots. Products with such values keep to that part, and so do sums of rotations
// within the largest period on an error's way to where it is revealed. A matrix that reads a skewed value finds elements in
// all its repetitions, however, and then adds up all slots, with all of their errors.
type shares struct{ argument, made, value []float64 }

func share(n *network.Network, p *plan.Plan) shares {
	count := len(n.Nodes)
	s := shares{make([]float64, count), make([]float64, count), make([]float64, count)}
	for index := range n.Nodes {
		s.value[index] = part(p, p.Period(index))
	}
	for index := count - 1; index >= 0; index-- {
		own := part(p, p.Period(index))
		s.made[index] = s.value[index]
		if p.Values[index] {
			s.made[index] = own
		}
		s.argument[index] = s.made[index]
		if p.Arguments[index] {
			s.argument[index] = own
		}
		for argument, expression := range n.Nodes[index].Arguments {
			for i, term := range expression.Terms {
				var transform *packing.Transform
				if transforms := p.Transforms[index][argument]; transforms != nil {
					transform = transforms[i]
				}
				s.value[term.Node] = max(s.value[term.Node], s.through(p, index, term.Node, transform))
			}
		}
	}
	return s
}

// through is the share of an error in a value that a node's argument reads through a transform, or (nil) as it is.
func (s shares) through(p *plan.Plan, index, source int, transform *packing.Transform) float64 {
	if transform != nil && transform.From.Skew > 0 {
		return 1
	}
	return max(part(p, p.Period(source)), s.argument[index])
}

// part is the share of a period in all slots.
func part(p *plan.Plan, period int) float64 { return float64(period) / float64(p.Set.Slots()) }
