// Package network turns a program into what CKKS computes: polynomials and products of encrypted values, and affine
// functions between them.
//
// All neighbouring linear operations, and everything that only moves elements, are multiplied into one sparse matrix, so
// a convolution followed by an average pool costs one level. Without the private half the places of the entries are
// known, and the values are not: a client plans from those.
package network

import (
	"fmt"
	"math"

	"privet/ckks/internal/program"
)

// Kind is what a node computes.
type Kind int

// Kinds of nodes.
const (
	Input Kind = iota
	Polynomial
	Product
	// Linear is an affine function that several nodes read as it is, computed once for all of them.
	Linear
	Output
)

// Node is one encrypted value of the network.
//
// Arguments are its affine arguments: none of an input, two of a product, one otherwise. A polynomial of degree 2 is
// Sign * argument^2 + Offset; one of another degree sum_k Coefficients[k] T_k(argument).
type Node struct {
	Kind         Kind
	Name         string
	Size         int
	Image        []int
	Arguments    []Expression
	Degree       int
	Coefficients []float64
	Sign, Offset float64
	// Public tells of a linear node that its matrix is known to all: the identity, for a layout of its own.
	Public bool
	// Reach is the largest magnitude of a polynomial's argument, also where it is a node; 0 where it is not known.
	Reach float64
}

// Network is a program's nodes, each after those that it reads.
// Known tells that whoever evaluates it knows its inputs.
type Network struct {
	Nodes []Node
	Batch int
	Known bool
}

// Bounds on a network, so that a program from a peer can exhaust neither memory nor time: the entries of all matrices, which
// take up to 12 bytes each, the elements of one sample's value, and the steps in which matrices are made, seconds in all.
const (
	MaxEntries  = 1 << 27
	maxElements = 1 << 22
	maxSteps    = 1 << 30
)

const tooLarge = "the model is too large for suite ckks"

// fits tells whether entries are left; it takes none.
func (b *builder) fits(entries int) error {
	if b.entries+entries > MaxEntries {
		return fmt.Errorf("would take the linear layers beyond %d entries: %s", MaxEntries, tooLarge)
	}
	return nil
}

// spend takes entries from what is left before they are made.
func (b *builder) spend(entries int) error {
	if err := b.fits(entries); err != nil {
		return err
	}
	b.entries += entries
	return nil
}

// work takes steps from what is left before they are done.
func (b *builder) work(steps int) error {
	if b.steps += steps; b.steps > maxSteps {
		return fmt.Errorf("would take more than %d steps to join with other linear layers: %s", maxSteps, tooLarge)
	}
	return nil
}

// effort is how many steps an operation takes at most that is no product of matrices: each input's rows and entries are gone
// through, for a concatenation once for each.
func (b *builder) effort(o *program.Operation) int {
	rows, entries, terms := b.program.Values[o.Output].Len(), 0, 0
	for _, id := range o.Inputs {
		entries += b.values[id].entries()
		terms += len(b.values[id].Terms)
	}
	return len(o.Inputs)*(entries+rows) + terms*rows
}

type builder struct {
	program *program.Program
	weights *program.Weights
	network *Network
	values  []Expression
	entries int
	steps   int
	// factors has, for some values, a factor that what reads them must still apply; whether there is one is public.
	factors map[int]float64
	// reads counts what reads a value, multiplied tells whether a product does, and polynomials has the nodes of values that
	// polynomials make.
	reads       map[int]int
	multiplied  map[int]bool
	polynomials map[int]int
}

// Build is the network of one sample of a program. Without weights (nil) it has structure only.
func Build(p *program.Program, weights *program.Weights) (*Network, error) {
	single, err := p.Single()
	if err != nil {
		return nil, err
	}
	b := &builder{
		program: single, weights: weights,
		network: &Network{Batch: p.Batch}, values: make([]Expression, len(p.Values)),
		factors: map[int]float64{}, reads: map[int]int{}, multiplied: map[int]bool{}, polynomials: map[int]int{},
	}
	for _, operation := range single.Operations {
		for _, id := range operation.Inputs {
			b.reads[id]++
			b.multiplied[id] = b.multiplied[id] || operation.Op == "mul"
		}
	}
	for _, output := range single.Outputs {
		b.reads[output.Value]++
	}
	for id, value := range single.Values {
		if value.Len() > maxElements {
			return nil, fmt.Errorf("value %d has %d elements, more than %d: the model is too large for suite ckks", id, value.Len(), maxElements)
		}
	}
	for _, input := range single.Inputs {
		value := single.Values[input.Value]
		b.values[input.Value] = b.add(Node{Kind: Input, Name: input.Name, Size: value.Len(), Image: image(value.Shape)})
	}
	for i := range single.Operations {
		if err := b.evaluate(&single.Operations[i]); err != nil {
			return nil, fmt.Errorf("layer %s (%s) %w", single.Operations[i].Name, single.Operations[i].Op, err)
		}
	}
	for _, output := range single.Outputs {
		value := b.read(output.Value)
		value.Rescaled = true
		b.add(Node{Kind: Output, Name: output.Name, Size: value.Size, Image: value.Image, Arguments: []Expression{value}})
	}
	return b.network, nil
}

// evaluate adds the value of an operation.
func (b *builder) evaluate(o *program.Operation) error {
	if err := b.work(b.effort(o)); err != nil {
		return err
	}
	made, err := b.operation(o)
	if err != nil {
		return err
	}
	b.values[o.Output] = made
	if o.Op == "truncate" || o.Op == "shift_left" {
		return nil // the matrices of what it reads
	}
	return b.spend(made.room())
}

func (b *builder) add(node Node) Expression {
	b.network.Nodes = append(b.network.Nodes, node)
	return of(len(b.network.Nodes)-1, node.Size, node.Image, b.weights != nil)
}

// tensor is a private tensor, or nil without weights. Of one that is repeated for each sample it is the first part.
func (b *builder) tensor(o *program.Operation, name string, repeats bool) ([]int64, error) {
	if b.weights == nil {
		return nil, nil
	}
	tensor := b.weights.Tensor(name)
	if !repeats {
		return tensor, nil
	}
	parts := o.Repeats(len(tensor))
	size := len(tensor) / parts
	for i, value := range tensor {
		if value != tensor[i%size] {
			return nil, fmt.Errorf("has weights that differ between samples")
		}
	}
	return tensor[:size], nil
}

// completeSquare writes c0 + c1 T_1(x/bound) + c2 T_2(x/bound) as Sign * (factor x + shift)^2 + Offset.
func (n *Node) completeSquare(bound float64) (factor, shift float64, err error) {
	c := n.Coefficients
	if c[2] == 0 {
		return 0, 0, fmt.Errorf("is a polynomial of degree 2 without its square: compile the model again")
	}
	n.Sign = math.Copysign(1, c[2])
	root := math.Sqrt(2 * math.Abs(c[2]))
	shift = n.Sign * c[1] / (2 * root)
	n.Offset = c[0] - c[2] - n.Sign*shift*shift
	return root / bound, shift, nil
}

// image is the shape of one image, or nil for what is none.
func image(shape []int) []int {
	if len(shape) != 4 || shape[0] != 1 || shape[2]*shape[3] == 1 {
		return nil
	}
	return shape[1:]
}
