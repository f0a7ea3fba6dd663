package network

import (
	"fmt"
	"math"

	"privet/ckks/internal/program"
)

// read is a value with the factor that it still lacks.
func (b *builder) read(id int) Expression {
	x := b.values[id]
	if factor, lacks := b.factors[id]; lacks {
		x = x.times(factor)
	}
	return x
}

// polynomial adds a node for a polynomial of a value, whose argument is scaled to what the node evaluates.
func (b *builder) polynomial(o *program.Operation, scale int) (Expression, error) {
	id := o.Inputs[0]
	x := b.read(id)
	node := Node{Kind: Polynomial, Name: o.Name, Size: x.Size, Image: x.Image, Degree: o.Degree}
	factor, shift := 1.0, 0.0
	if b.weights != nil {
		bound := real(b.weights.Tensor(o.Bound)[0], scale)
		if !(bound > 0) {
			return x, fmt.Errorf("has the interval bound %v", bound)
		}
		for _, coefficient := range b.weights.Tensor(o.Coefficients) {
			node.Coefficients = append(node.Coefficients, real(coefficient, program.CoefficientBits))
		}
		factor, node.Reach = 1/bound, 1
		if o.Degree == 2 {
			var err error
			if factor, shift, err = node.completeSquare(bound); err != nil {
				return x, err
			}
			node.Reach = factor*bound + math.Abs(shift)
		}
	}
	if o.Degree == 1 {
		linear, constant := 1.0, 0.0
		if b.weights != nil {
			linear, constant = node.Coefficients[1]*factor, node.Coefficients[0]
		}
		return x.times(linear).shifted(func(int) float64 { return constant }), nil
	}
	switch {
	case b.absorbs(id):
		b.network.Nodes[b.polynomials[id]].rescale(factor, shift)
		node.Arguments = []Expression{x}
	case b.multiplied[id] && o.Degree != 2:
		// What else reads the value reads the polynomial's argument, and applies the bound itself.
		node.Arguments = []Expression{b.shared(o, x.times(factor), node.Reach)}
		b.values[id], b.factors[id] = node.Arguments[0], 1/factor
	default:
		node.Arguments = []Expression{x.times(factor).shifted(func(int) float64 { return shift })}
	}
	b.polynomials[o.Output] = len(b.network.Nodes)
	return b.add(node), nil
}

// absorbs tells whether a value is that of a polynomial that nothing else reads, whose coefficients can take up a factor and
// a shift. It depends on nothing private.
func (b *builder) absorbs(id int) bool {
	index, direct := b.polynomials[id]
	return direct && b.reads[id] == 1 && b.network.Nodes[index].Degree > 2
}

// rescale makes the polynomial of a node that of factor * value + shift.
func (n *Node) rescale(factor, shift float64) {
	for k := range n.Coefficients {
		n.Coefficients[k] *= factor
	}
	if n.Coefficients != nil {
		n.Coefficients[0] += shift
	}
}

// shared adds a node that computes an expression once, a polynomial's argument of that reach.
func (b *builder) shared(o *program.Operation, x Expression, reach float64) Expression {
	return b.add(Node{
		Kind: Linear, Name: o.Name + " (argument)", Size: x.Size, Image: x.Image, Reach: reach, Arguments: []Expression{x},
	})
}

// product adds a node for a product of two values; factors that they lack are left to what reads it.
func (b *builder) product(o *program.Operation) Expression {
	x := b.values[o.Inputs[0]]
	node := Node{Kind: Product, Name: o.Name, Size: x.Size, Image: x.Image}
	factor, lacks := 1.0, false
	for _, id := range o.Inputs {
		node.Arguments = append(node.Arguments, b.values[id])
		if own, known := b.factors[id]; known {
			factor, lacks = factor*own, true
		}
	}
	if lacks {
		b.factors[o.Output] = factor
	}
	return b.add(node)
}
