package evaluate

import (
	"errors"
	"fmt"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/layers"
	"privet/ckks/internal/network"
)

// Values are a node's ciphertexts.
type Values = []*rlwe.Ciphertext

// Step is what a node took.
type Step struct {
	Name    string  `json:"name"`
	Kind    string  `json:"operator"`
	Seconds float64 `json:"seconds"`
}

// Helpers are what an evaluation needs beside keys: how results are hidden, and how values are refreshed (nil where the plan
// has no refresh).
type Helpers struct {
	Hiding    Hiding
	Refresher Refresher
	// Stop ends the evaluation before its next node once it is closed; nil for never.
	Stop <-chan struct{}
}

// ErrStopped is what an evaluation ends with that was told to stop.
var ErrStopped = errors.New("the evaluation was stopped")

// Run evaluates the network on the inputs' ciphertexts, in order, and gives those of the outputs, at the plan's
// floor and hidden.
func (m *Model) Run(eval *ckks.Evaluator, help Helpers, inputs []Values, observe func(Step)) ([]Values, error) {
	outputs, err := m.RunGroups(eval, help, [][]Values{inputs}, observe)
	if err != nil {
		return nil, err
	}
	return outputs[0], nil
}

// RunGroups is Run for several groups of samples, layer by layer: each part of the model is needed once for all of them.
func (m *Model) RunGroups(eval *ckks.Evaluator, help Helpers, inputs [][]Values, observe func(Step)) ([][]Values, error) {
	values, outputs := make([][]Values, len(inputs)), make([][]Values, len(inputs))
	for group := range values {
		values[group] = make([]Values, len(m.network.Nodes))
	}
	last, taken := m.lastUses(), 0
	for index := range m.network.Nodes {
		if m.maker != nil {
			if err := m.Make(); err != nil {
				return nil, &MakeError{err}
			}
		}
		kind := m.network.Nodes[index].Kind
		for group := range values {
			select {
			case <-help.Stop:
				return nil, ErrStopped
			default:
			}
			if kind == network.Input {
				values[group][index] = inputs[group][taken]
				continue
			}
			made, err := m.node(eval, help, index, values[group], observe)
			if err != nil {
				return nil, err
			}
			values[group][index] = made
			if kind == network.Output {
				outputs[group] = append(outputs[group], made)
			}
			for node, use := range last {
				if use == index {
					values[group][node] = nil
				}
			}
		}
		if kind == network.Input {
			taken++
		}
		if m.maker != nil {
			m.linear[index], m.bias[index] = nil, nil
		}
	}
	return outputs, nil
}

// node evaluates one node, with the refreshes of its argument and its value.
func (m *Model) node(eval *ckks.Evaluator, help Helpers, index int, values []Values, observe func(Step)) (Values, error) {
	node := &m.network.Nodes[index]
	start := time.Now()
	arguments := make([]Values, len(node.Arguments))
	for i := range node.Arguments {
		made, err := m.argument(eval, help.Hiding, index, i, values)
		if err != nil {
			return nil, fmt.Errorf("layer %s: %w", node.Name, err)
		}
		arguments[i] = made
	}
	if len(m.linear[index]) > 0 && m.linear[index][0] != nil {
		observe(Step{node.Name, "linear", time.Since(start).Seconds()})
	}
	if m.Plan.Arguments[index] {
		made, err := m.refreshed(eval, help.Refresher, index, arguments[0], m.Plan.Argument[index], observe)
		if err != nil {
			return nil, err
		}
		arguments[0] = made
	}
	start = time.Now()
	made, err := m.compute(eval, index, arguments)
	if err != nil {
		return nil, err
	}
	if node.Kind == network.Polynomial || node.Kind == network.Product {
		observe(Step{node.Name, kind(node), time.Since(start).Seconds()})
	}
	if m.Plan.Values[index] {
		return m.refreshed(eval, help.Refresher, index, made, m.Plan.Made[index], observe)
	}
	return made, nil
}

