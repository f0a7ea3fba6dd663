// Package evaluate runs a planned network on ciphertexts.
package evaluate

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/codec"
	"privet/ckks/internal/layers"
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
	"privet/ckks/internal/plan"
)

// Model is a network with its matrices encoded: what a server keeps for all clients.
type Model struct {
	Params  ckks.Parameters
	Plan    *plan.Plan
	network *network.Network
	// linear has, by node, argument and term, the encoded matrices; bias by node and argument, one for each ciphertext.
	linear [][][]*layers.Linear
	bias   [][][]rlwe.Operand
	// series has, by node, the coefficients of polynomials of degree 3 and more.
	series map[int][]float64
	// scales are those of the nodes' values.
	scales []rlwe.Scale
	// public has the matrices that all parties know, which several nodes may share.
	public map[string]*layers.Linear
	// maker makes parts while the model runs, which keeps none; nil if all are made.
	maker Maker
}

// NewModel encodes a network that has its weights.
func NewModel(n *network.Network, p *plan.Plan) (*Model, error) {
	params, err := p.Set.Build()
	if err != nil {
		return nil, err
	}
	return Assemble(n, p, params, plain{params, p})
}

// Maker makes the parts of a model, always in the same order: the matrices of each argument, then its bias, and after a
// node's arguments its polynomial.
type Maker interface {
	// Linear makes a matrix for inputs at a level, its entries at a scale.
	Linear(t *packing.Transform, matrix *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error)
	// Bias makes a bias in a layout at a level and the default scale, one part for each ciphertext.
	Bias(layout packing.Layout, bias []float64, level int) ([]rlwe.Operand, error)
	// Series gives the coefficients of a node's polynomial of degree 3 or more.
	Series(node *network.Node) ([]float64, error)
	// Evaluates tells whether the model is evaluated by whoever makes it, who then needs what all parties know as well.
	Evaluates() bool
}

// Assemble makes a model of parts.
func Assemble(n *network.Network, p *plan.Plan, params ckks.Parameters, maker Maker) (*Model, error) {
	m := Stream(n, p, params, maker)
	for range n.Nodes {
		if err := m.Make(); err != nil {
			return nil, err
		}
	}
	m.maker = nil
	return m, nil
}

// Stream is a model for one run, of which each node's parts are made just before they are used, and kept no longer.
func Stream(n *network.Network, p *plan.Plan, params ckks.Parameters, maker Maker) *Model {
	return &Model{
		Params: params, Plan: p, network: n, series: map[int][]float64{}, public: map[string]*layers.Linear{}, maker: maker,
	}
}

// Make makes the parts of the next node.
func (m *Model) Make() error {
	index := len(m.linear)
	if err := m.encode(index, m.maker); err != nil {
		return fmt.Errorf("layer %s: %w", m.network.Nodes[index].Name, err)
	}
	return nil
}

// MakeError is what a maker failed with while a model ran.
type MakeError struct{ Err error }

func (e *MakeError) Error() string { return e.Err.Error() }

// encode encodes a node's matrices at scales that give its arguments the default scale exactly, whatever the scales of
// what they read.
func (m *Model) encode(index int, maker Maker) error {
	node := &m.network.Nodes[index]
	target := m.Params.DefaultScale()
	encoded := make([][]*layers.Linear, len(node.Arguments))
	biases := make([][]rlwe.Operand, len(node.Arguments))
	scale := target
	for argument, expression := range node.Arguments {
		transforms := m.Plan.Transforms[index][argument]
		if transforms == nil {
			scale = m.scales[expression.Terms[0].Node]
			continue
		}
		level := m.Plan.Entering[index][argument]
		prime := rlwe.NewScale(m.Params.Q()[level])
		for term, transform := range transforms {
			source := expression.Terms[term]
			own := target.Mul(prime).Div(m.scales[source.Node])
			made, err := m.linearOf(node, maker, transform, source.Matrix, level, own)
			if err != nil {
				return err
			}
			encoded[argument] = append(encoded[argument], made)
		}
		if node.Public {
			continue
		}
		bias, err := maker.Bias(m.Plan.Layouts[index], expression.Bias, level-1)
		if err != nil {
			return err
		}
		biases[argument] = bias
	}
	m.linear, m.bias = append(m.linear, encoded), append(m.bias, biases)
	if node.Kind == network.Product || (node.Kind == network.Polynomial && node.Degree == 2) {
		scale = scale.Mul(scale).Div(rlwe.NewScale(m.Params.Q()[m.Plan.Argument[index]]))
	} else if node.Kind == network.Polynomial {
		series, err := maker.Series(node)
		if err != nil {
			return err
		}
		m.series[index], scale = series, target
	}
	m.scales = append(m.scales, scale)
	return nil
}

// linearOf has the maker make a matrix, unless all parties know it.
func (m *Model) linearOf(node *network.Node, maker Maker, t *packing.Transform, matrix *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	if !node.Public {
		return maker.Linear(t, matrix, level, scale)
	}
	if !maker.Evaluates() {
		return nil, nil
	}
	name := fmt.Sprint(t.Name(level), "|", scale.Value.Text('p', 0))
	if found, ok := m.public[name]; ok {
		return found, nil
	}
	made, err := plain{m.Params, m.Plan}.Linear(t, matrix, level, scale)
	m.public[name] = made
	return made, err
}

// plain makes the parts of a plaintext model.
type plain struct {
	params ckks.Parameters
	plan   *plan.Plan
}

func (m plain) Linear(t *packing.Transform, matrix *network.Matrix, level int, scale rlwe.Scale) (*layers.Linear, error) {
	return layers.EncodeLinear(m.params, t, matrix, m.plan.Batch, level, scale)
}

func (m plain) Bias(layout packing.Layout, bias []float64, level int) ([]rlwe.Operand, error) {
	encoded, err := EncodeBias(m.params, layout, bias, m.plan.Batch, level)
	made := make([]rlwe.Operand, len(encoded))
	for i, pt := range encoded {
		made[i] = pt
	}
	return made, err
}

func (m plain) Series(node *network.Node) ([]float64, error) { return node.Coefficients, nil }

func (m plain) Evaluates() bool { return true }

// EncodeBias encodes a bias for all samples, one plaintext for each ciphertext of the layout.
func EncodeBias(params ckks.Parameters, layout packing.Layout, bias []float64, batch, level int) ([]*rlwe.Plaintext, error) {
	samples := make([][]float64, batch)
	for i := range samples {
		samples[i] = bias
	}
	slots := layout.Fill(samples, batch)
	made := make([]*rlwe.Plaintext, len(slots))
	for i, values := range slots {
		made[i] = ckks.NewPlaintext(params, level)
		if err := codec.New(params).Encode(values, made[i]); err != nil {
			return nil, err
		}
	}
	return made, nil
}