func (m *Model) compute(eval *ckks.Evaluator, index int, arguments []Values) (Values, error) {
	node := &m.network.Nodes[index]
	switch {
	case node.Kind == network.Product:
		return layers.Products(eval, arguments[0], arguments[1])
	case node.Kind == network.Output || node.Kind == network.Linear:
		return arguments[0], nil
	case node.Degree == 2:
		return layers.Square(eval, node, arguments[0])
	}
	return layers.Chebyshev(eval, node.Name, m.series[index], arguments[0], m.Params.DefaultScale())
}

// argument is an affine argument of a node: products with matrices, rescaled, plus the bias, at the node's level.
func (m *Model) argument(eval *ckks.Evaluator, hider Hiding, index, argument int, values []Values) (Values, error) {
	expression := m.network.Nodes[index].Arguments[argument]
	target := m.Plan.Argument[index]
	if m.Plan.Arguments[index] {
		target = m.Plan.Floor
	}
	if m.linear[index][argument] == nil {
		return m.encrypted(lowered(eval, values[expression.Terms[0].Node], target)), nil
	}
	var total Values
	for term, linear := range m.linear[index][argument] {
		source := lowered(eval, values[expression.Terms[term].Node], m.Plan.Entering[index][argument])
		made, err := linear.Apply(eval, source)
		if err != nil {
			return nil, err
		}
		if total == nil {
			total = made
			continue
		}
		for i := range total {
			if err := eval.Add(total[i], made[i], total[i]); err != nil {
				return nil, err
			}
		}
	}
	for i, ct := range total {
		if err := m.rescale(eval, hider, index, ct); err != nil {
			return nil, err
		}
		ct.Scale = m.Params.DefaultScale()
		if m.network.Nodes[index].Public {
			continue
		}
		if err := eval.Add(ct, m.bias[index][argument][i], ct); err != nil {
			return nil, err
		}
	}
	return lowered(eval, total, target), nil
}

// rescale brings sums of products down a level; those of an output it hides on the way.
func (m *Model) rescale(eval *ckks.Evaluator, hider Hiding, index int, ct *rlwe.Ciphertext) error {
	if m.network.Nodes[index].Kind != network.Output {
		return eval.Rescale(ct, ct)
	}
	eval.DropLevel(ct, ct.Level()-m.Plan.HidingLevel())
	if err := hider.Randomise(ct); err != nil {
		return err
	}
	if err := eval.Rescale(ct, ct); err != nil {
		return err
	}
	return hider.Flood(ct, index)
}

// encrypted gives values that the evaluator knows the form of ciphertexts, their second part zero.
func (m *Model) encrypted(values Values) Values {
	made := make(Values, len(values))
	for i, ct := range values {
		made[i] = ct
		if ct.Degree() == 0 {
			made[i] = ckks.NewCiphertext(m.Params, 1, ct.Level())
			made[i].Value[0].Copy(ct.Value[0])
			made[i].Scale = ct.Scale
		}
	}
	return made
}

// lowered are ciphertexts at a lower level, the originals untouched.
func lowered(eval *ckks.Evaluator, values Values, level int) Values {
	made := make(Values, len(values))
	for i, ct := range values {
		made[i] = ct
		if ct.Level() > level {
			made[i] = eval.DropLevelNew(ct, ct.Level()-level)
		}
	}
	return made
}

// lastUses is, for each node, the node that reads it last.
func (m *Model) lastUses() []int {
	last := make([]int, len(m.network.Nodes))
	for index, node := range m.network.Nodes {
		for _, expression := range node.Arguments {
			for _, term := range expression.Terms {
				last[term.Node] = index
			}
		}
	}
	return last
}

func kind(node *network.Node) string {
	switch {
	case node.Kind == network.Product:
		return "product"
	case node.Degree == 2:
		return "square"
	}
	return fmt.Sprintf("polynomial of degree %d", node.Degree)
}
